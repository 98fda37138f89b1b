import type { KeyObject } from "node:crypto";
import { headerNames, webhookSignature } from "@paybell/contract";
import type { Agent, buildConnector } from "undici";
import type { Clock } from "../clock.ts";
import type { EventKind, EventSink, NewEvent } from "../events.ts";
import { type Alert, alertKinds, type EventStore } from "./alerts-store.ts";
import { type ConnectRules, connect } from "./transport/connect.ts";

export interface AlertTarget {
  readonly url: string;
  /** Signs the headers as those of an IPN: Standard Webhooks v1. */
  readonly key: KeyObject;
  /** Where it may lead. */
  readonly rules: ConnectRules;
}

export interface AlertsParts {
  readonly store: EventStore;
  /** Undefined: events are recorded and counted, and nobody is told. */
  readonly target: AlertTarget | undefined;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: { warn(fields: object, message: string): void };
  readonly onRecorded?: (kind: EventKind) => void;
  readonly onSent?: (alert: Alert, taken: boolean) => void;
  /** Seconds to wait after each failed try; the last one again and again. */
  readonly retryS?: readonly number[];
  readonly timeoutMs?: number;
  readonly pollMs?: number;
}

const giveUpAfterMs = 3 * 86_400_000;
const together = 5;
/** Longer than all of a take can last, so that nobody else sends it at the same time. */
const leaseMarginS = 30;

/** Records what an operator should know of, and sends alerts on until the alert URL takes them. */
export class Alerts implements EventSink {
  readonly #parts: Required<Omit<AlertsParts, "onRecorded" | "onSent" | "target">> &
    Pick<AlertsParts, "onRecorded" | "onSent" | "target">;
  readonly #stopping = new AbortController();
  #news = false;
  #wake: () => void = () => undefined;
  #loop: Promise<void> | undefined;

  constructor(parts: AlertsParts) {
    this.#parts = { retryS: [5, 30, 120, 600, 3_600], timeoutMs: 10_000, pollMs: 5_000, ...parts };
  }

  /** Durable when it resolves; it never rejects: an event that cannot be recorded now is in the log. */
  async record(event: NewEvent): Promise<void> {
    this.#parts.onRecorded?.(event.kind);
    try {
      await this.#parts.store.record([event], this.#parts.target !== undefined);
    } catch (error) {
      this.#parts.log.warn({ err: error, event }, "an event could not be recorded");
      return;
    }
    if (alertKinds.includes(event.kind)) this.#tell();
  }

  /** Does nothing without an alert URL. */
  start(): void {
    const { target } = this.#parts;
    if (target === undefined || this.#loop !== undefined) return;
    this.#loop = this.#run(target);
  }

  /** Breaks off what is being sent: it is due again, for whoever is there then. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#tell();
    await this.#loop;
  }

  async #run(target: AlertTarget): Promise<void> {
    // Loaded where alerts are sent: without them this thread has no use for it, and 13 MB of memory more.
    const { Agent } = await import("undici");
    const agent = new Agent({ connections: together, connect: guarded(target.rules) });
    try {
      while (!this.#stopping.signal.aborted) {
        const sent = await this.#sendDue(target, agent);
        if (sent < together) await this.#pause();
      }
    } finally {
      await agent.destroy();
    }
  }

  /** @returns how many were due */
  async #sendDue(target: AlertTarget, agent: Agent): Promise<number> {
    const { store, timeoutMs, log } = this.#parts;
    try {
      const due = await store.takeDue(together, Math.ceil(timeoutMs / 1_000) + leaseMarginS);
      const results = await Promise.allSettled(due.map((alert) => this.#send(alert, target, agent)));
      for (const result of results) if (result.status === "rejected") throw result.reason;
      return due.length;
    } catch (error) {
      log.warn({ err: error }, "alerts could not be read or written");
      return 0;
    }
  }

  async #send(alert: Alert, target: AlertTarget, agent: Agent): Promise<void> {
    const { store, clock, retryS, log, onSent } = this.#parts;
    const problem = await this.#post(alert, target, agent);
    if (problem !== undefined && this.#stopping.signal.aborted) return store.retry(alert, 0);
    onSent?.(alert, problem === undefined);
    if (problem === undefined) return store.settle(alert);
    const about = { alertId: alert.id, kind: alert.kind, tries: alert.tries, problem };
    if (clock.nowMs() - alert.atMs >= giveUpAfterMs) {
      log.warn(about, "an alert was given up");
      return store.settle(alert);
    }
    log.warn(about, "an alert was not taken; it is sent again");
    const delayS = retryS[Math.min(alert.tries, retryS.length) - 1] ?? 3_600;
    return store.retry(alert, delayS);
  }

  /** @returns why it was not taken; undefined when it was */
  async #post(alert: Alert, target: AlertTarget, agent: Agent): Promise<string | undefined> {
    const body = JSON.stringify({
      id: alert.id,
      kind: alert.kind,
      partnerId: alert.partnerId,
      subjectId: alert.subjectId,
      at: new Date(alert.atMs).toISOString(),
      detail: alert.detail,
    });
    const timestampS = Math.floor(this.#parts.clock.nowMs() / 1_000);
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(this.#parts.timeoutMs)]);
    try {
      const { origin, pathname, search } = new URL(target.url);
      const answer = await agent.request({
        origin,
        path: pathname + search,
        method: "POST",
        signal,
        headers: {
          "content-type": "application/json",
          [headerNames.id]: alert.id,
          [headerNames.timestamp]: String(timestampS),
          [headerNames.signature]: webhookSignature(alert.id, timestampS, body, target.key),
        },
        body,
      });
      await answer.body.dump({ limit: 64 * 1024, signal }).catch(() => undefined);
      const taken = answer.statusCode >= 200 && answer.statusCode < 300;
      return taken ? undefined : `status ${answer.statusCode}`;
    } catch (error) {
      return error instanceof Error ? error.message || error.name : String(error);
    }
  }

  #tell(): void {
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

/** An alert goes through the guard that callbacks go through. */
function guarded(rules: ConnectRules): buildConnector.connector {
  return ({ hostname, port, protocol }, callback) => {
    const secure = protocol === "https:";
    const target = { hostname, port: Number(port || (secure ? 443 : 80)), secure };
    connect(target, rules, { session: undefined }).connected.then(
      (socket) => callback(null, socket),
      (failure: Error) => callback(failure, null),
    );
  };
}
