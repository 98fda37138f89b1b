import { setTimeout as pause } from "node:timers/promises";
import type { Caller, CallerResponse } from "./caller.ts";
import type { RegisteredPartner } from "./deployment.ts";
import type { ExpectedTotals } from "./expected-totals.ts";
import { amountOf, externalIdOf, type Journal, merchantTransIdOf, reqIdOf } from "./journal.ts";
import type { SeededRandom } from "./random.ts";

const tillsOfPartner = 2;
const endsWithinMs = 60_000;

/** Switches that report in batches, and tills that ask for one command after the other, of every partner. */
export function startLoad(
  partners: readonly RegisteredPartner[],
  given: Omit<LoadParts, "refusals" | "isEnding" | "isOver"> & { readonly batchSize: number },
  random: SeededRandom,
) {
  let [ending, over] = [false, false];
  const refusals = new Map<string, number>();
  const parts: LoadParts = { ...given, refusals, isEnding: () => ending, isOver: () => over };
  const working = Promise.all(
    partners.flatMap((partner) => [
      workSwitch(partner, parts, given.batchSize, random.fork(`switch ${partner.index}`)),
      ...Array.from({ length: tillsOfPartner }, (_, till) =>
        workTill(partner, till, parts, random.fork(`till ${partner.index} ${till}`)),
      ),
    ]),
  );
  // end() reports bugs of the suite, instead of an unhandled rejection in the middle of a fault.
  working.catch(() => undefined);
  return {
    refusals,
    /** Resolves when everything that was begun has its answer. @returns whether it has */
    async end(): Promise<boolean> {
      ending = true;
      const timer = setTimeout(() => {
        over = true;
      }, endsWithinMs);
      await working;
      clearTimeout(timer);
      return !over;
    },
  };
}

/** The parts shared by everything that sends commands. */
interface LoadParts {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly books: ExpectedTotals;
  readonly pace: ReturnType<typeof paceOf>;
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

/**
 * The pace of a run: a number of commands per second, without a burst after a delay.
 *
 * @returns resolves when so many may be sent
 */
export function paceOf(perSecond: number): (count: number) => Promise<void> {
  let freeAtMs = 0;
  return async (count) => {
    const nowMs = performance.now();
    const atMs = Math.max(freeAtMs, nowMs);
    freeAtMs = atMs + (count * 1_000) / perSecond;
    if (atMs > nowMs) await pause(atMs - nowMs);
  };
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
      await pace(count);
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
async function workSwitch(partner: RegisteredPartner, parts: LoadParts, batchSize: number, random: SeededRandom) {
  const { caller, journal, operatorToken } = parts;
  const tid = `S${String(partner.index).padStart(7, "0")}`;
  let days = 1;
  let day = newDay(days);
  await workFor(partner, parts, { owedMax: switchOwedMax, count: batchSize }, () =>
    report(Array.from({ length: batchSize }, () => next())),
  );

  /** Until each is accepted or refused: a lost answer is settled by asking again. */
  async function report(items: readonly Item[]): Promise<void> {
    let left = items;
    while (left.length > 0 && !parts.isOver()) {
      const completions = left.map(({ completion }) => completion);
      const { status, body } = await caller.call("POST", "/operator/v1/completions", operatorToken, { completions });
      const results = status === 200 ? (body["results"] as readonly Result[]) : [];
      left = left.filter((item, at) => !isSettled(item, results[at]));
      if (left.length > 0) await caller.pause();
    }
  }

  function isSettled({ no, completion }: Item, result: Result | undefined): boolean {
    if (result === undefined) return false;
    if (result.result === "accepted" || result.result === "duplicate") {
      journal.accept(no, result.transactionId ?? "");
      return true;
    }
    const code = result.problem?.["code"];
    countRefusal(parts, `report of ${completion["command"]}`, code);
    if (code === "unavailable") return false;
    journal.refuse(no);
    return true;
  }

  function next(): Item {
    const { open, preAuths, sales } = day;
    if (sales.length >= daySales) return settlement();
    const drawn = random.next();
    if (drawn < 0.08 && open.length > 0) return follow("VOID", takeOne(open, random), { isOfBatch: true });
    if (drawn < 0.12) return begin("PREAUTH");
    if (drawn < 0.15 && preAuths.length > 0) return complete(takeOne(preAuths, random));
    if (drawn < 0.16 && preAuths.length > 0) return follow("VOID", takeOne(preAuths, random), { isOfBatch: false });
    return begin("SALE");
  }

  function begin(command: "SALE" | "PREAUTH"): Item {
    const { batchNo, sales, open, preAuths, before } = day;
    const no = journal.begin(partner.index);
    const original = { no, amount: amountOf(no) };
    if (command === "PREAUTH") preAuths.push(original);
    else {
      sales.push(original);
      open.push(original);
      before.push(no);
    }
    return item(no, command, { amount: String(original.amount), ...(command === "SALE" && { batchNo }) });
  }

  function complete(original: ReportedSale): Item {
    const item = follow("PREAUTH_COMPLETE", original, { isOfBatch: true });
    const completed = { no: item.no, amount: original.amount };
    day.sales.push(completed);
    day.open.push(completed);
    return item;
  }

  function follow(
    command: "VOID" | "PREAUTH_COMPLETE",
    original: ReportedSale,
    { isOfBatch }: { isOfBatch: boolean },
  ): Item {
    const { batchNo, voids, before } = day;
    const no = journal.begin(partner.index, [original.no]);
    if (isOfBatch) before.push(no);
    if (isOfBatch && command === "VOID") voids.push(original);
    const [amount, originalExternalId] = [String(original.amount), externalIdOf(original.no)];
    return item(no, command, { ...(isOfBatch && { batchNo }), amount, originalExternalId });
  }

  function settlement(): Item {
    const { batchNo, sales, voids, before } = day;
    const no = journal.begin(partner.index, before);
    const [saleTotal, voidTotal] = [total(sales), total(voids)];
    const voided = new Set(voids.map((original) => original.no));
    days += 1;
    // A PreAuth belongs to no batch: it can be completed on a later day.
    day = { ...newDay(days), preAuths: day.preAuths };
    return item(no, "SETTLEMENT", {
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

  function item(no: number, command: string, more: Readonly<Record<string, unknown>>): Item {
    const completion = {
      partnerId: partner.id,
      externalId: externalIdOf(no),
      command,
      status: "SUCCESS",
      reqId: reqIdOf(no),
      merchantTransId: merchantTransIdOf(no),
      tid,
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
async function workTill(partner: RegisteredPartner, till: number, parts: LoadParts, random: SeededRandom) {
  const { caller, journal } = parts;
  const tid = `T${partner.index}${String(till).padStart(6, "0")}`;
  const preAuths: Sold[] = [];
  let sales: Sold[] = [];
  /** The numbers in the open batch. */
  let inBatch: number[] = [];
  await workFor(partner, parts, { owedMax: tillOwedMax, count: 1 }, next);

  async function next(): Promise<void> {
    if (inBatch.length >= settleAfter) return settle();
    const drawn = random.next();
    if (drawn < 0.15 && sales.length > 0) return voidOne(sales, true);
    if (drawn < 0.19 && sales.length > 0) return reverse();
    if (drawn < 0.25) return pay("PREAUTH");
    if (drawn < 0.32 && preAuths.length > 0) return complete();
    if (drawn < 0.35 && preAuths.length > 0) return voidOne(preAuths, false);
    return pay("SALE");
  }

  async function pay(command: "SALE" | "PREAUTH"): Promise<void> {
    const no = begin([]);
    const token = random.next() < rareShare ? random.pick(rareTokens) : random.pick(tokens);
    if (command === "SALE") inBatch.push(no);
    const taken = await run(no, {
      command,
      amount: String(amountOf(no)),
      currency: "VND",
      tid,
      mid: tillMid,
      card: { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
    });
    if (taken?.status === "SUCCESS") (command === "SALE" ? sales : preAuths).push(taken);
  }

  async function complete(): Promise<void> {
    const original = takeOne(preAuths, random);
    const no = begin([original.no]);
    inBatch.push(no);
    const amount = String(amountOf(original.no));
    const taken = await run(no, { command: "PREAUTH_COMPLETE", transactionId: original.id, amount });
    if (taken?.status === "SUCCESS") sales.push(taken);
  }

  async function voidOne(from: Sold[], isOfBatch: boolean): Promise<void> {
    const original = takeOne(from, random);
    const no = begin([original.no]);
    if (isOfBatch) inBatch.push(no);
    await run(no, { command: "VOID", transactionId: original.id });
  }

  /** A system command: it has no IPN, and what it reverses is in no total and no list. */
  async function reverse(): Promise<void> {
    const original = takeOne(sales, random);
    const fields = { command: "REVERSAL", transactionId: original.id };
    const taken = await run(begin([]), fields, { isNotified: false });
    if (taken?.status === "SUCCESS") parts.books.reverse(original.no);
  }

  async function settle(): Promise<void> {
    const no = begin(inBatch);
    const taken = await run(no, { command: "SETTLEMENT", tid, mid: tillMid });
    if (taken?.status !== "SUCCESS") return;
    inBatch = [];
    sales = [];
  }

  function begin(before: readonly number[]): number {
    return journal.begin(partner.index, [...before]);
  }

  /** The same body again until there is an answer that says what became of it. Undefined: refused, or unknown. */
  async function run(
    no: number,
    fields: Readonly<Record<string, unknown>>,
    { isNotified = true } = {},
  ): Promise<Taken | undefined> {
    const command = { ...fields, reqId: reqIdOf(no), ...(isNotified && { merchantTransId: merchantTransIdOf(no) }) };
    const ask = () => caller.call("POST", "/v1/commands", partner.apiKey, command);
    let answer = await ask();
    while (repeatable.has(answer.status)) {
      if (parts.isOver()) return undefined;
      await caller.pause();
      answer = await ask();
    }
    if (answer.status !== 200 && answer.status !== 202) {
      refused(no, String(fields["command"]), answer);
      return undefined;
    }
    const id = String(answer.body["id"]);
    if (isNotified) journal.accept(no, id);
    const { code, ...taken } = await ended(no, id, answer.body);
    if (ownCodes.has(code) && !isRare(fields)) journal.decline(no, code);
    return taken.status === "INIT" ? undefined : taken;
  }

  function refused(no: number, command: string, { status, body }: CallerResponse): void {
    countRefusal(parts, command, `${status} ${String(body["code"])}`);
    journal.refuse(no);
    inBatch = inBatch.filter((one) => one !== no);
  }

  async function ended(
    no: number,
    id: string,
    answer: CallerResponse["body"],
  ): Promise<Taken & { readonly code: string }> {
    let last = answer;
    for (let looks = 0; last["status"] === "INIT" && looks < looksMax && !parts.isOver(); looks += 1) {
      await caller.pause();
      const { status, body } = await caller.call("GET", `/v1/transactions/${id}`, partner.apiKey);
      if (status === 200) last = body;
    }
    return { no, id, status: String(last["status"]), code: String(last["isoResponseCode"]) };
  }
}

function isRare({ card }: Readonly<Record<string, unknown>>): boolean {
  return rareTokens.includes(String((card as { token?: string } | undefined)?.token));
}
