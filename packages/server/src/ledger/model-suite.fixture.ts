import fc from "fast-check";
import { afterAll, beforeAll, expect, type TestAPI } from "vitest";
import type { CommandRequest } from "../commands/requests/request.ts";
import { audit } from "./books.fixture.ts";
import { field, type LedgerBench, LedgerTill } from "./ledger.fixture.ts";
import { callers, type Ending, isCrash, type Op, op, RealTill, turnsOnLink } from "./model.fixture.ts";
import type { Transaction } from "./store.ts";

export interface ModelOptions {
  readonly open: () => Promise<LedgerBench>;
  /** Runs of each test, and how long one may take; TEST_RUNS and TEST_SEED choose others. */
  readonly runs: number;
  readonly runMs: number;
}

/** The time for which a turn waits for callers that have not arrived yet. */
const gatherMs = 20;

/** A transaction according to the model, which knows the rules but not their implementation. */
interface Entry {
  readonly request: CommandRequest;
  readonly transaction: Transaction;
  readonly command: "SALE" | "PREAUTH" | "PREAUTH_COMPLETE" | "REFUND" | "VOID";
  readonly failed: boolean;
  readonly minor: bigint;
  readonly currency: "VND" | "USD";
  /** null: no batch. */
  readonly batch: number | null;
  fate: "stands" | "voided" | "completed" | "reversed";
  /** The sum of its Refunds. */
  refundedMinor: bigint;
}

interface Model {
  batch: number;
  readonly entries: Entry[];
}

const outcomes: Record<Ending, readonly ["SUCCESS" | "ERROR", string]> = {
  approved: ["SUCCESS", "00"],
  "crash after completing": ["SUCCESS", "00"],
  declined: ["ERROR", "51"],
  "approved as 08": ["ERROR", "08"],
  not_sent: ["ERROR", "91"],
  never: ["ERROR", "68"],
  lost: ["ERROR", "68"],
  late: ["ERROR", "68"],
  delayed: ["ERROR", "68"],
  "books late": ["ERROR", "68"],
  "crash before asking": ["ERROR", "96"],
  "crash after asking": ["ERROR", "96"],
  "crash before completing": ["ERROR", "96"],
};

const finals = { voided: "already_voided", completed: "already_completed", reversed: "already_reversed" } as const;

/** The refusals for transactions that nothing can follow. */
const refusals = {
  void: "not_voidable",
  complete: "not_completable",
  refund: "not_refundable",
  reverse: "not_reversible",
} as const;

/** The expected refusal of a command on an entry. */
function refusalOf(model: Model, kind: "void" | "complete" | "refund" | "reverse", entry: Entry): string | undefined {
  if (kind === "complete" && entry.command !== "PREAUTH") return "not_completable";
  if (kind === "refund" && entry.command === "PREAUTH") return "not_refundable";
  if (entry.command === "VOID" || entry.command === "REFUND") return refusals[kind];
  if (entry.failed) return "not_successful";
  if (entry.fate !== "stands") return finals[entry.fate];
  if (kind === "refund") return entry.batch === model.batch ? "not_settled" : undefined;
  return entry.batch !== null && entry.batch < model.batch ? "batch_settled" : undefined;
}

/** The currency of the open batch. */
function boundTo({ batch, entries }: Model): string | undefined {
  return entries.find((entry) => entry.batch === batch && !entry.failed && entry.fate !== "reversed")?.currency;
}

function written(minor: bigint, currency: "VND" | "USD"): string {
  if (currency === "VND") return String(minor);
  const digits = String(minor).padStart(3, "0");
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

class Step implements fc.AsyncCommand<Model, RealTill> {
  readonly #op: Op;

  constructor(one: Op) {
    this.#op = one;
  }

  check({ entries }: Readonly<Model>): boolean {
    return !("nth" in this.#op) || entries.length > 0;
  }

  async run(model: Model, real: RealTill): Promise<void> {
    await this.#do(this.#op, model, real);
    await real.bench.quiet(real.partner);
  }

  toString(): string {
    return JSON.stringify(this.#op, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value));
  }

  #do(one: Op, model: Model, real: RealTill): Promise<void> {
    if (one.kind === "charge") return charge(one, model, real);
    if (one.kind === "settle") return settle(one.fate, model, real);
    const entry = model.entries[one.nth % model.entries.length];
    if (entry === undefined) throw new Error("there is something to follow");
    if (one.kind === "repeat") return repeat(entry, real);
    if (one.kind === "reverse") return reverse(one, entry, model, real);
    if (one.kind === "refund") return refund(one, entry, model, real);
    return follow(one, entry, model, real);
  }
}

/** An answer that came late may have begun a Reversal since everything was quiet. */
async function runOf(real: RealTill, request: CommandRequest, fate: Ending): Promise<Transaction | string> {
  let ran = await real.run(request, fate);
  while (ran === "in_doubt") {
    await real.bench.quiet(real.partner);
    ran = await real.run(request, fate);
  }
  return ran;
}

async function charge(one: Extract<Op, { kind: "charge" }>, model: Model, real: RealTill): Promise<void> {
  const { command, minor, currency, fate } = one;
  const amount = written(minor, currency);
  const { till } = real;
  const request =
    command === "SALE" ? till.sale("tok_approve", amount, currency) : till.preAuth("tok_approve", amount, currency);
  const bound = boundTo(model);
  const refusal = command === "SALE" && bound !== undefined && bound !== currency ? "batch_currency" : undefined;
  const ended = expected(await runOf(real, request, fate), refusal, fate);
  const batch = command === "SALE" ? model.batch : null;
  if (ended) model.entries.push({ ...entryOf(request, ended), command, minor, currency, batch });
}

async function refund(one: Extract<Op, { kind: "refund" }>, original: Entry, model: Model, real: RealTill) {
  const { minor, fate } = one;
  const { currency } = original;
  const request = real.till.refund(original.transaction, written(minor, currency));
  const bound = boundTo(model);
  const refusal =
    refusalOf(model, "refund", original) ??
    (original.refundedMinor + minor > original.minor ? "amount_above_refundable" : undefined) ??
    (bound !== undefined && bound !== currency ? "batch_currency" : undefined);
  const ended = expected(await runOf(real, request, fate), refusal, fate);
  if (!ended) return;
  if (ended.state === "SUCCESS") original.refundedMinor += minor;
  const { batch } = model;
  model.entries.push({ ...entryOf(request, ended), command: "REFUND", minor, currency, batch });
}

async function follow(one: Extract<Op, { kind: "void" | "complete" }>, original: Entry, model: Model, real: RealTill) {
  const { kind, fate } = one;
  const { currency } = original;
  const minor = kind === "void" ? original.minor : one.minor;
  const request =
    kind === "void"
      ? real.till.void(original.transaction)
      : real.till.complete(original.transaction, written(minor, currency));
  const bound = boundTo(model);
  const refusal =
    refusalOf(model, kind, original) ??
    (kind === "complete" && minor > original.minor ? "amount_above_authorised" : undefined) ??
    (kind === "complete" && bound !== undefined && bound !== currency ? "batch_currency" : undefined);
  const ended = expected(await runOf(real, request, fate), refusal, fate);
  if (!ended) return;
  if (ended.state === "SUCCESS") original.fate = kind === "void" ? "voided" : "completed";
  const command = kind === "void" ? "VOID" : "PREAUTH_COMPLETE";
  const batch = kind === "void" && original.batch === null ? null : model.batch;
  model.entries.push({ ...entryOf(request, ended), command, minor, currency, batch });
}

async function reverse(
  one: Extract<Op, { kind: "reverse" }>,
  entry: Entry,
  model: Model,
  real: RealTill,
): Promise<void> {
  const { till } = real;
  const request = one.by === "id" ? till.reversal(entry.transaction) : till.reversalOf(entry.request.reqId);
  // The Reversal itself is repeated until it is answered, by any instance, so it always ends.
  const fate = isCrash(one.fate) ? one.fate : "approved";
  const ran = await runOf(real, request, fate);
  // An answer that came late may have begun its Reversal since everything was quiet: then the REVERSAL waits for that.
  const waited = entry.failed && typeof ran !== "string" && (await waitedFor(entry, ran, real));
  const ended = expected(ran, waited ? undefined : refusalOf(model, "reverse", entry), "approved");
  if (ended && !entry.failed) entry.fate = "reversed";
}

/** The REVERSAL is noted at the original's Reversal, unless that began again and ended before it could be. */
async function waitedFor({ transaction }: Entry, { id }: Transaction, { bench }: RealTill): Promise<boolean> {
  const noted = `
    SELECT FROM reversals r JOIN transactions t ON t.partner_id = r.partner_id AND t.id = r.transaction_id
    WHERE t.id = $1 AND (r.requested_by = $2 OR r.left_by > t.completed_at)`;
  return (await bench.query(noted, [transaction.id, id])).length > 0;
}

async function settle(fate: Ending, model: Model, real: RealTill): Promise<void> {
  const settled = await runOf(real, real.till.settlement(), fate);
  if (typeof settled === "string") throw new Error(`the settlement was refused: ${settled}`);
  const counted = model.entries.filter(({ batch, failed, fate: end, command }) => {
    return batch === model.batch && !failed && end !== "reversed" && command !== "VOID" && command !== "REFUND";
  });
  const voided = counted.filter(({ fate: end }) => end === "voided");
  const standing = counted.filter(({ fate: end }) => end !== "voided");
  const { facts, state } = settled;
  expect(state).toBe(fate === "declined" ? "ERROR" : "SUCCESS");
  if (facts.kind !== "settlement") throw new Error("a settlement has its own facts");
  expect(facts.fields).toMatchObject({ saleQuantity: String(counted.length), voidQuantity: String(voided.length) });
  const list = state === "SUCCESS" ? standing : [];
  expect(facts.settlementList.map(({ reqId }) => reqId)).toEqual(list.map(({ request }) => request.reqId));
  if (state === "SUCCESS") model.batch = (model.batch % 999_999) + 1;
}

async function repeat({ request, transaction }: Entry, real: RealTill): Promise<void> {
  const again = await real.run(request, "approved");
  expect(again).toMatchObject({ id: transaction.id, state: transaction.state });
}

function expected(ran: Transaction | string, refusal: string | undefined, fate: Ending): Transaction | undefined {
  if (refusal !== undefined) return void expect(ran).toBe(refusal);
  if (typeof ran === "string") throw new Error(`refused as ${ran}, which no rule says`);
  expect([ran.state, field(ran, "isoResponseCode")]).toEqual(outcomes[fate]);
  return ran;
}

function entryOf(request: CommandRequest, transaction: Transaction) {
  return { request, transaction, failed: transaction.state === "ERROR", fate: "stands", refundedMinor: 0n } as const;
}

async function openTill(bench: LedgerBench): Promise<RealTill> {
  const partner = await bench.partner({ refunds: "notified" });
  const till = new LedgerTill();
  const living = bench.instances.find(({ life }) => life.lives) ?? (await bench.start());
  const real = new RealTill(bench, partner, till, living);
  // Close to the wrap-around of the counters, so that every longer run includes it.
  await bench.query(
    "INSERT INTO terminals (partner_id, tid, mid, trace_no, invoice_no) VALUES ($1, $2, $3, 999990, 999995)",
    [partner.id, till.tid, till.mid],
  );
  return real;
}

/** The rules of the ledger, over one bank. */
export function ledgerModel(test: TestAPI, { open, runs: runsDefault, runMs }: ModelOptions): void {
  const runs = Number(process.env["TEST_RUNS"] ?? runsDefault);
  // Shrinking a failure takes many runs, and the seed reproduces it anyway.
  const timeLimitMs = 20_000 + runs * runMs;
  const timeoutMs = timeLimitMs + 300_000;
  let bench: LedgerBench;
  beforeAll(async () => {
    bench = await open();
  });
  afterAll(() => bench.close());

  test("any sequence of commands, answers, timeouts and crashes follows the rules", {
    timeout: timeoutMs,
  }, async () => {
    const steps = fc.commands([op.map((one) => new Step(one))], { maxCommands: 25 });
    await fc.assert(
      fc.asyncProperty(steps, async (commands) => {
        const real = await openTill(bench);
        await fc.asyncModelRun(() => ({ model: { batch: 1, entries: [] }, real }), commands);
        // Before the settlement too: a Batch Upload would remove a wrong charge from the bank's books.
        await audit(bench, real.partner, [real.till]);
        await real.survivor.ended(real.partner, real.till.settlement());
        await audit(bench, real.partner, [real.till]);
      }),
      { numRuns: runs, interruptAfterTimeLimit: timeLimitMs },
    );
  });

  test("concurrent callers on one terminal, in any order of calls and answers, leave consistent books", {
    timeout: timeoutMs,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(callers, turnsOnLink, fc.scheduler(), async (all, turns, scheduler) => {
        const real = await openTill(bench);
        const known: Known[] = [];
        let sent = 0;
        bench.onLink = async (what) => {
          const [turn = 1] = what.includes("SETTLEMENT") ? [] : turns.slice(sent % turns.length);
          sent += 1;
          for (let left = turn; left > 0; left -= 1) await scheduler.schedule(Promise.resolve(), what);
        };
        const called = all.map(async (ops) => {
          for (const one of ops) {
            await scheduler.schedule(Promise.resolve(), `a caller's ${one.kind}`);
            await call(one, known, real);
          }
        });
        try {
          await inAnyOrder(scheduler, called);
        } finally {
          bench.onLink = undefined;
          await scheduler.waitIdle();
        }
        await bench.quiet(real.partner);
        // Before the settlement too: a Batch Upload would remove a wrong charge from the bank's books.
        await audit(bench, real.partner, [real.till]);
        await real.survivor.ended(real.partner, real.till.settlement());
        await audit(bench, real.partner, [real.till]);
      }),
      { numRuns: runs, interruptAfterTimeLimit: timeLimitMs },
    );
  });
}

/** Waits until all callers are waiting for their turn, within a bound, before one of them gets it. */
async function inAnyOrder(scheduler: fc.Scheduler, callers: readonly Promise<void>[]): Promise<void> {
  let left = callers.length;
  const ended = Promise.all(
    callers.map((caller) =>
      caller.finally(() => {
        left -= 1;
      }),
    ),
  );
  // The failure is reported below; the others must not wait forever.
  ended.catch(() => {
    left = 0;
  });
  while (left > 0) {
    const deadlineMs = performance.now() + gatherMs;
    while (scheduler.count() < left && performance.now() < deadlineMs) await new Promise((turn) => setImmediate(turn));
    if (scheduler.count() > 0) await scheduler.waitNext(1);
  }
  await ended;
}

/** Runs the operations of one caller. The ledger decides whether each is allowed. */
async function call(one: Op, known: Known[], real: RealTill): Promise<void> {
  const { till } = real;
  const picked = "nth" in one ? known[one.nth % Math.max(known.length, 1)] : undefined;
  if ("nth" in one && picked === undefined) return;
  // A caller without an id can refer to a command only by its reqId.
  if (["void", "complete", "refund"].includes(one.kind) && picked?.id === undefined) return;
  const target = { id: picked?.id ?? ("" as Transaction["id"]), request: picked?.request ?? till.logon() };
  const amount = "minor" in one ? written(one.minor, one.kind === "charge" ? one.currency : "VND") : "";
  const requests: Record<Op["kind"], () => CommandRequest> = {
    charge: () => {
      const { command, currency } = one as Extract<Op, { kind: "charge" }>;
      return command === "SALE"
        ? till.sale("tok_approve", amount, currency)
        : till.preAuth("tok_approve", amount, currency);
    },
    void: () => till.void(target),
    refund: () => till.refund(target, amount),
    complete: () => till.complete(target, amount),
    reverse: () => till.reversalOf(target.request.reqId),
    settle: () => till.settlement(),
    repeat: () => target.request,
  };
  const request = requests[one.kind]();
  const entry: Known = { request, id: undefined };
  if (isFollowable(request) && one.kind !== "repeat") known.push(entry);
  const ended = await real.run(request, fateOf(one));
  if (typeof ended !== "string") entry.id = ended.id;
}

/** The callers' knowledge of a command: its id only after it was answered. */
interface Known {
  readonly request: CommandRequest;
  id: Transaction["id"] | undefined;
}

function isFollowable({ command }: CommandRequest): boolean {
  return command !== "SETTLEMENT" && command !== "REVERSAL";
}

function fateOf(one: Op): Ending {
  // A refused Reversal leaves a charge for the operator to resolve; a settlement survives its instance anyway.
  if (one.kind === "reverse" || !("fate" in one)) return "approved";
  return one.kind === "settle" && isCrash(one.fate) ? "approved" : one.fate;
}
