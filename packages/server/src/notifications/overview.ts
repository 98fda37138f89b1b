import type { PartnerId } from "../ids.ts";
import {
  type DeliveryCounts,
  type FigurePoint,
  type FigureSpan,
  type FigureStore,
  merge,
  noCounts,
  percentileMs,
} from "./figures.ts";
import type { Troubles, TroubleView } from "./trouble.ts";
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

export interface FiguresView {
  readonly span: FigureSpan;
  readonly asOf: string;
  /** One for each minute, or hour of a week, with deliveries. */
  readonly points: readonly {
    readonly at: string;
    readonly accepted: number;
    readonly failed: number;
    readonly parked: number;
  }[];
  readonly accepted: number;
  readonly failed: number;
  readonly parked: number;
  readonly attemptP50Ms: number | null;
  readonly attemptP99Ms: number | null;
  readonly deliveryP50Ms: number | null;
  readonly deliveryP99Ms: number | null;
}

export interface OverviewView {
  /** The partners that do not receive their notifications now. */
  readonly trouble: readonly TroubleView[];
  readonly figures: FiguresView;
  readonly pending: number;
  readonly oldestPendingAt: string | null;
  readonly standing: CurrentCounts;
  readonly failing: readonly {
    readonly partnerId: PartnerId;
    readonly accepted: number;
    readonly failed: number;
    readonly parked: number;
  }[];
}

export interface OverviewParts {
  readonly figures: Pick<FigureStore, "read" | "failing">;
  readonly standing: CurrentCountsStore;
  /** Pending notifications of all instances. */
  readonly pending: () => Promise<{ readonly count: number; readonly oldestMs: number | undefined }>;
  readonly troubles: Pick<Troubles, "all" | "of">;
  readonly nowMs: () => number;
}

const spanMs: Readonly<Record<FigureSpan, number>> = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 };
const failingMax = 10;
/** The database is read once in this time, however many callers there are. */
const keptMs = 1_000;

/** Delivery figures over a period, and current counts. */
export class Overviews {
  readonly #parts: OverviewParts;
  readonly #kept = new Map<FigureSpan, { readonly untilMs: number; readonly view: Promise<OverviewView> }>();

  constructor(parts: OverviewParts) {
    this.#parts = parts;
  }

  /** The overview of all partners. */
  all(span: FigureSpan): Promise<OverviewView> {
    const nowMs = this.#parts.nowMs();
    const known = this.#kept.get(span);
    if (known !== undefined && known.untilMs > nowMs) return known.view;
    const view = this.#read(span, nowMs);
    this.#kept.set(span, { untilMs: nowMs + keptMs, view });
    return view;
  }

  /** The figures of one partner. */
  async of(partnerId: PartnerId, span: FigureSpan): Promise<FiguresView> {
    const nowMs = this.#parts.nowMs();
    return viewOf(span, nowMs, await this.#parts.figures.read(partnerId, span, nowMs - spanMs[span]));
  }

  /** Why the partner's notifications wait; null if none does, or they are under way. */
  troubleOf(partnerId: PartnerId): Promise<TroubleView | null> {
    return this.#parts.troubles.of(partnerId);
  }

  async #read(span: FigureSpan, nowMs: number): Promise<OverviewView> {
    const { figures, standing, pending, troubles } = this.#parts;
    const [points, counts, waiting, failing, trouble] = await Promise.all([
      figures.read(null, span, nowMs - spanMs[span]),
      standing.counts(),
      pending(),
      figures.failing(nowMs - spanMs.hour, failingMax),
      troubles.all(),
    ]);
    return {
      trouble,
      figures: viewOf(span, nowMs, points),
      pending: waiting.count,
      oldestPendingAt: waiting.oldestMs === undefined ? null : isoTime(waiting.oldestMs),
      standing: counts,
      failing,
    };
  }
}

function viewOf(span: FigureSpan, nowMs: number, points: readonly FigurePoint[]): FiguresView {
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
  };
}
