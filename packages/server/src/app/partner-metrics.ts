import { failureReasons } from "../delivery/delivery.ts";
import type { PartnerId } from "../ids.ts";
import type { Metrics } from "../metrics.ts";
import type { PartnerBacklog } from "../store/deliveries/pending-status.ts";

const others = "other";

/**
 * Counts by partner, with a bounded number of labels: each costs Prometheus a dozen series. The first partners have a
 * label of their own for the life of the process; all others share `other`.
 */
export class PartnerMetrics {
  readonly #metrics: Metrics;
  readonly #partnersMax: number;
  readonly #labelled = new Set<string>();

  constructor(metrics: Metrics, partnersMax: number) {
    this.#metrics = metrics;
    this.#partnersMax = partnersMax;
  }

  /** Its counters begin at 0, if it gets a label: an increase is seen only of a series that exists. */
  know(partnerId: PartnerId): void {
    this.#labelOf(partnerId);
  }

  accepted(partnerId: PartnerId, seconds: number): void {
    const partner = this.#labelOf(partnerId);
    if (partner === undefined) return;
    this.#metrics.partnerAccepted.inc({ partner });
    this.#metrics.partnerDeliverySeconds.observe({ partner }, seconds);
  }

  failed(partnerId: PartnerId, reason: string): void {
    const partner = this.#labelOf(partnerId);
    if (partner !== undefined) this.#metrics.partnerAttemptsFailed.inc({ partner, reason });
  }

  /**
   * Sets the current backlog only for partners that have a label or can get one: a partial sum of the others would
   * mislead.
   */
  show(backlogs: readonly PartnerBacklog[], nowMs: number): void {
    const { partnerPending, partnerParked, partnerOldestPendingSeconds } = this.#metrics;
    for (const gauge of [partnerPending, partnerParked, partnerOldestPendingSeconds]) gauge.reset();
    for (const { partnerId, pending, parked, oldestMs } of backlogs) {
      const partner = this.#labelOf(partnerId);
      if (partner === undefined || partner === others) continue;
      partnerPending.set({ partner }, pending);
      partnerParked.set({ partner }, parked);
      partnerOldestPendingSeconds.set({ partner }, oldestMs === undefined ? 0 : Math.max(0, nowMs - oldestMs) / 1_000);
    }
  }

  /** Undefined if nothing is counted by partner. */
  #labelOf(partnerId: PartnerId): string | undefined {
    if (this.#labelled.has(partnerId)) return partnerId;
    if (this.#partnersMax === 0) return undefined;
    const label = this.#labelled.size >= this.#partnersMax ? others : partnerId;
    if (label === partnerId) this.#labelled.add(partnerId);
    this.#metrics.partnerAccepted.inc({ partner: label }, 0);
    for (const reason of failureReasons) this.#metrics.partnerAttemptsFailed.inc({ partner: label, reason }, 0);
    return label;
  }
}
