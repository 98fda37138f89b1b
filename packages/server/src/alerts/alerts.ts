import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, within } from "../clock.ts";
import { newId } from "../ids.ts";
import type { EventKind, EventSink, NewEvent } from "../telemetry/events.ts";
import { alertKinds } from "./kinds.ts";
import { type AlertChannel, type AlertGroup, groupOf } from "./message.ts";
import type { Alert, EventStore } from "./store.ts";

export interface AlertsParts {
  readonly store: EventStore;
  /** Opens the channels when the first alert is sent. Undefined: events are recorded and counted, but not sent. */
  readonly targets: (() => Promise<readonly AlertChannel[]>) | undefined;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: { warn(fields: object, message: string): void };
  readonly onRecorded?: (kind: EventKind) => void;
  readonly onSent?: (group: AlertGroup, taken: boolean) => void;
  /** Seconds to wait after each failed try; the last one repeats. */
  readonly retryS?: readonly number[];
  readonly timeoutMs?: number;
  readonly pollMs?: number;
  /** After an alert was sent, others of its kind wait this long, and are then sent together. */
  readonly quietS?: number;
  /** Events that wait for a database that is away. */
  readonly unrecordedMax?: number;
}

/** An hour: what fails for longer is no lost connection. */
const recordTriesMax = 720;
const giveUpAfterMs = 3 * 86_400_000;
/** The rest is sent as another group. */
const groupMax = 10_000;
/** Longer than a whole claim can last, so that no other instance sends it at the same time. */
const leaseMarginS = 30;

/**
 * Records events for the operator, and sends alerts until every channel has accepted them. The first of a kind is sent
 * at once; those that follow within the quiet time are sent together when it is over.
 */
export class Alerts implements EventSink {
  readonly #parts: Required<Omit<AlertsParts, "onRecorded" | "onSent" | "targets">> &
    Pick<AlertsParts, "onRecorded" | "onSent" | "targets">;
  /** What could not be recorded yet of the channels that accepted a group, by the first alert's id. */
  readonly #acceptedBy = new Map<string, Set<string>>();
  /** Events whose first try to be recorded failed. */
  readonly #unrecorded = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #news = false;
  #wake: () => void = () => undefined;
  #loop: Promise<void> | undefined;

  constructor(parts: AlertsParts) {
    const times = { retryS: [5, 30, 120, 600, 3_600], timeoutMs: 10_000, pollMs: 5_000, quietS: 300 };
    this.#parts = { ...times, unrecordedMax: 10_000, ...parts };
  }

  /**
   * The event is durable when this resolves, unless the first try failed: that is logged, and tried again until it is
   * recorded or the service stops. It never rejects.
   */
  async record(event: NewEvent): Promise<void> {
    await this.isRecorded(event);
  }

  /** Records the event, as `record` does. @returns whether it is durable */
  async isRecorded(event: NewEvent): Promise<boolean> {
    this.#parts.onRecorded?.(event.kind);
    const same = { ...event, id: event.id ?? newId<"event">() };
    const error = await this.#tryRecord(same);
    if (error === undefined) return true;
    this.#parts.log.warn({ err: error, event }, "an event could not be recorded");
    if (this.#unrecorded.size >= this.#parts.unrecordedMax) return false;
    const later = this.#recordLater(same).finally(() => this.#unrecorded.delete(later));
    this.#unrecorded.add(later);
    return false;
  }

  /**
   * Records an event of the service itself, unless an instance did so within this time: all of them see the condition.
   * Rejects if that cannot be read.
   */
  async recordOnce(event: NewEvent, withinMs: number): Promise<void> {
    const { store, clock } = this.#parts;
    if (!(await store.wasRecordedSince(event.kind, clock.nowMs() - withinMs))) await this.record(event);
  }

  /** Does nothing without a channel. */
  start(): void {
    const { targets } = this.#parts;
    if (targets === undefined || this.#loop !== undefined) return;
    this.#loop = this.#run(targets);
  }

  /** Aborts the send in progress. Its alerts become due again, for any instance. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeSender();
    await Promise.all([this.#loop, ...this.#unrecorded]);
  }

  /** @returns the error if it failed */
  async #tryRecord(event: NewEvent): Promise<unknown> {
    try {
      await this.#parts.store.record([event], this.#parts.targets !== undefined);
    } catch (error) {
      return error ?? "unknown";
    }
    if (alertKinds.includes(event.kind)) this.#wakeSender();
    return undefined;
  }

  async #recordLater(event: NewEvent): Promise<void> {
    const { signal } = this.#stopping;
    for (let tries = 1; tries <= recordTriesMax; tries += 1) {
      const isLast = signal.aborted;
      if (!isLast) await sleep(this.#parts.pollMs, undefined, { signal, ref: false }).catch(() => undefined);
      if ((await this.#tryRecord(event)) === undefined || isLast) return;
    }
    this.#parts.log.warn({ event }, "an event was given up");
  }

  async #run(open: () => Promise<readonly AlertChannel[]>): Promise<void> {
    const targets = await open();
    try {
      while (!this.#stopping.signal.aborted) {
        const isSent = await this.#sendDue(targets);
        if (!isSent) await this.#pause();
      }
    } finally {
      for (const target of targets) await target.close();
    }
  }

  /** @returns whether anything was due */
  async #sendDue(targets: readonly AlertChannel[]): Promise<boolean> {
    const { store, timeoutMs, quietS, log } = this.#parts;
    try {
      const due = await store.claimDue(quietS === 0 ? 1 : groupMax, Math.ceil(timeoutMs / 1_000) + leaseMarginS);
      if (due.length === 0) return false;
      await this.#send(due, targets);
      return true;
    } catch (error) {
      log.warn({ err: error }, "alerts could not be read or written");
      return false;
    }
  }

  async #send(due: readonly Alert[], targets: readonly AlertChannel[]): Promise<void> {
    const { store, clock, retryS, quietS, log, onSent } = this.#parts;
    const group = groupOf(due);
    const { first, count } = group;
    const { problems, acceptedBy } = await this.#sendToAll(group, targets);
    const tried = due.map((alert) => ({ ...alert, acceptedBy }));
    if (problems.length > 0 && this.#stopping.signal.aborted) return store.retry(tried, 0, 0);
    onSent?.(group, problems.length === 0);
    if (problems.length === 0) return this.#settle(due, first.id, quietS);
    const about = { alertId: first.id, kind: first.kind, count, tries: first.tries, problems };
    if (clock.nowMs() - first.atMs >= giveUpAfterMs) {
      log.warn(about, "an alert was given up");
      return this.#settle(due, first.id, 0);
    }
    log.warn(about, "an alert was not taken; it is sent again");
    const delayS = retryS[Math.min(first.tries, retryS.length) - 1] ?? 3_600;
    await store.retry(tried, delayS, problems.length < targets.length ? quietS : 0);
    this.#acceptedBy.delete(first.id);
  }

  async #settle(due: readonly Alert[], firstId: string, quietS: number): Promise<void> {
    await this.#parts.store.settle(due, quietS);
    this.#acceptedBy.delete(firstId);
  }

  /** Skips the channels that accepted it before. @returns the problem of each one that did not accept it */
  async #sendToAll(
    group: AlertGroup,
    targets: readonly AlertChannel[],
  ): Promise<{ readonly problems: readonly string[]; readonly acceptedBy: readonly string[] }> {
    const { first } = group;
    const taken = new Set([...first.acceptedBy, ...(this.#acceptedBy.get(first.id) ?? [])]);
    this.#acceptedBy.set(first.id, taken);
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(this.#parts.timeoutMs)]);
    const told = await Promise.all(
      targets.map(async (target) => {
        if (taken.has(target.name)) return [];
        const problem = await target.send(group, signal);
        if (problem !== undefined) return [`${target.name}: ${problem}`];
        taken.add(target.name);
        return [];
      }),
    );
    return { problems: told.flat(), acceptedBy: [...taken] };
  }

  #wakeSender(): void {
    this.#news = true;
    this.#wake();
  }

  /**
   * Resolves when this instance recorded an alert, or when it is time to look for retries and alerts of other
   * instances.
   */
  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    if (!this.#news) await within(this.#parts.pollMs, promise);
    this.#news = false;
  }
}
