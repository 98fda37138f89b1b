import type { FailedDelivery, RefusedDelivery } from "./receiver.ts";
import { indent } from "./story-fields.ts";
import { type Look, label, paint } from "./story-look.ts";
import { count, flow, milliseconds, printable, wrap } from "./story-text.ts";

export { bannerLines } from "./story-banner.ts";
export { ipnLines } from "./story-ipn.ts";
export { type Look, lookOf } from "./story-look.ts";
export { reversalLines } from "./story-reversal.ts";

/** A delivery that the sandbox partner refused, with what to look at. */
export function refusedLines({ reason, hint, path }: RefusedDelivery, look: Look): string[] {
  const title = `${label(look, "badLabel", "REFUSED")}  ${paint(look, "bad", reason)}  ${paint(look, "faint", path)}`;
  return [title, ...paragraph(hint, look), ""];
}

/** A delivery that the sandbox partner failed on purpose, at /ipn/flaky or /ipn/down. */
export function failedLines({ status, notificationId, attempt, path }: FailedDelivery, look: Look): string[] {
  const title = `${label(look, "warningLabel", "FAILED")}  ${status} on purpose  ${paint(look, "faint", path)}`;
  const facts = [
    ...(notificationId === "" ? [] : [`notification ${printable(notificationId)}`]),
    ...(attempt === "" ? [] : [`attempt ${printable(attempt)}`]),
  ];
  return [title, ...faintFlow(facts, look), ""];
}

/** An attempt that the service made and that was not accepted. */
export interface FailedAttempt {
  readonly notificationId: string;
  readonly attemptNo: number;
  readonly url: string;
  readonly httpStatus: number | null;
  /** Why, in a word of the service's own: timeout, connect, tls … */
  readonly reason: string;
  /** Milliseconds until the next attempt; null when it is parked. */
  readonly nextAfterMs: number | null;
}

export function failedAttemptLines(failed: FailedAttempt, look: Look): string[] {
  const what = failed.httpStatus === null ? failed.reason : `${failed.httpStatus} ${failed.reason}`;
  const next = failed.nextAfterMs === null ? "kept, and replayable" : `again in ${milliseconds(failed.nextAfterMs)}`;
  const tone = failed.nextAfterMs === null ? "bad" : "warning";
  const title = label(
    look,
    tone === "bad" ? "badLabel" : "warningLabel",
    failed.nextAfterMs === null ? "PARKED" : "FAILED",
  );
  const facts = [
    printable(failed.url),
    `notification ${printable(failed.notificationId)}`,
    `attempt ${failed.attemptNo}`,
  ];
  return [`${title}  ${paint(look, tone, printable(what))}  ${next}`, ...faintFlow(facts, look), ""];
}

/** At the first Ctrl-C. */
export function drainingLines(facts: { readonly inFlight: number; readonly atMostMs: number }, look: Look): string[] {
  if (facts.inFlight === 0) return ["", ...paragraph("Stopping.", look)];
  const most = milliseconds(facts.atMostMs);
  return [
    "",
    ...paragraph(`${facts.inFlight} in flight, waiting at most ${most}; press Ctrl-C again to stop at once`, look),
  ];
}

/** The last line. What is pending stands in the database. */
export function stoppedLines({ pending }: { readonly pending: number }, look: Look): string[] {
  if (pending === 0) return paragraph("Stopped. No notification is waiting.", look);
  return paragraph(`Stopped. ${count(pending, "notification")} kept for the next start.`, look);
}

function paragraph(text: string, look: Look): string[] {
  return wrap(printable(text), look.columns - indent.length).map((line) => indent + line);
}

function faintFlow(facts: readonly string[], look: Look): string[] {
  return flow(facts, " · ", look.columns - indent.length).map((line) => indent + paint(look, "faint", line));
}
