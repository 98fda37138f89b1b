import {
  batchTransitions,
  beginnings,
  guards,
  reversalTransitions,
  statusTransitions,
  type Transition,
  transactionTransitions,
} from "../../packages/server/src/commands/states.ts";
import type { TransactionStatus } from "../../packages/server/src/commands/transaction-status.ts";
import { code, codeBlock, type GeneratedFile, markdown, table } from "./document.ts";

function diagram(transitions: readonly Transition<string>[]): string {
  const left = new Set(transitions.filter(({ from, to }) => from !== to).map(({ from }) => from));
  const last = [...new Set(transitions.map(({ to }) => to))].filter((state) => !left.has(state));
  const lines = [
    ...transitions.map(({ from, event, to }) => `${from ?? "[*]"} --> ${to} : ${event}`),
    ...last.map((state) => `${state} --> [*]`),
  ];
  return codeBlock("mermaid", ["stateDiagram-v2", ...lines.map((line) => `  ${line}`)].join("\n"));
}

function transitionTable(transitions: readonly Transition<string>[]): string {
  return table(
    ["From", "Event", "To", "Condition or effect"],
    transitions.map(({ from, event, to, guard = "" }) => [from === null ? "new" : code(from), event, code(to), guard]),
  );
}

function begun(): Transition<TransactionStatus>[] {
  return beginnings.map(({ from, command, of, to, guards: held }) => ({
    from,
    event: `${command} of ${of.join(", ")} begins`,
    to,
    guard: held.map((guard) => guards[guard]).join(", "),
  }));
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
  const standing = [...statusTransitions, ...begun()];
  return {
    path: "docs/internals/states.md",
    text: markdown(
      "States",
      "This page has the states of a transaction, a batch and a Reversal, each as a diagram and as a table. The " +
        "tables are complete: a test checks that a command is refused exactly if they have no step for it, and that " +
        "no other step is taken, whatever the order of commands, answers and settlements.",
      "## A transaction's status",
      "This is `status` of the specification, [section 3](../reference/specification.md#3-states). INIT is never " +
        "sent. SUCCESS and ERROR are final. Each is notified by one IPN, except for the system commands.",
      diagram(transactionTransitions),
      transitionTable(transactionTransitions),
      "## The state of a transaction that others refer to",
      "This state decides which command may still refer to a Sale, PreAuth or PreAuth-Complete. It is not stored: it " +
        "is derived from the status, the command that refers to the transaction, its Reversal and its batch.",
      table(
        ["State", "Meaning"],
        Object.entries(statusMeanings).map(([state, meaning]) => [code(state), meaning]),
      ),
      diagram(standing),
      transitionTable(standing),
      "## A batch",
      diagram(batchTransitions),
      transitionTable(batchTransitions),
      "## A Reversal",
      diagram(reversalTransitions),
      transitionTable(reversalTransitions),
    ),
  };
}
