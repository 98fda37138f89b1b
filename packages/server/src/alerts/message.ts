import { firstFailure } from "../errors.ts";
import { withoutReport } from "../telemetry/events.ts";
import { alertTitle } from "./kinds.ts";
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

export function problemOf(error: unknown): string {
  const { message, name } = firstFailure(error);
  return message || name;
}

/** The guide to what to do: its whole address, if that of the operators is known. */
export function runbookOf({ first }: AlertGroup, consoleUrl: string | null): string {
  const page = `/docs/operator/runbook#${first.kind}`;
  return consoleUrl === null ? page : new URL(page, consoleUrl).href;
}

const linesMax = 10;

export function titleOf({ first, count }: AlertGroup): string {
  const title = alertTitle(first.kind);
  return count === 1 ? title : `${title} (${count} times)`;
}

/** Describes what happened, and for which partners: the first ones by name. */
export function linesOf({ first, count, others }: AlertGroup): string[] {
  const shown = [first, ...others].slice(0, linesMax);
  const rest = count - shown.length;
  return [
    ...shown.map(lineOf),
    ...(rest > 0 ? [`… and ${rest} more: GET /operator/v1/events?state=${first.kind}`] : []),
  ];
}

function lineOf({ atMs, partnerId, subjectId, detail }: Alert): string {
  const about = [
    ...(partnerId === null ? [] : [`partner ${partnerId}`]),
    ...(subjectId === null ? [] : [`subject ${subjectId}`]),
    JSON.stringify(detail),
  ];
  return `${new Date(atMs).toISOString()}  ${about.join("  ")}`;
}
