import type { AttemptResult } from "../delivery/attempt/attempt.ts";
import type { Delivery } from "../delivery/delivery.ts";
import type { PartnerId } from "../ids.ts";
import type { Troubles } from "./trouble.ts";
import { isoTime } from "./view.ts";

/** The current counts, exact up to 10,000. */
export interface CurrentCounts {
  readonly parked: number;
  /** Endpoints whose circuit is tripped, or whose URL is gone. */
  readonly tripped: number;
  readonly reversalsParked: number;
  readonly reversalsPending: number;
  /** Settlements that the acquirer did not answer at the first try. */
  readonly settlementsWaiting: number;
}

export interface CurrentCountsStore {
  counts(): Promise<CurrentCounts>;
}

/** Why attempts failed, grouped. */
export interface FailureCount {
  readonly reason: string;
  readonly httpStatus: number | null;
  readonly attempts: number;
  readonly lastAtMs: number;
}

export interface OverviewParts {
  readonly figures: Pick<FigureStore, "read" | "failing" | "failures">;
  readonly standing: CurrentCountsStore;
  /** Pending notifications of all instances. */
  readonly pending: () => Promise<{ readonly count: number; readonly oldestMs: number | undefined }>;
  readonly troubles: Pick<Troubles, "all" | "of" | "parked" | "parkedOf">;
  readonly nowMs: () => number;
}

const spanMs: Readonly<Record<FigureSpan, number>> = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 };
const failingMax = 10;
/** The database is read once in this time, however many callers there are. */
const keptMs = 1_000;

/** Delivery figures over a period, and current counts. */
export class Overviews {
  readonly #parts: OverviewParts;
  readonly #kept = new Map<FigureSpan, { readonly untilMs: number; readonly view: ReturnType<typeof overviewOf> }>();

  constructor(parts: OverviewParts) {
    this.#parts = parts;
  }

  all(span: FigureSpan): ReturnType<typeof overviewOf> {
    const nowMs = this.#parts.nowMs();
    const known = this.#kept.get(span);
    if (known !== undefined && known.untilMs > nowMs) return known.view;
    const view = overviewOf(this.#parts, span, nowMs);
    this.#kept.set(span, { untilMs: nowMs + keptMs, view });
    return view;
  }

  async of(partnerId: PartnerId, span: FigureSpan) {
    const nowMs = this.#parts.nowMs();
    const sinceMs = nowMs - spanMs[span];
    const { figures } = this.#parts;
    const [points, failures] = await Promise.all([
      figures.read(partnerId, span, sinceMs),
      figures.failures(partnerId, sinceMs),
    ]);
    return viewOf(span, nowMs, points, failures);
  }

  /** Why the partner's notifications wait; null if none does, or they are under way. */
  troubleOf(partnerId: PartnerId) {
    return this.#parts.troubles.of(partnerId);
  }

  /** Why the partner's notifications are parked; null if none is. */
  parkedOf(partnerId: PartnerId) {
    return this.#parts.troubles.parkedOf(partnerId);
  }
}

async function overviewOf({ figures, standing, pending, troubles }: OverviewParts, span: FigureSpan, nowMs: number) {
  const [points, counts, waiting, failing, trouble, parked] = await Promise.all([
    figures.read(null, span, nowMs - spanMs[span]),
    standing.counts(),
    pending(),
    figures.failing(nowMs - spanMs.hour, failingMax),
    troubles.all(),
    troubles.parked(),
  ]);
  return {
    trouble,
    parked,
    figures: viewOf(span, nowMs, points),
    pending: waiting.count,
    oldestPendingAt: waiting.oldestMs === undefined ? null : isoTime(waiting.oldestMs),
    standing: counts,
    failing,
  };
}

function viewOf(
  span: FigureSpan,
  nowMs: number,
  points: readonly FigurePoint[],
  failures: readonly FailureCount[] = [],
) {
  const total: DeliveryCounts = noCounts();
  for (const point of points) merge(total, point);
  return {
    span,
    asOf: isoTime(nowMs),
    points: points.map(({ atMs, accepted, failed, parked }) => ({ at: isoTime(atMs), accepted, failed, parked })),
    accepted: total.accepted,
    failed: total.failed,
    parked: total.parked,
    attemptP50Ms: percentileMs(total.attemptMs, 0.5),
    attemptP99Ms: percentileMs(total.attemptMs, 0.99),
    deliveryP50Ms: percentileMs(total.deliveryMs, 0.5),
    deliveryP99Ms: percentileMs(total.deliveryMs, 0.99),
    failures: failures.map(({ lastAtMs, ...failure }) => ({ ...failure, lastAt: isoTime(lastAtMs) })),
  };
}

/** Upper bounds of the histogram's buckets in milliseconds. One more bucket follows the last bound. */
const figureBoundsMs = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 2_000, 5_000, 15_000, 60_000, 600_000,
  3_600_000, 86_400_000,
];

/** Counts of deliveries in a period. The histograms have a count for each bucket. */
export interface DeliveryCounts {
  accepted: number;
  /** Failed attempts, whether they are repeated or not. */
  failed: number;
  parked: number;
  readonly attemptMs: number[];
  /** Time from a notification's creation, or its redelivery, to its acceptance. */
  readonly deliveryMs: number[];
}

/** Counts of one partner, or of all if that is null, in the minute that begins at `minuteMs`. */
export interface MinuteCounts extends DeliveryCounts {
  readonly partnerId: PartnerId | null;
  readonly minuteMs: number;
}

export type FigureSpan = "hour" | "day" | "week";

export interface FigurePoint extends DeliveryCounts {
  readonly atMs: number;
}

/** Adds up the counts of all instances. */
export interface FigureStore {
  add(counts: readonly MinuteCounts[]): Promise<void>;
  /** Reads the figures of one partner, or of all if it is null: by minute, or by hour for a week. */
  read(partnerId: PartnerId | null, span: FigureSpan, sinceMs: number): Promise<readonly FigurePoint[]>;
  /** Partners with failed attempts since then, the one with most failures first. */
  failing(
    sinceMs: number,
    rowsMax: number,
  ): Promise<
    readonly (Pick<DeliveryCounts, "accepted" | "failed" | "parked"> & {
      readonly partnerId: PartnerId;
    })[]
  >;
  /** Why the partner's newest attempts since then failed, the most frequent first. */
  failures(partnerId: PartnerId, sinceMs: number): Promise<readonly FailureCount[]>;
  /** Deletes figures that can no longer be requested. */
  dropOld(nowMs: number): Promise<void>;
}

const minuteMs = 60_000;

/**
 * Counts attempts in memory, by partner and minute, and adds them to the store periodically. A crash loses counts that
 * were not added yet: figures are informative, and nothing depends on them.
 */
export class FigureCounter {
  readonly #store: Pick<FigureStore, "add">;
  #counts = new Map<string, MinuteCounts>();

  constructor(store: Pick<FigureStore, "add">) {
    this.#store = store;
  }

  count(delivery: Pick<Delivery, "partnerId" | "scheduleStartMs">, { attempt, next }: AttemptResult): void {
    const endedMs = attempt.startedAtMs + attempt.durationMs;
    for (const partnerId of [delivery.partnerId, null]) {
      const counts = this.#of(partnerId, Math.floor(endedMs / minuteMs) * minuteMs);
      addTo(counts.attemptMs, attempt.durationMs);
      if (attempt.reason !== null) counts.failed += 1;
      if (next.kind === "parked") counts.parked += 1;
      if (next.kind !== "accepted") continue;
      counts.accepted += 1;
      addTo(counts.deliveryMs, endedMs - delivery.scheduleStartMs);
    }
  }

  /** Counts what was parked without an attempt: its endpoint accepted nothing until its schedule was over. */
  parked(partnerId: PartnerId, parked: number, atMs: number): void {
    for (const whose of [partnerId, null]) this.#of(whose, Math.floor(atMs / minuteMs) * minuteMs).parked += parked;
  }

  /** Counts that cannot be stored now are kept for the next flush. */
  async flush(): Promise<void> {
    const counts = this.#counts;
    if (counts.size === 0) return;
    this.#counts = new Map();
    try {
      await this.#store.add([...counts.values()]);
    } catch (error) {
      for (const one of counts.values()) merge(this.#of(one.partnerId, one.minuteMs), one);
      throw error;
    }
  }

  #of(partnerId: PartnerId | null, atMs: number): MinuteCounts {
    const key = `${partnerId} ${atMs}`;
    const known = this.#counts.get(key);
    if (known !== undefined) return known;
    const counts = { partnerId, minuteMs: atMs, ...noCounts() };
    this.#counts.set(key, counts);
    return counts;
  }
}

function noCounts(): DeliveryCounts {
  const buckets = () => new Array<number>(figureBoundsMs.length + 1).fill(0);
  return { accepted: 0, failed: 0, parked: 0, attemptMs: buckets(), deliveryMs: buckets() };
}

function merge(into: DeliveryCounts, from: DeliveryCounts): void {
  into.accepted += from.accepted;
  into.failed += from.failed;
  into.parked += from.parked;
  for (const [at, count] of from.attemptMs.entries()) into.attemptMs[at] = (into.attemptMs[at] ?? 0) + count;
  for (const [at, count] of from.deliveryMs.entries()) into.deliveryMs[at] = (into.deliveryMs[at] ?? 0) + count;
}

function addTo(buckets: number[], ms: number): void {
  const found = figureBoundsMs.findIndex((bound) => ms <= bound);
  const at = found === -1 ? figureBoundsMs.length : found;
  buckets[at] = (buckets[at] ?? 0) + 1;
}

/** The time below which this share of all values lies, interpolated within its bucket; null without values. */
function percentileMs(buckets: readonly number[], share: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = total * share;
  for (const [at, count] of buckets.entries()) {
    if (count >= left && count > 0) {
      const [from, to] = [figureBoundsMs[at - 1] ?? 0, figureBoundsMs[at] ?? figureBoundsMs.at(-1) ?? 0];
      return from + (to - from) * (left / count);
    }
    left -= count;
  }
  return figureBoundsMs.at(-1) ?? null;
}
