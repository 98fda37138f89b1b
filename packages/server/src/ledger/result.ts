import { completeCard } from "../commands/card-facts.ts";
import type { AcquirerOutcome } from "../commands/outcome.ts";
import { succeedReversal } from "../commands/reversal.ts";
import { completeSystemCommand } from "../commands/system.ts";
import type { Partner } from "../partners/partner.ts";
import type { CommandResult } from "./completer.ts";
import type { Transaction } from "./store.ts";

/** The result of a command for this outcome, whichever instance began it. */
export function resultOf(
  begun: Transaction,
  outcome: AcquirerOutcome,
  partner: Partner,
  requestedBy: Transaction["id"] | null = null,
): CommandResult {
  const { facts, command } = begun;
  if (facts.kind === "system") return completeSystemCommand(facts, outcome);
  if (facts.kind === "settlement") throw new Error("A SETTLEMENT is not authorised.");
  const { reverse, ...completed } = completeCard(facts, outcome, partner.settings.signing);
  const result = { ...completed, reversal: reverse ? reversalOf(begun, requestedBy) : null };
  if (command === "REFUND") return { ...result, silent: partner.settings.refunds !== "notified" };
  if (command !== "VOID" && command !== "PREAUTH_COMPLETE") return result;
  const failed = reverse ? ("in_doubt" as const) : ("free" as const);
  const becomes = result.state === "SUCCESS" ? ("done" as const) : failed;
  return { ...result, original: begun.originalId === null ? null : { id: begun.originalId, becomes } };
}

/** The result of the partner's own REVERSAL for the end of the Reversal. */
export function reversalResult(
  { facts, originalId }: Transaction,
  end: { readonly state: "DONE" | "PARKED"; readonly responseCode: string },
): CommandResult {
  if (facts.kind !== "system") throw new Error("A REVERSAL is a system command.");
  const answer = { responseCode: end.responseCode, approveCode: "", refId: "", tc: "" };
  const { state, facts: completed } =
    end.state === "DONE"
      ? succeedReversal(facts)
      : completeSystemCommand(facts, { kind: "answered", answer, approvals: new Set() });
  const becomes = state === "SUCCESS" ? ("done" as const) : ("in_doubt" as const);
  return { state, facts: completed, original: originalId === null ? null : { id: originalId, becomes } };
}

function reversalOf({ facts }: Transaction, requestedBy: Transaction["id"] | null) {
  return { tid: facts.fields["tid"] ?? "", requestedBy };
}
