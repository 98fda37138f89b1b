import { firstFailure } from "../errors.ts";
import { withoutReport } from "../events.ts";
import type { Alert } from "./store.ts";

/** Alerts of one kind that are sent together: an outage is one message with a count, not a thousand messages. */
export interface AlertGroup {
  /** The oldest alert. Its id identifies the group. */
  readonly first: Alert;
  /** The number of alerts, the first included. */
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly lastAtMs: number;
  /** The next ones after the first, at most 100. */
  readonly others: readonly Alert[];
}

/** A channel that alerts are sent to. */
export interface AlertChannel {
  /** Shown in the log, so it contains no secret. */
  readonly name: string;
  /** Never rejects. @returns why it was not accepted; undefined if it was */
  send(group: AlertGroup, signal: AbortSignal): Promise<string | undefined>;
  close(): Promise<void>;
}

const othersMax = 100;

/** @param alerts of one kind, at least one */
export function groupOf(alerts: readonly Alert[]): AlertGroup {
  const shown = alerts.map((alert) => ({ ...alert, detail: withoutReport(alert.detail) }));
  const sorted = shown.toSorted((a, b) => a.atMs - b.atMs || (a.id < b.id ? -1 : 1));
  const [first, ...others] = sorted;
  if (first === undefined) throw new Error("a group has at least one alert");
  const lastAtMs = sorted.at(-1)?.atMs ?? first.atMs;
  return { first, count: sorted.length, lastAtMs, others: others.slice(0, othersMax) };
}

/** Describes the error of a request. */
export function problemOf(error: unknown): string {
  const { message, name } = firstFailure(error);
  return message || name;
}
