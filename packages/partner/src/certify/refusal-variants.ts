import type { RequestResult } from "./post.ts";

/** One refusal as its sender sees it. */
export interface ObservedRefusal {
  readonly code: string;
  readonly came: RequestResult;
}

/** Refusals that look the same: status, type and body, ignoring times, ids and counters. */
export interface RefusalVariant {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** The cases that were refused so. */
  readonly cases: readonly string[];
}

/** The variants of all refusals, the most frequent first. More than one tells a forger which check failed. */
export function refusalVariants(refusals: readonly ObservedRefusal[]): readonly RefusalVariant[] {
  const byLook = new Map<string, { status: number; contentType: string; body: string; cases: Set<string> }>();
  for (const { code, came } of refusals) {
    if ("failure" in came) continue;
    const contentType = came.headers["content-type"] ?? "";
    const body = masked(came.body.toString("utf8"));
    const key = JSON.stringify([came.status, contentType, body]);
    const look = byLook.get(key) ?? { status: came.status, contentType, body, cases: new Set<string>() };
    look.cases.add(code);
    byLook.set(key, look);
  }
  return [...byLook.values()]
    .map((look) => ({ ...look, cases: [...look.cases] }))
    .sort((one, other) => other.cases.length - one.cases.length);
}

/** A request's own id or time reveals nothing. Words are kept: "stale" and "bad signature" reveal the check. */
function masked(body: string): string {
  return body
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "#")
    .replaceAll(/[0-9a-z]{10,}/gi, (word) => (/[0-9]/.test(word) ? "#" : word))
    .replaceAll(/[0-9]+/g, "#");
}
