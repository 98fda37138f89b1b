import { createCipheriv } from "node:crypto";
import type { SeededRandom } from "../../../faults/random.ts";
import type { Books } from "./books.ts";
import type { Message } from "./standard.ts";

/** One of the host's two sites, as far as its own requests need it. */
export interface Site {
  readonly name: string;
  /** It takes no message until it signs on again, or accepts a sign-on after that. */
  isSignedOff: boolean;
}

export interface OwnRequestsParts {
  readonly books: Books;
  readonly random: SeededRandom;
  /** Shared with the other end: new keys are sent under it. */
  readonly keyEncryptionKey: Buffer;
  /** Over any connection of a site, or of the other one. @returns false if there is none */
  readonly send: (site: Site, message: Message) => boolean;
  /** The other end has approved a new key. */
  readonly onKey: (key: Buffer) => void;
  /** From now on messages may have their MAC under this key, too. */
  readonly onKeySent: (key: Buffer) => void;
  readonly later: (afterMs: number, act: () => void) => void;
}

interface Own {
  readonly site: Site;
  readonly message: Message;
  readonly onAnswer: (code: string) => void;
}

const againAfterMs = 3_000;
const signedOffMs = [1_500, 4_000] as const;

/** The requests that a host sends by itself. Each is repeated until it is answered, also over another connection. */
export class OwnRequests {
  /** How many of each kind were answered, by their code. */
  readonly answered = new Map<string, number>();
  readonly #parts: OwnRequestsParts;
  readonly #open = new Map<string, Own>();
  #traceNo = 700_000;
  #isChangingKey = false;

  constructor(parts: OwnRequestsParts) {
    this.#parts = parts;
  }

  /** Those without an answer. */
  get open(): number {
    return this.#open.size;
  }

  /** Sends one of any kind. */
  send(site: Site): void {
    const kinds: readonly (() => void)[] = [
      () => this.#signOff(site),
      () => this.#sendKey(site),
      () => this.#reverse(site),
      () => this.#reverse(site),
      () => this.#ask(site, "text", "0620", { 60: "MAINTENANCE TONIGHT" }),
      () => this.#ask(site, "cutover", "0800", { 15: "1127", 70: "201" }),
      () => this.#ask(site, "unknown", "0800", { 70: "888" }),
    ];
    this.#parts.random.pick(kinds)();
  }

  /** An answer of the other end. */
  take({ mti, fields }: Message): void {
    const key = keyOf({ mti, fields });
    const own = this.#open.get(key);
    this.#open.delete(key);
    own?.onAnswer(fields.get(39) ?? "");
  }

  #signOff(site: Site): void {
    if (site.isSignedOff) return;
    this.#ask(site, "signOff", "0800", { 70: "002" }, (code) => {
      if (code !== "00") return;
      site.isSignedOff = true;
      this.#parts.later(this.#parts.random.within(...signedOffMs), () => {
        site.isSignedOff = false;
        this.#ask(site, "signOn", "0800", { 70: "001" });
      });
    });
  }

  #sendKey(site: Site): void {
    if (this.#isChangingKey) return;
    this.#isChangingKey = true;
    const { random, keyEncryptionKey, onKeySent, onKey } = this.#parts;
    const key = Buffer.from(Array.from({ length: 16 }, () => random.within(0, 255)));
    const sent = encrypted(key, keyEncryptionKey) + encrypted(Buffer.alloc(8), key).slice(0, 6);
    onKeySent(key);
    this.#ask(site, "key", "0800", { 48: sent, 70: "101" }, (code) => {
      this.#isChangingKey = false;
      if (code === "00") onKey(key);
    });
  }

  #reverse(site: Site): void {
    const booking = this.#parts.books.reverseOne(this.#parts.random);
    if (booking === undefined) return;
    const [tid = "", traceNo = ""] = booking.key.split(" ");
    const fields = { 4: booking.amount.toString(), 11: traceNo, 41: tid, 49: "704" };
    this.#ask(site, "reversal", "0420", fields);
  }

  #ask(
    site: Site,
    kind: string,
    mti: string,
    fields: Readonly<Record<number, string>>,
    onAnswer: (code: string) => void = () => undefined,
  ): void {
    this.#traceNo += 1;
    const numbered = Object.entries(fields).map(([field, value]): [number, string] => [Number(field), value]);
    const message = { mti, fields: new Map([[7, "1126061500"], [11, this.#traceNo.toString()], ...numbered]) };
    const key = keyOf(message);
    this.#open.set(key, {
      site,
      message,
      onAnswer: (code) => {
        this.answered.set(`${kind} ${code}`, (this.answered.get(`${kind} ${code}`) ?? 0) + 1);
        onAnswer(code);
      },
    });
    this.#sendOpen(key);
  }

  #sendOpen(key: string): void {
    const own = this.#open.get(key);
    if (own === undefined) return;
    this.#parts.send(own.site, own.message);
    if (own.message.mti.endsWith("20")) own.message.mti = `${own.message.mti.slice(0, 3)}1`;
    this.#parts.later(againAfterMs, () => this.#sendOpen(key));
  }
}

/** What a request and its answer have in common. */
function keyOf({ mti, fields }: Message): string {
  return `${mti.slice(0, 2)} ${fields.get(11)} ${fields.get(41)?.trim() ?? ""}`;
}

function encrypted(bytes: Buffer, key: Buffer): string {
  const cipher = createCipheriv("des-ede3", Buffer.concat([key, key.subarray(0, 8)]), null).setAutoPadding(false);
  return cipher.update(bytes).toString("hex").toUpperCase();
}
