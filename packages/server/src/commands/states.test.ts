import { type Command, commands } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { approvedPreAuth, approvedSale, dayMs, preAuthDays } from "./original.fixture.ts";
import { originalRefusal } from "./original.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import { reversalStateAfter } from "./reversal.ts";
import {
  type OriginalState,
  type ReferringCommand,
  references,
  reversalStates,
  type TransactionStatus,
  transactionStatuses,
  transactionStatusOf,
} from "./states.ts";
import { terminalRefusal } from "./terminal.ts";
import { batchTransitions, reversalTransitions, statusTransitions, type Transition } from "./transitions.fixture.ts";

interface Asked {
  readonly original: OriginalState;
  readonly command: ReferringCommand;
  readonly amountMinor: bigint;
  readonly nowMs: number;
}

function refusalOf({ original, ...asks }: Asked) {
  return originalRefusal(original, { ...asks, preAuthDays });
}

/** The tables a second time, so that a wrong one is noticed. */
const accepted: Readonly<
  Record<ReferringCommand, readonly [of: readonly Command[], from: readonly TransactionStatus[]]>
> = {
  VOID: [["SALE", "PREAUTH", "PREAUTH_COMPLETE"], ["APPROVED"]],
  PREAUTH_COMPLETE: [["PREAUTH"], ["APPROVED"]],
  REVERSAL: [
    ["SALE", "PREAUTH", "PREAUTH_COMPLETE"],
    ["APPROVED", "IN_FLIGHT", "IN_DOUBT"],
  ],
  REFUND: [["SALE", "PREAUTH_COMPLETE"], ["SETTLED"]],
};

function isAccepted({ original, command, amountMinor, nowMs }: Asked): boolean {
  const [of, from] = accepted[command];
  const status = transactionStatusOf(original);
  if (original.origin === "switch" || !of.includes(original.command) || !from.includes(status)) return false;
  if (status === "IN_DOUBT") {
    return original.state === "ERROR" && original.reversal === "pending" && original.successor === null;
  }
  if (command === "REVERSAL" && status === "APPROVED") return original.reversal !== "stands";
  if (command === "REFUND") return original.refundedMinor + amountMinor <= original.amountMinor;
  if (command !== "PREAUTH_COMPLETE") return true;
  return nowMs <= original.createdAtMs + preAuthDays * dayMs && amountMinor <= original.amountMinor;
}

/** The commands that hold the transaction they refer to; a Refund does not. */
const holding = ["VOID", "PREAUTH_COMPLETE", "REVERSAL"] as const;
const referring = [...holding, "REFUND"] as const;
const successors: readonly OriginalState["successor"][] = [
  null,
  ...holding.flatMap((command) => (["in_flight", "in_doubt", "done"] as const).map((state) => ({ command, state }))),
];

function* everyOriginal(): Generator<OriginalState> {
  for (const command of commands)
    for (const state of ["INIT", "SUCCESS", "ERROR"] as const)
      for (const origin of ["command", "switch"] as const)
        for (const successor of successors)
          for (const reversal of [null, ...reversalStates])
            for (const batch of ["open", "closing", "closed", "none"] as const)
              yield { ...approvedSale, command, state, origin, successor, reversal, batch };
}

function* everyAsk(): Generator<Asked> {
  for (const original of everyOriginal())
    for (const command of referring)
      for (const nowMs of [preAuthDays * dayMs, preAuthDays * dayMs + 1])
        for (const amountMinor of [original.amountMinor, original.amountMinor + 1n])
          for (const refundedMinor of [0n, 1n])
            yield { original: { ...original, refundedMinor }, command, nowMs, amountMinor };
}

test("a command on a transaction is accepted in the cases of the tables, of every state there can be", () => {
  const wrong: Asked[] = [];
  const found = new Set<string>();
  for (const asked of everyAsk()) {
    const isBegun = refusalOf(asked) === undefined;
    if (isBegun !== isAccepted(asked)) wrong.push(asked);
    if (isBegun) found.add(`${asked.command} of ${asked.original.command} ${transactionStatusOf(asked.original)}`);
  }
  expect(wrong).toEqual([]);
  const named = Object.entries(accepted).flatMap(([command, [of, from]]) =>
    of.flatMap((kind) => from.map((status) => `${command} of ${kind} ${status}`)),
  );
  expect([...found].sort()).toEqual(named.sort());
});

/** A transaction as the ledger's own statements change it, with what they need to know beside. */
interface Life extends OriginalState {
  /** The state of the Reversal of a Void or Complete that holds it. */
  readonly successorReversal: "pending" | "parked" | null;
  /** Voids, Completes and Reversals of it that succeeded. */
  readonly taken: number;
}

type Step = (life: Life) => Life;

function begin(command: (typeof holding)[number]): Step {
  return (life) => {
    const asked = { original: life, command, amountMinor: life.amountMinor, nowMs: 0 };
    return refusalOf(asked) === undefined ? { ...life, successor: { command, state: "in_flight" } } : life;
  };
}

function answer(state: "SUCCESS" | "ERROR", reverse: boolean): Step {
  return (life) => {
    if (life.state !== "INIT") return life;
    return { ...life, state, ...(reverse && { reversal: "pending" as const }) };
  };
}

function successorAnswered(outcome: "done" | "free" | "in_doubt"): Step {
  return (life) => {
    const { successor } = life;
    if (successor === null || successor.command === "REVERSAL" || successor.state !== "in_flight") return life;
    if (outcome === "free") return { ...life, successor: null };
    const held = { ...life, successor: { ...successor, state: outcome } };
    return outcome === "done" ? { ...held, taken: life.taken + 1 } : { ...held, successorReversal: "pending" };
  };
}

/** A partner's Reversal waits for the outcome of what it reverses. */
const queueReversal: Step = (life) =>
  life.successor?.command === "REVERSAL" && life.successor.state === "in_flight" && life.state === "SUCCESS"
    ? { ...life, reversal: "pending" }
    : life;

function reversalAnswered(end: "done" | "parked"): Step {
  return (life) => {
    if (life.reversal === "pending") {
      const byPartner = life.successor?.command === "REVERSAL";
      const state = end === "done" ? ("done" as const) : ("in_doubt" as const);
      const successor = byPartner ? { command: "REVERSAL" as const, state } : life.successor;
      const taken = life.taken + (end === "done" && life.state === "SUCCESS" ? 1 : 0);
      return { ...life, reversal: end, successor, taken };
    }
    if (life.successorReversal !== "pending") return life;
    return end === "done"
      ? { ...life, successor: null, successorReversal: null }
      : { ...life, successorReversal: "parked" };
  };
}

/** The operator ends a parked one. */
const resolved: Step = (life) => {
  const isOwn = life.reversal === "parked";
  if (!isOwn && life.successorReversal !== "parked") return life;
  const pending = isOwn
    ? { ...life, reversal: "pending" as const }
    : { ...life, successorReversal: "pending" as const };
  return reversalAnswered("done")(pending);
};

const letStand: Step = (life) => {
  const { reversal, successor, successorReversal, taken } = life;
  if (reversal === "parked") {
    const isFree = successor?.command === "REVERSAL";
    return { ...life, state: "SUCCESS", reversal: "stands", successor: isFree ? null : successor };
  }
  if (successor === null || successorReversal !== "parked") return life;
  return { ...life, successor: { ...successor, state: "done" }, successorReversal: null, taken: taken + 1 };
};

const beginSettlement: Step = (life) => (life.batch === "open" ? { ...life, batch: "closing" } : life);

function settlementAnswered(accepted: boolean): Step {
  return (life) => {
    const inFlight = life.state === "INIT" || life.successor?.state === "in_flight";
    const pending = life.reversal === "pending" || life.successorReversal === "pending";
    if (life.batch !== "closing" || inFlight || pending) return life;
    return { ...life, batch: accepted ? "closed" : "open" };
  };
}

const steps: Readonly<Record<string, Step>> = {
  void: begin("VOID"),
  complete: begin("PREAUTH_COMPLETE"),
  reverse: begin("REVERSAL"),
  approved: answer("SUCCESS", false),
  declined: answer("ERROR", false),
  silent: answer("ERROR", true),
  "successor succeeds": successorAnswered("done"),
  "successor fails": successorAnswered("free"),
  "successor silent": successorAnswered("in_doubt"),
  "reversal queued": queueReversal,
  "reversal done": reversalAnswered("done"),
  "reversal parked": reversalAnswered("parked"),
  resolved,
  stands: letStand,
  settle: beginSettlement,
  settled: settlementAnswered(true),
  "not settled": settlementAnswered(false),
};

const births = (["SALE", "PREAUTH", "PREAUTH_COMPLETE"] as const satisfies readonly Command[]).map(
  (command): Life => ({
    ...(command === "PREAUTH" ? approvedPreAuth : approvedSale),
    command,
    state: "INIT",
    successorReversal: null,
    taken: 0,
  }),
);

const lives = fc.record({
  birth: fc.constantFrom(...births),
  names: fc.array(fc.constantFrom(...Object.keys(steps)), { maxLength: 40 }),
});

function live({ birth, names }: { readonly birth: Life; readonly names: readonly string[] }): Life[] {
  const life = [birth];
  for (const name of names) life.push(steps[name]?.(life.at(-1) ?? birth) ?? birth);
  return life;
}

const lifeKey = ({ amountMinor: _, refundedMinor: __, ...life }: Life) => JSON.stringify(life);
const stepKey = (from: TransactionStatus | null, to: TransactionStatus) => `${from} → ${to}`;
const stepsInTables = new Set([
  ...statusTransitions.map(({ from, to }) => stepKey(from, to)),
  ...Object.values(references).flatMap(({ cases }) =>
    cases.filter(({ from, to }) => from !== to).map(({ from, to }) => stepKey(from, to)),
  ),
]);

describe("a transaction's life, in whatever order things come", () => {
  test("has at most one Void, Complete or Reversal that succeeds", () => {
    fc.assert(
      fc.property(lives, (life) => (live(life).at(-1)?.taken ?? 0) <= 1),
      { numRuns: 5_000 },
    );
  });

  test("is over for every command that holds it once it was settled, reversed, voided, completed or failed", () => {
    const over: ReadonlySet<TransactionStatus> = new Set(["SETTLED", "REVERSED", "VOIDED", "COMPLETED", "FAILED"]);
    fc.assert(
      fc.property(lives, fc.constantFrom(...holding), (life, command) => {
        let ended: TransactionStatus | undefined;
        for (const original of live(life)) {
          const standing = transactionStatusOf(original);
          if (ended !== undefined) expect(standing).toBe(ended);
          if (!over.has(standing)) continue;
          ended = standing;
          expect(refusalOf({ original, command, amountMinor: 1n, nowMs: 0 })).toBeDefined();
        }
      }),
      { numRuns: 5_000 },
    );
  });

  test("takes the steps of the tables and no other, and all of them", () => {
    const taken = new Set(births.map((birth) => stepKey(null, transactionStatusOf(birth))));
    // Few enough to visit every life there can be, not a sample of them.
    const visited = new Map(births.map((birth) => [lifeKey(birth), birth]));
    for (const before of visited.values()) {
      for (const step of Object.values(steps)) {
        const after = step(before);
        visited.set(lifeKey(after), after);
        const [from, to] = [transactionStatusOf(before), transactionStatusOf(after)];
        if (from !== to) taken.add(stepKey(from, to));
      }
    }
    expect([...taken].sort()).toEqual([...stepsInTables].sort());
  });

  test("reaches every standing there is", () => {
    const reached = new Set([...stepsInTables].map((step) => step.split(" → ")[1]));
    expect([...reached].sort()).toEqual([...transactionStatuses].sort());
  });
});

const answered = (responseCode: string): AcquirerOutcome => ({
  kind: "answered",
  answer: { responseCode, approveCode: "", refId: "", tc: "" },
  approvals: new Set(["00", "10"]),
});
const outcomes: readonly AcquirerOutcome[] = [
  ...["00", "25", "51", "10"].map(answered),
  { kind: "no_answer" },
  { kind: "not_sent" },
  { kind: "instance_gone" },
];
const inTime = { tries: 1, mayOvertake: false, isSameSite: true, wasUnknown: false };
const targets = <State extends string>(table: readonly Transition<State>[], from: State) =>
  new Set(table.filter((step) => step.from === from).map(({ to }) => to));

describe("the other tables", () => {
  test("need none for INIT: each outcome makes it SUCCESS or ERROR", () => {
    const states = new Set(outcomes.map((outcome) => judge(outcome, { mode: "whole" }).state));
    expect(states).toEqual(new Set(["SUCCESS", "ERROR"]));
  });

  test("lead a PENDING Reversal to what outcomes make of it", () => {
    const states = new Set(outcomes.map((outcome) => reversalStateAfter(outcome, inTime).toUpperCase()));
    expect(targets(reversalTransitions, "PENDING") as ReadonlySet<string>).toEqual(states);
  });

  test("let a Settlement begin on the same batches as the terminal does", () => {
    for (const batch of ["open", "closing"] as const) {
      const terminal = { mid: "M1", acquirer: "", batch, batchCurrency: null, isSettlementInDoubt: false };
      const begins = terminalRefusal(terminal, { mid: "M1", entersBatchWith: null, money: true }) === undefined;
      const inTable = batchTransitions.some(
        ({ from, event }) => from === batch.toUpperCase() && event === "SETTLEMENT begins",
      );
      expect(begins).toBe(inTable);
    }
    expect(targets(batchTransitions, "CLOSED").size).toBe(0);
  });
});
