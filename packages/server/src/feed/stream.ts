import { setTimeout as pause } from "node:timers/promises";
import { alertKinds } from "../alerts/kinds.ts";
import { ServiceError } from "../errors.ts";
import type { AuditRecord, AuditStore } from "../operators/audit.ts";
import type { EventFeed } from "./feed.ts";

/** The entries up to here were written. */
export interface FeedPosition {
  /** The cursor of {@link EventFeed}; empty: from the beginning. */
  readonly events: string;
  readonly audit: number;
}

export interface FeedPositions {
  read(): Promise<FeedPosition | undefined>;
  write(position: FeedPosition): Promise<void>;
}

/** An event or an entry of the audit, to be written. */
export interface FeedEntry {
  readonly at: string;
  /** The kind of the event, or the action. */
  readonly name: string;
  readonly isAudit: boolean;
  readonly isAlert: boolean;
  readonly content: object;
}

export interface FeedTarget {
  /** Shown in the log. */
  readonly name: string;
  /** Rejects if nothing could be written now. */
  open(): Promise<void>;
  /** Resolves once they are written. Rejects, also without entries, if anything written before may be lost. */
  write(entries: readonly FeedEntry[]): Promise<void>;
  /** Entries that were written longer ago are certainly received, unless `write` rejects. */
  readonly receivedAfterMs: number;
  /** Ends it. @returns whether everything written was received */
  end(): Promise<boolean>;
}

/** One instance writes at a time. */
export interface FeedLock {
  hold(name: string): Promise<{ readonly lost: AbortSignal; release(): Promise<void> } | undefined>;
}

export interface FeedStreamParts {
  readonly feed: Pick<EventFeed, "read">;
  readonly audit: Pick<AuditStore, "following">;
  readonly positions: FeedPositions;
  readonly lock: FeedLock;
  readonly open: () => FeedTarget;
  readonly nowMs: () => number;
  /** The target takes nothing now; the same entries are written again later. */
  readonly onFailed: (target: string, error: unknown) => void;
  /** The kept position is of another database, or too old: everything that is kept is written again. */
  readonly onRestarted: () => void;
}

const pageRows = 500;
const lookEveryMs = 1_000;
const retryMaxMs = 30_000;
const lockEveryMs = 5_000;
const lockName = "feed";

/** What the target has not got yet. */
export interface Unwritten {
  /** Those that were read; others may follow. */
  readonly entries: number;
  /** The time of the oldest, milliseconds since 1970. */
  readonly sinceMs: number;
}

/** Written entries whose receipt is not certain yet. */
interface Written {
  readonly position: FeedPosition;
  readonly atMs: number;
}

/**
 * Writes events and the audit to a file or a collector, at least once each: the position is kept in the database, and
 * moves when entries are certainly received. Whichever instance holds the lock writes; another continues from the
 * position.
 */
export class FeedStream {
  readonly #parts: FeedStreamParts;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;
  #failures = 0;
  #unwritten: Unwritten | undefined;

  constructor(parts: FeedStreamParts) {
    this.#parts = parts;
  }

  /** Undefined: nothing, or another instance writes. */
  get unwritten(): Unwritten | undefined {
    return this.#unwritten;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const waitMs = await this.#hold();
      await pause(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** @returns the wait before the next try */
  async #hold(): Promise<number> {
    const target = this.#parts.open();
    try {
      const held = await this.#parts.lock.hold(lockName);
      if (held === undefined) {
        this.#unwritten = undefined;
        return lockEveryMs;
      }
      try {
        await this.#write(target, AbortSignal.any([this.#stopping.signal, held.lost]));
        return lockEveryMs;
      } finally {
        await held.release();
      }
    } catch (error) {
      if (this.#stopping.signal.aborted) return 0;
      this.#parts.onFailed(target.name, error);
      this.#failures += 1;
      return Math.min(lookEveryMs * 2 ** (this.#failures - 1), retryMaxMs);
    } finally {
      await target.end();
    }
  }

  async #write(target: FeedTarget, ends: AbortSignal): Promise<void> {
    const { positions, nowMs } = this.#parts;
    let position = (await positions.read()) ?? { events: "", audit: 0 };
    let written: Written[] = [];
    const confirm = async (isAll: boolean) => {
      const certain = written.filter(({ atMs }) => isAll || nowMs() - atMs >= target.receivedAfterMs);
      written = written.slice(certain.length);
      const last = certain.at(-1);
      if (last !== undefined) await positions.write(last.position);
    };
    while (!ends.aborted) {
      const { entries, next } = await this.#after(position);
      this.#unwritten = unwrittenOf(entries);
      await target.write(entries);
      this.#unwritten = undefined;
      this.#failures = 0;
      position = next;
      if (entries.length > 0) written.push({ position, atMs: nowMs() });
      await confirm(false);
      if (entries.length === 0) await pause(lookEveryMs, undefined, { signal: ends }).catch(() => undefined);
    }
    if (await target.end()) await confirm(true);
  }

  async #after({ events, audit }: FeedPosition) {
    const [page, records] = await Promise.all([this.#page(events), this.#parts.audit.following(audit, pageRows)]);
    // Another database has another audit.
    if (page === undefined) return { entries: [], next: { events: "", audit: 0 } };
    const entries: FeedEntry[] = [
      ...page.items.map(({ at, kind, ...event }) => ({
        ...{ at, name: kind, isAudit: false, isAlert: alertKinds.includes(kind) },
        content: { type: "event", at, kind, ...event },
      })),
      ...records.map(({ mac: _, ...record }) => auditEntry(record)),
    ];
    return { entries, next: { events: page.next, audit: records.at(-1)?.seq ?? audit } };
  }

  /** Undefined: this position means nothing here. */
  async #page(events: string) {
    try {
      return await this.#parts.feed.read({ after: events === "" ? undefined : events, limit: pageRows });
    } catch (error) {
      const isRefused = error instanceof ServiceError && /^(invalid_cursor|cursor_)/.test(error.code);
      if (!isRefused || events === "") throw error;
      this.#parts.onRestarted();
      return undefined;
    }
  }
}

function unwrittenOf(entries: readonly FeedEntry[]): Unwritten | undefined {
  if (entries.length === 0) return undefined;
  return { entries: entries.length, sinceMs: Math.min(...entries.map(({ at }) => Date.parse(at))) };
}

function auditEntry({ atMs, ...record }: AuditRecord): FeedEntry {
  const at = new Date(atMs).toISOString();
  return { at, name: record.action, isAudit: true, isAlert: false, content: { type: "audit", at, ...record } };
}
