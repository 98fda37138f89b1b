import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect } from "vitest";
import type { Answers, Behaviour } from "../acquirer/simulator/behaviour.ts";
import type { CommandRequest } from "../commands/requests/request.ts";
import type { TransactionId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { LedgerBench, LedgerInstance, LedgerTill } from "./ledger.fixture.ts";
import type { Transaction } from "./store.ts";

/** The acquirer's treatments of a command, and the crashes of its instance. */
export const endings = [
  "approved",
  "declined",
  "approved as 08",
  "not_sent",
  "never",
  "lost",
  "late",
  "delayed",
  "books late",
  "crash before asking",
  "crash after asking",
  "crash before completing",
  "crash after completing",
] as const;
export type Ending = (typeof endings)[number];

/** An operation of one caller. `nth` picks one of the earlier commands. */
export type Op =
  | {
      readonly kind: "charge";
      readonly command: "SALE" | "PREAUTH";
      readonly minor: bigint;
      readonly currency: Currency;
      readonly fate: Ending;
    }
  | { readonly kind: "void"; readonly nth: number; readonly fate: Ending }
  | { readonly kind: "complete"; readonly nth: number; readonly minor: bigint; readonly fate: Ending }
  | { readonly kind: "refund"; readonly nth: number; readonly minor: bigint; readonly fate: Ending }
  | { readonly kind: "reverse"; readonly nth: number; readonly by: "id" | "reqId"; readonly fate: Ending }
  | { readonly kind: "settle"; readonly fate: Ending }
  | { readonly kind: "repeat"; readonly nth: number };
type Currency = "VND" | "USD";

const minor = fc.oneof(
  { weight: 3, arbitrary: fc.bigInt(1n, 400n) },
  { weight: 1, arbitrary: fc.bigInt(1n, 999_999_999_999n) },
);
const fate = fc.oneof(
  { weight: 3, arbitrary: fc.constant("approved" as const) },
  { weight: 2, arbitrary: fc.constantFrom(...endings) },
);
const nth = fc.nat(20);

const charge = fc.record({
  kind: fc.constant("charge" as const),
  command: fc.constantFrom("SALE" as const, "SALE" as const, "PREAUTH" as const),
  minor,
  currency: fc.constantFrom("VND" as const, "VND" as const, "USD" as const),
  fate,
});
const voiding = fc.record({ kind: fc.constant("void" as const), nth, fate });
const completing = fc.record({ kind: fc.constant("complete" as const), nth, minor, fate });
const refunding = fc.record({ kind: fc.constant("refund" as const), nth, minor, fate });
const reversing = fc.record({
  kind: fc.constant("reverse" as const),
  nth,
  by: fc.constantFrom("id" as const, "reqId" as const),
  fate,
});
const settling = fc.record({ kind: fc.constant("settle" as const), fate });
const repeating = fc.record({ kind: fc.constant("repeat" as const), nth });

export const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 6, arbitrary: charge },
  { weight: 4, arbitrary: voiding },
  { weight: 4, arbitrary: completing },
  { weight: 3, arbitrary: refunding },
  { weight: 3, arbitrary: reversing },
  { weight: 2, arbitrary: settling },
  { weight: 1, arbitrary: repeating },
);

/** Operations of the caller that closes the till while others continue to sell. */
const closingOp: fc.Arbitrary<Op> = fc.oneof(
  { weight: 2, arbitrary: settling },
  { weight: 1, arbitrary: charge },
  { weight: 1, arbitrary: voiding },
);

/** Callers sell on one terminal while one of them closes it: each has a Sale in flight when the first close arrives. */
export const callers: fc.Arbitrary<readonly (readonly Op[])[]> = fc
  .tuple(
    settling,
    fc.array(closingOp, { minLength: 1, maxLength: 3 }),
    fc.array(
      fc.tuple(
        charge.map((one) => ({
          ...one,
          command: "SALE" as const,
          currency: "VND" as const,
          fate: "approved" as const,
        })),
        fc.array(op, { minLength: 2, maxLength: 5 }),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([close, closing, sellers]) => [...sellers.map(([sale, ops]) => [sale, ...ops]), [close, ...closing]]);

/**
 * The number of turns that each message, and each answer, takes, so that a later one may arrive earlier. Those of a
 * settlement take one: it overtakes everything that it does not wait for.
 */
export const turnsOnLink = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 12 });

const behaviours: Partial<Record<Ending, Behaviour>> = {
  declined: { declines: "51" },
  "approved as 08": { approves: "08" },
  not_sent: { answers: "not_sent" },
  never: { answers: "never" satisfies Answers },
  lost: { answers: "lost" },
  late: { answers: "late" },
  delayed: { answers: "delayed" },
  "books late": { answers: { breaksAndArrivesAfterMs: 10 }, forgetsReversals: true },
};

const deaths = {
  "crash before asking": { at: "ask", phase: "before" },
  "crash after asking": { at: "ask", phase: "after" },
  "crash before completing": { at: "complete", phase: "before" },
  "crash after completing": { at: "complete", phase: "after" },
} as const;

export function isCrash(fate: Ending): fate is keyof typeof deaths {
  return fate in deaths;
}

const endPollMs = 20;

/** The system under test: instances that may crash, one partner, one terminal. */
export class RealTill {
  readonly bench: LedgerBench;
  readonly partner: Partner;
  readonly till: LedgerTill;
  readonly survivor: LedgerInstance;

  constructor(bench: LedgerBench, partner: Partner, till: LedgerTill, survivor: LedgerInstance) {
    this.bench = bench;
    this.partner = partner;
    this.till = till;
    this.survivor = survivor;
  }

  /** Runs a command with this ending: returns the ended transaction, or the code of the refusal. */
  async run(request: CommandRequest, fate: Ending): Promise<Transaction | string> {
    return isCrash(fate) ? this.#runAndCrash(request, fate) : this.#runOn(this.survivor, request, fate);
  }

  async #runOn(instance: LedgerInstance, request: CommandRequest, fate: Ending): Promise<Transaction | string> {
    const behaviour = behaviours[fate];
    let used = false;
    const ends = instance.link.behave((message) => {
      if (used || behaviour === undefined || message.command !== request.command || message.tid !== this.till.tid)
        return undefined;
      used = true;
      return behaviour;
    });
    try {
      const { transaction, done } = await instance.run(this.partner, request, request.command === "SETTLEMENT");
      return done ? transaction : await this.#ended(transaction.id);
    } catch (error) {
      return codeOf(error);
    } finally {
      ends();
    }
  }

  async #runAndCrash(request: CommandRequest, fate: keyof typeof deaths): Promise<Transaction | string> {
    const gone = await this.bench.start();
    const crashed = gone.life.endsAt({ ...deaths[fate], when: (one: Called) => isCallOf(request, one) });
    const refused = gone.run(this.partner, request, true).then(
      () => new Promise<never>(() => {}),
      (error: unknown) => codeOf(error),
    );
    // Any instance may carry out a settlement or a Reversal: then this one never comes to the point of its crash.
    const refusal = await Promise.race([crashed, refused, this.#endsWhile(gone, request)]);
    await gone.crash();
    if (typeof refusal === "string") return refusal;
    await Promise.all([this.survivor.takeOver(this.partner), this.bench.runDueNow()]);
    const begun = await this.survivor.ledger.findByReqId(this.partner.id, request.reqId);
    if (begun === undefined) return "gone without a trace";
    return this.#ended(begun.id);
  }

  async #endsWhile({ life }: LedgerInstance, { reqId }: CommandRequest): Promise<void> {
    while (life.lives) {
      const begun = await this.survivor.ledger.findByReqId(this.partner.id, reqId);
      if (begun !== undefined && begun.state !== "INIT") return;
      await sleep(endPollMs);
    }
  }

  async #ended(id: TransactionId): Promise<Transaction> {
    await expect
      .poll(
        async () => {
          const { state } = await this.survivor.find(this.partner, id);
          if (state === "INIT") await this.bench.runDueNow();
          return state;
        },
        { interval: 50 },
      )
      .not.toBe("INIT");
    return this.survivor.find(this.partner, id);
  }
}

/** A message to the acquirer, or a completion. */
interface Called {
  readonly command?: string;
  readonly facts?: { readonly fields: Readonly<Record<string, string>> };
}

function isCallOf(request: CommandRequest, { command, facts }: Called): boolean {
  return facts === undefined ? command === request.command : facts.fields["reqId"] === request.reqId;
}

function codeOf(error: unknown): string {
  if (error instanceof Error && "code" in error) return String(error.code);
  throw error;
}
