import {
  batchTransitions,
  guards,
  references,
  reversalTransitions,
  statusTransitions,
  type TransactionStatus,
  type Transition,
  transactionTransitions,
} from "../../packages/server/src/commands/states.ts";
import { code, codeBlock, type GeneratedFile, table, withParts } from "./document.ts";

/** Each way from one state to another once: the table below it has the events. */
function diagram(transitions: readonly Transition<string>[]): string {
  const moves = transitions.filter(({ from, to }) => from !== to);
  const left = new Set(moves.map(({ from }) => from));
  const last = transitions.map(({ to }) => to).filter((state) => !left.has(state));
  const lines = [
    ...moves.map(({ from, to }) => `${from ?? "[*]"} --> ${to}`),
    ...last.map((state) => `${state} --> [*]`),
  ];
  return codeBlock("mermaid", ["stateDiagram-v2", ...[...new Set(lines)].map((line) => `  ${line}`)].join("\n"));
}

function transitionTable(transitions: readonly Transition<string>[]): string {
  return table(
    ["From", "Event", "To", "Condition or effect"],
    transitions.map(({ from, event, to, guard = "" }) => [from === null ? "new" : code(from), event, code(to), guard]),
  );
}

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
  return withParts("docs/internals/states.md", {
    statuses: whole(transactionTransitions),
    meanings: table(
      ["State", "Meaning"],
      Object.entries(statusMeanings).map(([state, meaning]) => [code(state), meaning]),
    ),
    standing: whole([...statusTransitions, ...begun()]),
    batch: whole(batchTransitions),
    reversal: whole(reversalTransitions),
  });
}
