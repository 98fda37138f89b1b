import type { Alert } from "./store.ts";

/** Alerts of one kind that are told together: an outage is one message with a number, not a thousand. */
export interface AlertGroup {
  /** The oldest of them: its id stands for all. */
  readonly first: Alert;
  /** The first included. */
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly lastAtMs: number;
  /** The next ones after the first, a hundred at most. */
  readonly others: readonly Alert[];
}

/** Somewhere that alerts are sent to. */
export interface AlertChannel {
  /** Shown in the log, so without any secret. */
  readonly name: string;
  /** @returns why it was not taken; undefined when it was. It never rejects */
  send(group: AlertGroup, signal: AbortSignal): Promise<string | undefined>;
  close(): Promise<void>;
}

const othersMax = 100;

/** @param alerts of one kind, at least one */
export function groupOf(alerts: readonly Alert[]): AlertGroup {
  const sorted = alerts.toSorted((a, b) => a.atMs - b.atMs || (a.id < b.id ? -1 : 1));
  const [first, ...others] = sorted;
  if (first === undefined) throw new Error("a group has at least one alert");
  const lastAtMs = sorted.at(-1)?.atMs ?? first.atMs;
  return { first, count: sorted.length, lastAtMs, others: others.slice(0, othersMax) };
}

/** What went wrong with a request, in words. */
export function problemOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
