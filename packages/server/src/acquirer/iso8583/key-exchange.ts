import type { Clock } from "../../clock.ts";
import { type IsoMessage, isNetworkMessage } from "./message/codec.ts";
import { IsoFormatError } from "./message/error.ts";
import type { KeyOpener } from "./message/key-opener.ts";
import type { MacKeys } from "./message/mac-keys.ts";
import type { KeyExchangeProfile } from "./profile/schema.ts";

/** The store of a key that came over the link, for the next start and for other instances. */
export interface MacKeyStore {
  /** Undefined: none has come since the key was registered. */
  read(): Promise<Buffer | undefined>;
  /** Durable, and announced to all instances, when it resolves. */
  keep(key: Buffer): Promise<void>;
}

export interface KeyExchangeParts {
  readonly profile: KeyExchangeProfile;
  readonly opener: KeyOpener;
  readonly keys: MacKeys;
  /** The registered one, with which a connection begins if keys belong to connections. */
  readonly registered: Buffer;
  readonly kept: MacKeyStore | undefined;
  readonly clock: Pick<Clock, "nowMs">;
}

const registeredKey = "the registered MAC key";
const storedKey = "the MAC key that was kept";

/** Applies new MAC keys that a host sends, encrypted under a key-encryption key, as its profile says. */
export class KeyExchange {
  readonly #parts: KeyExchangeParts;
  #inUse = registeredKey;
  /** Empty: none was, since the one in use came. */
  #refused = "";

  constructor(parts: KeyExchangeParts) {
    this.#parts = parts;
  }

  /** The interval of requests for a new key; null: once for each connection. */
  get requestEveryMs(): number | null {
    return this.#parts.profile.requestEveryMs;
  }

  /** Before a connection signs on: under the registered key, or the last one that came. */
  async begin(): Promise<void> {
    const { keys, registered, kept } = this.#parts;
    const key = await kept?.read();
    if (key === undefined) this.#inUse = registeredKey;
    else if (this.#inUse === registeredKey) this.#inUse = storedKey;
    keys.replace(key ?? registered);
  }

  /** In words, for the operator: which key is in use, and whether a later one was refused. */
  detail(): string {
    return this.#refused === "" ? this.#inUse : `${this.#inUse}; ${this.#refused}`;
  }

  /** Another instance may have kept a new one. */
  async reread(): Promise<void> {
    const key = await this.#parts.kept?.read();
    if (key !== undefined && this.#parts.keys.replace(key)) this.#taken("another instance took up");
  }

  /** Whether the host sends a key with this request of its own. */
  brings({ mti, fields }: IsoMessage): boolean {
    const { field, values } = this.#parts.profile.brings;
    return isNetworkMessage(mti) && values.includes(fields.get(field) ?? "");
  }

  /**
   * Takes the key of a message. It is kept before anything is sent under it.
   *
   * @returns what puts it into use
   * @throws IsoFormatError if the message has none; RangeError if it cannot be decrypted
   */
  async take(message: IsoMessage): Promise<() => void> {
    const { profile, opener, keys, kept } = this.#parts;
    const encrypted = partOf(message, profile.key);
    if (encrypted === "") throw new IsoFormatError("the message contains no key");
    const checkValue = profile.checkValue === null ? "" : partOf(message, profile.checkValue);
    const key = await opener.open(Buffer.from(encrypted, "hex"), checkValue);
    await kept?.keep(key);
    return () => {
      keys.replace(key);
      this.#taken("came");
    };
  }

  /** A key could not be taken up. */
  refuse(why: string): void {
    this.#refused = `the key of ${this.#now()} was refused: ${why}`;
  }

  #taken(how: string): void {
    this.#inUse = `the MAC key that ${how} at ${this.#now()}`;
    this.#refused = "";
  }

  #now(): string {
    return new Date(this.#parts.clock.nowMs()).toISOString();
  }
}

function partOf({ fields }: IsoMessage, { field, from, characters }: KeyExchangeProfile["key"]): string {
  const part = (fields.get(field) ?? "").slice(from, characters === null ? undefined : from + characters);
  return /^(?:[0-9A-Fa-f]{2})*$/.test(part) ? part : "";
}
