import type { Clock } from "../clock.ts";
import type { EventKind, EventSink, NewEvent } from "../events.ts";
import { alertKinds, type EventStore } from "./store.ts";
import { type AlertChannel, type AlertGroup, groupOf } from "./target.ts";

export interface AlertsParts {
  readonly store: EventStore;
  /** None: events are recorded and counted, and nobody is told. Made where the first alert is sent. */
  readonly targets: (() => Promise<readonly AlertChannel[]>) | undefined;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: { warn(fields: object, message: string): void };
  readonly onRecorded?: (kind: EventKind) => void;
  readonly onSent?: (group: AlertGroup, taken: boolean) => void;
  /** Seconds to wait after each failed try; the last one again and again. */
  readonly retryS?: readonly number[];
  readonly timeoutMs?: number;
  readonly pollMs?: number;
  /** After one of a kind was told, others of that kind wait for so long, and are told together. */
  readonly quietS?: number;
}

const giveUpAfterMs = 3 * 86_400_000;
/** Beyond, the rest is told by itself. */
const groupMax = 10_000;
/** Longer than all of a take can last, so that nobody else sends it at the same time. */
const leaseMarginS = 30;

/**
 * Records what an operator should know of, and sends alerts on until every target took them. The first of a kind is
 * told at once; those that follow within the quiet time are told together when it is over.
 */
export class Alerts implements EventSink {
  readonly #parts: Required<Omit<AlertsParts, "onRecorded" | "onSent" | "targets">> &
    Pick<AlertsParts, "onRecorded" | "onSent" | "targets">;
  /** Of what some targets did not take yet: the names of those that did, by the first alert's id. */
  readonly #acceptedBy = new Map<string, Set<string>>();
  readonly #stopping = new AbortController();
  #news = false;
  #wake: () => void = () => undefined;
  #loop: Promise<void> | undefined;

  constructor(parts: AlertsParts) {
    this.#parts = { retryS: [5, 30, 120, 600, 3_600], timeoutMs: 10_000, pollMs: 5_000, quietS: 300, ...parts };
  }

  /** Durable when it resolves; it never rejects: an event that cannot be recorded now is in the log. */
  async record(event: NewEvent): Promise<void> {
    this.#parts.onRecorded?.(event.kind);
    try {
      await this.#parts.store.record([event], this.#parts.targets !== undefined);
    } catch (error) {
      this.#parts.log.warn({ err: error, event }, "an event could not be recorded");
      return;
    }
    if (alertKinds.includes(event.kind)) this.#wakeSender();
  }

  /** Does nothing where nobody is told. */
  start(): void {
    const { targets } = this.#parts;
    if (targets === undefined || this.#loop !== undefined) return;
    this.#loop = this.#run(targets);
  }

  /** Breaks off what is being sent: it is due again, for whoever is there then. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeSender();
    await this.#loop;
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
      await this.#send(groupOf(due), targets);
      return true;
    } catch (error) {
      log.warn({ err: error }, "alerts could not be read or written");
      return false;
    }
  }

  async #send(group: AlertGroup, targets: readonly AlertChannel[]): Promise<void> {
    const { store, clock, retryS, quietS, log, onSent } = this.#parts;
    const { first, count } = group;
    const problems = await this.#sendToAll(group, targets);
    if (problems.length > 0 && this.#stopping.signal.aborted) return store.retry(first, 0);
    onSent?.(group, problems.length === 0);
    if (problems.length === 0) return this.#settle(group, quietS);
    const about = { alertId: first.id, kind: first.kind, count, tries: first.tries, problems };
    if (clock.nowMs() - first.atMs >= giveUpAfterMs) {
      log.warn(about, "an alert was given up");
      return this.#settle(group, 0);
    }
    log.warn(about, "an alert was not taken; it is sent again");
    const delayS = retryS[Math.min(first.tries, retryS.length) - 1] ?? 3_600;
    return store.retry(first, delayS);
  }

  async #settle({ first }: AlertGroup, quietS: number): Promise<void> {
    this.#acceptedBy.delete(first.id);
    await this.#parts.store.settle(first, quietS);
  }

  /** @returns what each target that did not take it says; who took it before is not told again */
  async #sendToAll(group: AlertGroup, targets: readonly AlertChannel[]): Promise<readonly string[]> {
    const taken = this.#acceptedBy.get(group.first.id) ?? new Set();
    this.#acceptedBy.set(group.first.id, taken);
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
    return told.flat();
  }

  #wakeSender(): void {
    this.#news = true;
    this.#wake();
  }

  /** Resolves when something was recorded here, or it is time to look for others' alerts and for retries. */
  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, this.#parts.pollMs);
    if (!this.#news) await promise;
    clearTimeout(timer);
    this.#news = false;
  }
}
