import { BoundedMap } from "../bounded-map.ts";
import { systemClock } from "../clock.ts";
import { completeCard } from "../commands/card-facts.ts";
import type { AcquirerOutcome } from "../commands/outcome.ts";
import { succeedReversal } from "../commands/reversal.ts";
import { completeSystemCommand } from "../commands/system.ts";
import type { FieldProblem } from "../errors.ts";
import { type EventId, idAt, type LeaseId } from "../ids.ts";
import type { IpnFacts } from "../ipn/facts.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import type { EventKind, EventSink, NewEvent } from "../telemetry/events.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type NewNotification, type Notifier, notificationOf } from "./notifier.ts";
import type { Completion, CompletionStore, Transaction } from "./store.ts";

export interface CompleterParts {
  readonly completions: CompletionStore;
  readonly notifier: Notifier;
  readonly directory: Pick<PartnerDirectory, "cached">;
  readonly events: EventSink;
  readonly metrics: Pick<Metrics, "commands" | "notificationsCreated">;
}

type EventDetail = Readonly<Record<string, unknown>>;

const recordedOnceMax = 10_000;

export interface CommandResult {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: Transaction["facts"];
  /** The part of its amount that was approved; undefined: all of it. */
  readonly amountMinor?: bigint;
  readonly warnings?: readonly FieldProblem[];
  readonly original?: Completion["original"];
  readonly reversal?: Completion["reversal"];
  readonly batch?: Completion["batch"];
  /** It has no IPN. */
  readonly silent?: boolean;
}

/**
 * Makes results durable together with their IPNs, and passes the notifications on: for commands, Reversals and
 * settlements.
 */
export class Completer {
  readonly #parts: CompleterParts;
  readonly #recordedOnce = new BoundedMap<EventId, true>(recordedOnceMax);

  constructor(parts: CompleterParts) {
    this.#parts = parts;
  }

  /**
   * @param begun the command as it was begun, or taken over
   * @param leaseId the lease of its row
   * @returns the completed transaction; undefined if another instance took it over, so this result is late
   */
  async complete(begun: Transaction, result: CommandResult, leaseId: LeaseId): Promise<Transaction | undefined> {
    const { state, facts, amountMinor, warnings = [], original = null, reversal = null, batch = null } = result;
    const isNotified = facts.kind !== "system" && result.silent !== true;
    const notification = isNotified ? this.#notificationOf(begun, facts, batch) : null;
    const { partnerId, id } = begun;
    const begunMs = systemClock.monotonicMs();
    const completed = await this.#parts.completions.complete({
      partnerId,
      id,
      leaseId,
      state,
      facts,
      ...(amountMinor !== undefined && { amountMinor }),
      notification,
      original,
      reversal,
      batch,
    });
    if (completed.outcome === "late") return undefined;
    this.#parts.metrics.commands.inc({ command: begun.command, outcome: state });
    if (warnings.length > 0) this.record(begun, "delimiter_sent", { fields: warnings });
    if (notification) {
      this.#parts.metrics.notificationsCreated.inc({ command: notification.command });
      this.#parts.notifier.notify(notification, completed.atMs, begunMs);
    }
    const pending = notification ? { id: notification.id, state: "pending" as const } : null;
    const ended = { state, facts, notification: pending, runBy: null, completedAtMs: completed.atMs };
    return { ...begun, ...ended, amountMinor: amountMinor ?? begun.amountMinor };
  }

  #notificationOf(begun: Transaction, facts: IpnFacts, batch: Completion["batch"]): NewNotification {
    const { partnerId, id: transactionId, originalId, chainId, callBackUrl } = begun;
    const settings = this.#parts.directory.cached(partnerId)?.settings;
    const batchId = batch?.batchId ?? null;
    const about = { partnerId, transactionId, originalId, originalExternalId: null, chainId, callBackUrl };
    return notificationOf({ ...about, facts, batchId }, settings);
  }

  record(transaction: Transaction, kind: EventKind, detail: EventDetail): void {
    this.#parts.events.record(eventOf(transaction, kind, detail));
  }

  /** Keeps one event of each kind for a transaction, whichever instances record it. */
  recordOnce(transaction: Transaction, kind: EventKind, detail: EventDetail): void {
    const { id, createdAtMs } = transaction;
    const eventId = idAt<"event">(createdAtMs, `${kind} ${id}`);
    if (this.#recordedOnce.get(eventId)) return;
    this.#recordedOnce.set(eventId, true);
    this.#parts.events.record({ ...eventOf(transaction, kind, detail), id: eventId });
  }

  /** Counts an event that was written with what it reports, and sends its alert at once. */
  recordWritten(event: NewEvent & { readonly id: EventId }): void {
    this.#parts.events.record(event);
  }
}

export function eventOf(transaction: Transaction, kind: EventKind, detail: EventDetail): NewEvent {
  const { partnerId, id: subjectId, acquirer } = transaction;
  return { kind, partnerId, subjectId, detail: acquirer === "" ? detail : { ...detail, acquirer } };
}

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
