import type { CallerResponse } from "./caller.ts";
import { amountOf, merchantTransIdOf, reqIdOf } from "./command-id.ts";
import { countRefusal, type LoadParts } from "./load-parts.ts";
import type { RegisteredPartner } from "./partner.ts";
import type { SeededRandom } from "./random.ts";

interface Original {
  readonly no: number;
  readonly id: string;
}

/** The state of a command that the service accepted. */
interface Taken extends Original {
  readonly status: string;
}

const mid = "M00000000000002";
const settleAfter = 15;
/** More than a switch's, so that tills are not kept waiting by their partner's switch. */
const owedMax = 160;
const waitMs = 50;
/** Beyond them the command is left to itself: its IPN tells what became of it. */
const looksMax = 300;
const repeatable = new Set([0, 408, 425, 429, 500, 502, 503, 504]);
const tokens = ["tok_approve", "tok_approve", "tok_approve", "tok_approve", "tok_decline_51", "tok_slow_200"];
/** ERROR 68, and a Reversal: never answered in time, or booked after the link broke, and after the first Reversal. */
const rareTokens = ["tok_timeout", "tok_break_500"];
const rareShare = 0.02;
/** The service's own reasons: no answer, not sent, in doubt. */
const ownCodes = new Set(["68", "91", "96"]);

/** One of a partner's terminals: it asks for a command, waits for what became of it, and asks for the next one. */
export class PartnerTill {
  readonly #partner: RegisteredPartner;
  readonly #parts: LoadParts;
  readonly #random: SeededRandom;
  readonly #tid: string;
  #sales: Original[] = [];
  #preAuths: Original[] = [];
  /** The numbers in the open batch. */
  #inBatch: number[] = [];

  constructor(partner: RegisteredPartner, till: number, parts: LoadParts, random: SeededRandom) {
    this.#partner = partner;
    this.#parts = parts;
    this.#random = random;
    this.#tid = `T${partner.index}${String(till).padStart(6, "0")}`;
  }

  async work(): Promise<void> {
    const { journal, pace } = this.#parts;
    while (!this.#parts.isEnding()) {
      if (journal.owedTo(this.#partner.index) > owedMax) await after(waitMs);
      else {
        await pace.take(1);
        await this.#next();
      }
    }
  }

  async #next(): Promise<void> {
    if (this.#inBatch.length >= settleAfter) return this.#settle();
    const drawn = this.#random.next();
    if (drawn < 0.15 && this.#sales.length > 0) return this.#void(this.#sales, true);
    if (drawn < 0.19 && this.#sales.length > 0) return this.#reverse();
    if (drawn < 0.25) return this.#pay("PREAUTH");
    if (drawn < 0.32 && this.#preAuths.length > 0) return this.#complete();
    if (drawn < 0.35 && this.#preAuths.length > 0) return this.#void(this.#preAuths, false);
    return this.#pay("SALE");
  }

  async #pay(command: "SALE" | "PREAUTH"): Promise<void> {
    const no = this.#begin([]);
    const token = this.#random.next() < rareShare ? this.#random.pick(rareTokens) : this.#random.pick(tokens);
    if (command === "SALE") this.#inBatch.push(no);
    const taken = await this.#run(no, {
      command,
      amount: String(amountOf(no)),
      currency: "VND",
      tid: this.#tid,
      mid,
      card: { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
    });
    if (taken?.status === "SUCCESS") (command === "SALE" ? this.#sales : this.#preAuths).push(taken);
  }

  async #complete(): Promise<void> {
    const original = this.#take(this.#preAuths);
    const no = this.#begin([original.no]);
    this.#inBatch.push(no);
    const amount = String(amountOf(original.no));
    const taken = await this.#run(no, { command: "PREAUTH_COMPLETE", transactionId: original.id, amount });
    if (taken?.status === "SUCCESS") this.#sales.push(taken);
  }

  async #void(from: Original[], isOfBatch: boolean): Promise<void> {
    const original = this.#take(from);
    const no = this.#begin([original.no]);
    if (isOfBatch) this.#inBatch.push(no);
    await this.#run(no, { command: "VOID", transactionId: original.id });
  }

  /** A system command: it has no IPN, and what it reverses is in no total and no list. */
  async #reverse(): Promise<void> {
    const original = this.#take(this.#sales);
    const fields = { command: "REVERSAL", transactionId: original.id };
    const taken = await this.#run(this.#begin([]), fields, { isNotified: false });
    if (taken?.status === "SUCCESS") this.#parts.books.reverse(original.no);
  }

  async #settle(): Promise<void> {
    const no = this.#begin(this.#inBatch);
    const taken = await this.#run(no, { command: "SETTLEMENT", tid: this.#tid, mid });
    if (taken?.status !== "SUCCESS") return;
    this.#inBatch = [];
    this.#sales = [];
  }

  #begin(before: readonly number[]): number {
    return this.#parts.journal.begin(this.#partner.index, [...before]);
  }

  #take(from: Original[]): Original {
    const [taken] = from.splice(this.#random.within(0, from.length - 1), 1);
    if (taken === undefined) throw new Error("There is none to take.");
    return taken;
  }

  /** The same body again until there is an answer that says what became of it. Undefined: refused, or unknown. */
  async #run(
    no: number,
    fields: Readonly<Record<string, unknown>>,
    { isNotified = true } = {},
  ): Promise<Taken | undefined> {
    const { caller, journal } = this.#parts;
    const command = { ...fields, reqId: reqIdOf(no), ...(isNotified && { merchantTransId: merchantTransIdOf(no) }) };
    for (;;) {
      const answer = await caller.call("POST", "/v1/commands", this.#partner.apiKey, command);
      if (answer.status === 200 || answer.status === 202) {
        const id = String(answer.body["id"]);
        if (isNotified) journal.accept(no, id);
        const { code, ...taken } = await this.#ended(no, id, answer.body);
        if (ownCodes.has(code) && !isRare(fields)) journal.decline(no, code);
        return taken.status === "INIT" ? undefined : taken;
      }
      if (!repeatable.has(answer.status)) {
        this.#refused(no, String(fields["command"]), answer);
        return undefined;
      }
      if (this.#parts.isOver()) return undefined;
      await caller.pause();
    }
  }

  #refused(no: number, command: string, { status, body }: CallerResponse): void {
    countRefusal(this.#parts, command, `${status} ${String(body["code"])}`);
    this.#parts.journal.refuse(no);
    this.#inBatch = this.#inBatch.filter((one) => one !== no);
  }

  async #ended(no: number, id: string, answer: CallerResponse["body"]): Promise<Taken & { readonly code: string }> {
    let last = answer;
    for (let looks = 0; last["status"] === "INIT" && looks < looksMax && !this.#parts.isOver(); looks += 1) {
      await this.#parts.caller.pause();
      const { status, body } = await this.#parts.caller.call("GET", `/v1/transactions/${id}`, this.#partner.apiKey);
      if (status === 200) last = body;
    }
    return { no, id, status: String(last["status"]), code: String(last["isoResponseCode"]) };
  }
}

function isRare({ card }: Readonly<Record<string, unknown>>): boolean {
  return rareTokens.includes(String((card as { token?: string } | undefined)?.token));
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
