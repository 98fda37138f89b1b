import { type Guard, references, type TransactionStatus } from "../../packages/server/src/commands/states.ts";
import {
  batchTransitions,
  reversalTransitions,
  statusTransitions,
  type Transition,
} from "../../packages/server/src/commands/transitions.fixture.ts";
import { code, codeBlock, type GeneratedFile, table, withParts } from "./document.ts";

/** Each way from one state to another once: the table below it has the events. */
function diagram(transitions: readonly Transition<string>[]): string {
  const moves = Map.groupBy(
    transitions.filter(({ from, to }) => from !== to),
    ({ from }) => from ?? "new",
  );
  const lines = [...moves].map(([from, list]) => `${from} --> ${[...new Set(list.map(({ to }) => to))].join(" & ")}`);
  return codeBlock("mermaid", ["flowchart LR", ...lines.map((line) => `  ${line}`)].join("\n"));
}

function transitionTable(transitions: readonly Transition<string>[]): string {
  return table(
    ["From", "Event", "To", "Condition or effect"],
    [...Map.groupBy(transitions, ({ from, event }) => `${from} ${event}`).values()].map((ends) => [
      ends[0]?.from ? code(ends[0].from) : "new",
      ends[0]?.event ?? "",
      ends.map(({ to }) => code(to)).join(", "),
      ends.length === 1 ? (ends[0]?.guard ?? "") : ends.map(({ to, guard }) => `${code(to)}: ${guard}`).join("; "),
    ]),
  );
}

const guards: Readonly<Record<Guard, string>> = {
  within_days: "at most PAYBELL_PREAUTH_DAYS old",
  within_amount: "at most the authorised amount",
  within_refundable: "all its Refunds together are at most its amount",
  being_reversed: "it did not succeed, its own Reversal is PENDING, and no other REVERSAL waits for that",
  never_refused: "its own Reversal does not say that it STANDS",
};

function begun(): Transition<TransactionStatus>[] {
  return Object.entries(references).flatMap(([command, { of, cases }]) =>
    cases.map(({ from, to, guards: held }) => ({
      from,
      event: `${command} of ${of.join(", ")} begins`,
      to,
      guard: ["no switch reported it", ...held.map((guard) => guards[guard])].join(", "),
    })),
  );
}

const statusMeanings: Readonly<Record<TransactionStatus, string>> = {
  IN_FLIGHT: "no outcome yet",
  FAILED: "it ended as ERROR, and nothing is charged",
  APPROVED: "it succeeded, and no later command has used or undone it; its batch is OPEN, or it is a PreAuth",
  RESERVED: "a Void, PreAuth-Complete or partner's Reversal of it has no outcome yet",
  IN_DOUBT: "perhaps charged: locked until a Reversal of it, or of its Void or PreAuth-Complete, is DONE",
  VOIDED: "its Void succeeded",
  COMPLETED: "a PreAuth whose PreAuth-Complete succeeded, even if that one is voided or reversed later",
  REVERSED: "a Reversal undid it: it is in no total and no list",
  SETTLING: "it succeeded, and its batch is CLOSING",
  SETTLED: "it succeeded, and its batch is CLOSED",
};

/** Every state and transition, from the tables that the tests check the commands against. */
export function statesReference(): GeneratedFile {
  const whole = (transitions: readonly Transition<string>[]) =>
    `${diagram(transitions)}\n\n${transitionTable(transitions)}`;
  const meanings = table(
    ["State", "Meaning"],
    Object.entries(statusMeanings).map(([state, meaning]) => [code(state), meaning]),
  );
  return withParts("docs/internals/states.md", {
    transaction: `${meanings}\n\n${whole([...statusTransitions, ...begun()])}`,
    batch: transitionTable(batchTransitions),
    reversal: whole(reversalTransitions),
  });
}
