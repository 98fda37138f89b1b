import { indent } from "./output-fields.ts";
import { label, type OutputStyle, paint } from "./output-style.ts";
import { count, flow, milliseconds, printable, wrap } from "./output-text.ts";
import type { FailedDelivery, RefusedDelivery } from "./receiver.ts";

export { bannerLines } from "./output-banner.ts";
export { ipnLines } from "./output-ipn.ts";
export { reversalLines } from "./output-reversal.ts";
export { type OutputStyle, outputStyleOf } from "./output-style.ts";

/** A delivery that the sandbox partner refused, with a hint. */
export function refusedLines({ reason, hint, path }: RefusedDelivery, style: OutputStyle): string[] {
  const heading = label(style, "badLabel", "REFUSED");
  const title = `${heading}  ${paint(style, "bad", reason)}  ${paint(style, "faint", path)}`;
  return [title, ...paragraph(hint, style), ""];
}

/** A delivery that the sandbox partner failed on purpose, at /ipn/flaky or /ipn/down. */
export function failedLines({ status, notificationId, attempt, path }: FailedDelivery, style: OutputStyle): string[] {
  const title = `${label(style, "warningLabel", "FAILED")}  ${status} on purpose  ${paint(style, "faint", path)}`;
  const facts = [
    ...(notificationId === "" ? [] : [`notification ${printable(notificationId)}`]),
    ...(attempt === "" ? [] : [`attempt ${printable(attempt)}`]),
  ];
  return [title, ...faintFlow(facts, style), ""];
}

/** An attempt that was not accepted. */
export interface ShownAttempt {
  readonly notificationId: string;
  readonly attemptNo: number;
  readonly url: string;
  readonly httpStatus: number | null;
  /** The service's reason: timeout, connect, tls … */
  readonly reason: string;
  /** Milliseconds until the next attempt; null when it is parked. */
  readonly nextAfterMs: number | null;
}

export function failedAttemptLines(failed: ShownAttempt, style: OutputStyle): string[] {
  const what = failed.httpStatus === null ? failed.reason : `${failed.httpStatus} ${failed.reason}`;
  const next = failed.nextAfterMs === null ? "kept, and replayable" : `again in ${milliseconds(failed.nextAfterMs)}`;
  const tone = failed.nextAfterMs === null ? "bad" : "warning";
  const title = label(
    style,
    tone === "bad" ? "badLabel" : "warningLabel",
    failed.nextAfterMs === null ? "PARKED" : "FAILED",
  );
  const facts = [
    printable(failed.url),
    `notification ${printable(failed.notificationId)}`,
    `attempt ${failed.attemptNo}`,
  ];
  return [`${title}  ${paint(style, tone, printable(what))}  ${next}`, ...faintFlow(facts, style), ""];
}

/** Shown at the first Ctrl-C. */
export function drainingLines(
  facts: { readonly inFlight: number; readonly atMostMs: number },
  style: OutputStyle,
): string[] {
  if (facts.inFlight === 0) return ["", ...paragraph("Stopping.", style)];
  const most = milliseconds(facts.atMostMs);
  return [
    "",
    ...paragraph(`${facts.inFlight} in flight, waiting at most ${most}; press Ctrl-C again to stop at once`, style),
  ];
}

/** The last line. Pending notifications are in the database. */
export function stoppedLines({ pending }: { readonly pending: number }, style: OutputStyle): string[] {
  if (pending === 0) return paragraph("Stopped. No notification is waiting.", style);
  return paragraph(`Stopped. ${count(pending, "notification")} kept for the next start.`, style);
}

function paragraph(text: string, style: OutputStyle): string[] {
  return wrap(printable(text), style.columns - indent.length).map((line) => indent + line);
}

function faintFlow(facts: readonly string[], style: OutputStyle): string[] {
  return flow(facts, " · ", style.columns - indent.length).map((line) => indent + paint(style, "faint", line));
}
