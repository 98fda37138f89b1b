import type { FailureReason } from "../delivery.ts";

/** The meaning of a status: undefined for 2xx, which is acceptance whatever the body says. */
export function statusFailure(status: number): { readonly reason: FailureReason; readonly detail: string } | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status >= 300 && status < 400) {
    return {
      reason: "redirect",
      detail: `Answered ${status}: redirects are never followed. Register the URL it points to.`,
    };
  }
  if (status === 410) {
    return { reason: "gone", detail: "Answered 410: the partner says that this URL is gone for good." };
  }
  if (status === 413) {
    return {
      reason: "too_large",
      detail:
        "Answered 413: the partner's server, or a proxy before it, refuses bodies of this size. " +
        "Raise its limit (a settlement of 50,000 entries is about 5 MB), then redeliver.",
    };
  }
  if (status === 429)
    return { reason: "rate_limited", detail: "Answered 429: too many at once. Lower maxPerSecond or maxInFlight." };
  return { reason: "status", detail: `Answered ${status}.` };
}

/** Whether a status may ask for a wait: 429 and 503. */
export function mayAskToWait(status: number): boolean {
  return status === 429 || status === 503;
}

/** Reads Retry-After: whole seconds, or an HTTP date. Undefined if it is neither. */
export function readRetryAfterMs(value: string, nowMs: number): number | undefined {
  const text = value.trim();
  if (/^[0-9]+$/.test(text)) return Number(text) * 1_000;
  // Date.parse accepts more than HTTP dates: all three forms of those begin with the day's name.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
