import { setTimeout as pause } from "node:timers/promises";
import type { Caller, CallerResponse } from "./caller.ts";
import type { RegisteredPartner } from "./deployment.ts";
import type { ExpectedTotals } from "./expected-totals.ts";
import { amountOf, externalIdOf, type Journal, merchantTransIdOf, reqIdOf } from "./journal.ts";
import type { SeededRandom } from "./random.ts";

const tillsOfPartner = 2;
const endsWithinMs = 60_000;

/** Switches that report in batches, and tills that ask for one command after the other, of every partner. */
export class FaultLoad {
  readonly refusals = new Map<string, number>();
  readonly #working: Promise<unknown>;
  #ending = false;
  #over = false;

  constructor(
    partners: readonly RegisteredPartner[],
    parts: Pick<LoadParts, "caller" | "journal" | "books" | "pace" | "operatorToken"> & { readonly batchSize: number },
    random: SeededRandom,
  ) {
    const shared: LoadParts = {
      ...parts,
      refusals: this.refusals,
      isEnding: () => this.#ending,
      isOver: () => this.#over,
    };
    this.#working = Promise.all(
      partners.flatMap((partner) => [
        new Switch(partner, shared, parts.batchSize, random.fork(`switch ${partner.index}`)).work(),
        ...Array.from({ length: tillsOfPartner }, (_, till) =>
          new Till(partner, till, shared, random.fork(`till ${partner.index} ${till}`)).work(),
        ),
      ]),
    );
    // end() reports bugs of the suite, instead of an unhandled rejection in the middle of a fault.
    this.#working.catch(() => undefined);
  }

  /** Resolves when everything that was begun has its answer. @returns whether it has */
  async end(): Promise<boolean> {
    this.#ending = true;
    const timer = setTimeout(() => {
      this.#over = true;
    }, endsWithinMs);
    await this.#working;
    clearTimeout(timer);
    return !this.#over;
  }
}

/** The parts shared by everything that sends commands. */
interface LoadParts {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly books: ExpectedTotals;
  readonly pace: Pace;
  readonly operatorToken: string;
  /** Refusals, by request and reason. */
  readonly refusals: Map<string, number>;
  /** No further command is begun; those that were are brought to an end. */
  isEnding(): boolean;
  /** Not even those: what has no answer by now gets none. */
  isOver(): boolean;
}

function countRefusal({ refusals }: LoadParts, what: string, code: unknown): void {
  const name = `${what} ${String(code)}`;
  refusals.set(name, (refusals.get(name) ?? 0) + 1);
}

/** The pace of a run: a number of commands per second, without a burst after a delay. */
export class Pace {
  readonly #perMs: number;
  #freeAtMs = 0;

  constructor(perSecond: number) {
    this.#perMs = perSecond / 1_000;
  }

  /** Resolves when so many may be sent. */
  async take(count: number): Promise<void> {
    const nowMs = performance.now();
    const atMs = Math.max(this.#freeAtMs, nowMs);
    this.#freeAtMs = atMs + count / this.#perMs;
    if (atMs > nowMs) await pause(atMs - nowMs);
  }
}

/** How long it waits before it looks again at what is owed. */
const waitMs = 20;

/**
 * Lets one work until the end, at the pace of the run. What a fault piles up is delivered before anything new, and
 * counts as recovery: beyond what may be owed to its partner it waits.
 */
async function workFor(
  { index }: RegisteredPartner,
  { journal, pace, isEnding }: LoadParts,
  { owedMax, count }: { readonly owedMax: number; readonly count: number },
  work: () => Promise<void>,
): Promise<void> {
  while (!isEnding()) {
    if (journal.owedTo(index) > owedMax) await pause(waitMs);
    else {
      await pace.take(count);
      await work();
    }
  }
}

function takeOne<Item>(from: Item[], random: SeededRandom): Item {
  const [taken] = from.splice(random.within(0, from.length - 1), 1);
  if (taken === undefined) throw new Error("There is none to take.");
  return taken;
}

interface Item {
  readonly no: number;
  readonly completion: Readonly<Record<string, unknown>>;
}

interface ReportedSale {
  readonly no: number;
  readonly amount: number;
}

/** The state of an open batch on the switch. */
interface Day {
  readonly batchNo: string;
  readonly sales: ReportedSale[];
  readonly voids: ReportedSale[];
  readonly open: ReportedSale[];
  readonly preAuths: ReportedSale[];
  /** All whose IPNs come before that of the settlement. */
  readonly before: number[];
}

const switchMid = "M00000000000001";
/**
 * Measured on two cores at a load of 20, where 90 IPNs a second arrived: with 600 owed to each of eight
 * partners a recovery took 60 s.
 */
const switchOwedMax = 120;
const daySales = 60;

/** A partner's switch: it processes cards itself and reports in batches, each again until it is answered. */
class Switch {
  readonly #partner: RegisteredPartner;
  readonly #parts: LoadParts;
  readonly #batchSize: number;
  readonly #random: SeededRandom;
  readonly #tid: string;
  #day: Day;
  #days = 1;

  constructor(partner: RegisteredPartner, parts: LoadParts, batchSize: number, random: SeededRandom) {
    this.#partner = partner;
    this.#parts = parts;
    this.#batchSize = batchSize;
    this.#random = random;
    this.#tid = `S${String(partner.index).padStart(7, "0")}`;
    this.#day = newDay(this.#days);
  }

  async work(): Promise<void> {
    await workFor(this.#partner, this.#parts, { owedMax: switchOwedMax, count: this.#batchSize }, () =>
      this.#report(Array.from({ length: this.#batchSize }, () => this.#next())),
    );
  }

  /** Until each is accepted or refused: a lost answer is settled by asking again. */
  async #report(items: readonly Item[]): Promise<void> {
    const { caller, operatorToken } = this.#parts;
    let left = items;
    while (left.length > 0 && !this.#parts.isOver()) {
      const completions = left.map(({ completion }) => completion);
      const { status, body } = await caller.call("POST", "/operator/v1/completions", operatorToken, { completions });
      const results = status === 200 ? (body["results"] as readonly Result[]) : [];
      left = left.filter((item, at) => !this.#isSettled(item, results[at]));
      if (left.length > 0) await caller.pause();
    }
  }

  #isSettled({ no, completion }: Item, result: Result | undefined): boolean {
    if (result === undefined) return false;
    const { journal } = this.#parts;
    if (result.result === "accepted" || result.result === "duplicate") {
      journal.accept(no, result.transactionId ?? "");
      return true;
    }
    const code = result.problem?.["code"];
    countRefusal(this.#parts, `report of ${completion["command"]}`, code);
    if (code === "unavailable") return false;
    journal.refuse(no);
    return true;
  }

  #next(): Item {
    const { open, preAuths, sales } = this.#day;
    if (sales.length >= daySales) return this.#settlement();
    const drawn = this.#random.next();
    if (drawn < 0.08 && open.length > 0) return this.#follow("VOID", takeOne(open, this.#random), { isOfBatch: true });
    if (drawn < 0.12) return this.#begin("PREAUTH");
    if (drawn < 0.15 && preAuths.length > 0) return this.#complete(takeOne(preAuths, this.#random));
    if (drawn < 0.16 && preAuths.length > 0)
      return this.#follow("VOID", takeOne(preAuths, this.#random), { isOfBatch: false });
    return this.#begin("SALE");
  }

  #begin(command: "SALE" | "PREAUTH"): Item {
    const { batchNo, sales, open, preAuths, before } = this.#day;
    const no = this.#parts.journal.begin(this.#partner.index);
    const original = { no, amount: amountOf(no) };
    if (command === "PREAUTH") preAuths.push(original);
    else {
      sales.push(original);
      open.push(original);
      before.push(no);
    }
    return this.#item(no, command, { amount: String(original.amount), ...(command === "SALE" && { batchNo }) });
  }

  #complete(original: ReportedSale): Item {
    const item = this.#follow("PREAUTH_COMPLETE", original, { isOfBatch: true });
    const completed = { no: item.no, amount: original.amount };
    this.#day.sales.push(completed);
    this.#day.open.push(completed);
    return item;
  }

  #follow(command: "VOID" | "PREAUTH_COMPLETE", original: ReportedSale, { isOfBatch }: { isOfBatch: boolean }): Item {
    const { batchNo, voids, before } = this.#day;
    const no = this.#parts.journal.begin(this.#partner.index, [original.no]);
    if (isOfBatch) before.push(no);
    if (isOfBatch && command === "VOID") voids.push(original);
    const [amount, originalExternalId] = [String(original.amount), externalIdOf(original.no)];
    return this.#item(no, command, { ...(isOfBatch && { batchNo }), amount, originalExternalId });
  }

  #settlement(): Item {
    const { batchNo, sales, voids, before } = this.#day;
    const no = this.#parts.journal.begin(this.#partner.index, before);
    const [saleTotal, voidTotal] = [total(sales), total(voids)];
    const voided = new Set(voids.map((original) => original.no));
    this.#days += 1;
    // A PreAuth belongs to no batch: it can be completed on a later day.
    this.#day = { ...newDay(this.#days), preAuths: this.#day.preAuths };
    return this.#item(no, "SETTLEMENT", {
      batchNo,
      saleQuantity: String(sales.length),
      saleTotalAmount: String(saleTotal),
      voidQuantity: String(voids.length),
      voidTotalAmount: String(voidTotal),
      quantity: String(sales.length - voids.length),
      totalAmount: String(saleTotal + voidTotal),
      settlementList: sales
        .filter((sale) => !voided.has(sale.no))
        .map((sale) => ({ reqId: reqIdOf(sale.no), refNo: `r${sale.no}` })),
    });
  }

  #item(no: number, command: string, more: Readonly<Record<string, unknown>>): Item {
    const completion = {
      partnerId: this.#partner.id,
      externalId: externalIdOf(no),
      command,
      status: "SUCCESS",
      reqId: reqIdOf(no),
      merchantTransId: merchantTransIdOf(no),
      tid: this.#tid,
      mid: switchMid,
      ...(command !== "SETTLEMENT" && { isoResponseCode: "00", currency: "VND" }),
      ...more,
    };
    return { no, completion };
  }
}

interface Result {
  readonly result: "accepted" | "duplicate" | "conflict" | "refused";
  readonly transactionId?: string;
  readonly problem?: Readonly<Record<string, unknown>>;
}

function newDay(day: number): Day {
  const batchNo = String(day % 1_000_000).padStart(6, "0");
  return { batchNo, sales: [], voids: [], open: [], preAuths: [], before: [] };
}

function total(originals: readonly ReportedSale[]): number {
  return originals.reduce((sum, { amount }) => sum + amount, 0);
}

interface Sold {
  readonly no: number;
  readonly id: string;
}

/** The state of a command that the service accepted. */
interface Taken extends Sold {
  readonly status: string;
}

const tillMid = "M00000000000002";
const settleAfter = 15;
/** More than a switch's, so that tills are not kept waiting by their partner's switch. */
const tillOwedMax = 160;
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
class Till {
  readonly #partner: RegisteredPartner;
  readonly #parts: LoadParts;
  readonly #random: SeededRandom;
  readonly #tid: string;
  #sales: Sold[] = [];
  #preAuths: Sold[] = [];
  /** The numbers in the open batch. */
  #inBatch: number[] = [];

  constructor(partner: RegisteredPartner, till: number, parts: LoadParts, random: SeededRandom) {
    this.#partner = partner;
    this.#parts = parts;
    this.#random = random;
    this.#tid = `T${partner.index}${String(till).padStart(6, "0")}`;
  }

  async work(): Promise<void> {
    await workFor(this.#partner, this.#parts, { owedMax: tillOwedMax, count: 1 }, () => this.#next());
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
      mid: tillMid,
      card: { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
    });
    if (taken?.status === "SUCCESS") (command === "SALE" ? this.#sales : this.#preAuths).push(taken);
  }

  async #complete(): Promise<void> {
    const original = takeOne(this.#preAuths, this.#random);
    const no = this.#begin([original.no]);
    this.#inBatch.push(no);
    const amount = String(amountOf(original.no));
    const taken = await this.#run(no, { command: "PREAUTH_COMPLETE", transactionId: original.id, amount });
    if (taken?.status === "SUCCESS") this.#sales.push(taken);
  }

  async #void(from: Sold[], isOfBatch: boolean): Promise<void> {
    const original = takeOne(from, this.#random);
    const no = this.#begin([original.no]);
    if (isOfBatch) this.#inBatch.push(no);
    await this.#run(no, { command: "VOID", transactionId: original.id });
  }

  /** A system command: it has no IPN, and what it reverses is in no total and no list. */
  async #reverse(): Promise<void> {
    const original = takeOne(this.#sales, this.#random);
    const fields = { command: "REVERSAL", transactionId: original.id };
    const taken = await this.#run(this.#begin([]), fields, { isNotified: false });
    if (taken?.status === "SUCCESS") this.#parts.books.reverse(original.no);
  }

  async #settle(): Promise<void> {
    const no = this.#begin(this.#inBatch);
    const taken = await this.#run(no, { command: "SETTLEMENT", tid: this.#tid, mid: tillMid });
    if (taken?.status !== "SUCCESS") return;
    this.#inBatch = [];
    this.#sales = [];
  }

  #begin(before: readonly number[]): number {
    return this.#parts.journal.begin(this.#partner.index, [...before]);
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
