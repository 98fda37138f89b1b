import type { Logger } from "pino";
import { systemClock } from "../../clock.ts";
import { reportedBatch } from "../../commands/reports/reported-facts.ts";
import { chainOf, type NotificationId, type PartnerId, type TransactionId } from "../../ids.ts";
import type { CardFacts } from "../../ipn/facts.ts";
import type { PartnerDirectory, PartnerSettings } from "../../partners/partner.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { DueWork } from "../due-work.ts";
import { type Notifier, notificationOf } from "../notifier.ts";
import type { CompletionStore, ReportedOriginal, TransactionStore } from "../store.ts";
import { originalIdentities } from "./reports.ts";

/** A Void that a switch reported before its original. Its IPN depends on whether the original is a PreAuth. */
export interface WaitingReport {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly identity: string;
  readonly originalExternalId: string;
  readonly callBackUrl: string | null;
  readonly facts: CardFacts;
  readonly notificationId: NotificationId;
  readonly batchId: string | null;
  /** The time since it was reported. */
  readonly ageMs: number;
}

export interface WaitingStore {
  /** Claims due ones for `heldForMs`: no other instance looks for their originals meanwhile, any may afterwards. */
  claimDue(rowsMax: number, heldForMs: number): Promise<readonly WaitingReport[]>;
  postpone(report: WaitingReport, delayMs: number): Promise<void>;
}

export interface WaitingReportsParts {
  readonly waiting: WaitingStore;
  readonly transactions: Pick<TransactionStore, "findReported">;
  readonly completions: Pick<CompletionStore, "release">;
  readonly directory: Pick<PartnerDirectory, "find">;
  readonly notifier: Notifier;
  readonly metrics: Pick<Metrics, "notificationsCreated">;
  readonly log: Logger;
}

const rowsMax = 100;
const heldForMs = 30_000;
/** As long as a notification waits for an earlier one. */
const waitMaxMs = 600_000;
const intervalMinMs = 1_000;
const intervalMaxMs = 60_000;

/** Notifies of reported Voids once their originals are known, or after ten minutes without them. */
export class WaitingReports extends DueWork<WaitingReport> {
  readonly #parts: WaitingReportsParts;

  constructor(parts: WaitingReportsParts) {
    super("waiting reports", parts.log);
    this.#parts = parts;
  }

  protected claim(): Promise<readonly WaitingReport[]> {
    return this.#parts.waiting.claimDue(rowsMax, heldForMs);
  }

  protected async run(report: WaitingReport): Promise<void> {
    const { waiting, completions, directory, notifier, metrics } = this.#parts;
    const { partnerId, id, ageMs } = report;
    const settings = (await directory.find(partnerId))?.settings;
    if (settings === undefined) throw new Error(`There is no partner ${partnerId}.`);
    const original = await this.#originalOf(report, settings.reports);
    if (original === undefined && ageMs < waitMaxMs) {
      // The interval grows: a row that waits is looked up a dozen times in all.
      const delayMs = Math.max(intervalMinMs, Math.min(ageMs, intervalMaxMs, waitMaxMs - ageMs));
      return waiting.postpone(report, delayMs);
    }
    const released = releaseOf(report, original, settings);
    const begunMs = systemClock.monotonicMs();
    const atMs = await completions.release({ partnerId, id, ...released });
    if (atMs === undefined) return;
    metrics.notificationsCreated.inc({ command: "VOID" });
    notifier.notify(released.notification, atMs, begunMs);
  }

  async #originalOf(
    { partnerId, identity, originalExternalId }: WaitingReport,
    settings: Parameters<typeof originalIdentities>[0],
  ): Promise<ReportedOriginal | undefined> {
    const identities = originalIdentities(settings, { command: "VOID", originalExternalId });
    const known = await this.#parts.transactions.findReported(partnerId, identities);
    const found = identities.find((one) => one !== identity && known.has(one));
    return found === undefined ? undefined : known.get(found);
  }
}

function releaseOf(report: WaitingReport, original: ReportedOriginal | undefined, settings: PartnerSettings) {
  const { partnerId, id, notificationId, originalExternalId, callBackUrl } = report;
  const facts = {
    ...report.facts,
    ...(original?.command === "PREAUTH" && { voidsPreAuth: true }),
    ...(original && { originalReqId: original.reqId ?? "" }),
  };
  const originalId = original?.id ?? null;
  const chainId = chainOf(id, original);
  const batchId = reportedBatch(partnerId, facts.fields) ?? original?.batchId ?? null;
  const about = { partnerId, id: notificationId, transactionId: id, originalId, originalExternalId, chainId };
  const notification = notificationOf({ ...about, callBackUrl, facts, batchId }, settings);
  return { originalId, chainId, batchId, facts, notification };
}
