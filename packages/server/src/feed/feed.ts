import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors.ts";
import { type EventId, nilId } from "../ids.ts";
import { type CursorContext, positionAfter, readCursor, writeCursor } from "../notifications/cursor.ts";
import type { HistoryPoint } from "../notifications/store.ts";
import { type NewEvent, withoutReport } from "../telemetry/events.ts";

/** An event of the operator's, once it is recorded. */
export interface FeedEvent extends NewEvent {
  readonly id: EventId;
  readonly at: string;
}

export interface FeedRow {
  readonly event: FeedEvent;
  /** The transaction that recorded it. */
  readonly xid: bigint;
}

/** The events of one home. */
export interface FeedStore {
  /** `horizon`: every transaction with a lower id has ended. */
  history(): Promise<CursorContext & { readonly horizon: bigint; readonly nowMs: number }>;
  /** The events after this position, in commit order, of transactions below the horizon. */
  page(after: HistoryPoint, horizon: bigint, rowsMax: number): Promise<readonly FeedRow[]>;
}

export interface FeedPage {
  readonly items: readonly FeedEvent[];
  /** Always present: after the last page it waits for the next event. */
  readonly next: string;
}

export interface FeedRead {
  /** `next` of the previous page, or `now`: nothing that is visible already. Absent: from the beginning. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface FeedWait {
  readonly durationMs: number;
  /** Aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

const lookEveryMs = 250;
const waitingMax = 16;
const retryAfterS = 5;
/** Cursors of the homes, one after the other. */
const separator = ".";

/**
 * The events for the operator, ungrouped, in the order in which they were committed: an event never appears before one
 * that was read. An event waits for every transaction that began before its own.
 */
export class EventFeed {
  readonly #homes: readonly FeedStore[];
  readonly #stopping = new AbortController();
  #waiting = 0;

  constructor(homes: readonly FeedStore[]) {
    this.#homes = homes;
  }

  /**
   * @throws ServiceError `invalid_cursor`, `cursor_from_another_history`, `cursor_expired`; `too_many_requests` if
   * others wait
   */
  async read({ after, limit }: FeedRead, wait?: FeedWait): Promise<FeedPage> {
    let page = await this.#page(after, limit);
    if (wait === undefined || page.items.length > 0) return page;
    if (this.#waiting >= waitingMax) {
      const message = `${waitingMax} requests wait for an event already: ask without wait.`;
      throw new ServiceError("too_many_requests", message, { retryAfterS });
    }
    this.#waiting += 1;
    const ends = AbortSignal.any([wait.signal, this.#stopping.signal, AbortSignal.timeout(wait.durationMs)]);
    try {
      while (page.items.length === 0 && !ends.aborted) {
        await sleep(lookEveryMs, undefined, { signal: ends }).catch(() => undefined);
        if (!wait.signal.aborted && !this.#stopping.signal.aborted) page = await this.#page(page.next, limit);
      }
    } finally {
      this.#waiting -= 1;
    }
    return page;
  }

  /** Ends all waits. */
  stop(): void {
    this.#stopping.abort();
  }

  async #page(after: string | undefined, limit: number): Promise<FeedPage> {
    const given = after === undefined || after === "now" ? undefined : after.split(separator);
    if (given !== undefined && given.length !== this.#homes.length) throw new ServiceError("invalid_cursor");
    const items: FeedEvent[] = [];
    const next: string[] = [];
    for (const [nth, home] of this.#homes.entries()) {
      const history = await home.history();
      const seen = given && readCursor(given[nth] ?? "", history);
      // Ahead of everything ever committed here: the database was set back by copying its files.
      if (seen !== undefined && seen.position.xid > history.horizon) {
        throw new ServiceError("cursor_from_another_history");
      }
      const from = seen ?? { position: { xid: 0n, id: nilId }, asOfMs: history.keptFromMs };
      const rowsMax = limit - items.length;
      const rows = after === "now" ? [] : await home.page(from.position, history.horizon, rowsMax);
      const last = rows.at(-1);
      items.push(...rows.map(({ event }) => ({ ...event, detail: withoutReport(event.detail) })));
      const isWhole = rows.length < rowsMax;
      const end = last === undefined ? from : positionAfter({ id: last.event.id, xid: last.xid }, history.keptFromMs);
      const horizon = { position: { xid: history.horizon, id: nilId }, asOfMs: history.nowMs };
      next.push(writeCursor(isWhole ? horizon : end, history.cluster));
    }
    return { items, next: next.join(separator) };
  }
}
