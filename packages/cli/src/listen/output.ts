import type { ReceivedIpn } from "@paybell/partner";
import { printable, type Style } from "../shell/output.ts";
import type { Forwarded } from "./forward.ts";
import type { Opened, SealedNotification } from "./opened.ts";

/** One notification, and what became of it here. */
export interface Event {
  readonly atMs: number;
  readonly notification: SealedNotification;
  /** Undefined where there are no keys. */
  readonly opened: Opened | undefined;
  /** Undefined where nothing is forwarded. */
  readonly forwarded: Forwarded | undefined;
}

/** A line, and a second one where something is wrong. */
export function eventLines({ atMs, notification, opened, forwarded }: Event, style: Style): string[] {
  const time = style.faint(new Date(atMs).toTimeString().slice(0, 8));
  const words = [time, ...contentText(notification, opened, style), ...forwardText(forwarded, style)];
  const detail = forwarded?.accepted === false && forwarded.status !== null ? forwarded.detail : "";
  return [
    words.join("  "),
    ...(opened?.refused === undefined ? [] : [`          ${printable(opened.refused.hint)}`]),
    ...(detail === "" ? [] : [`          it answered: ${printable(detail)}`]),
  ];
}

function contentText({ id, kind }: SealedNotification, opened: Opened | undefined, style: Style): string[] {
  if (opened === undefined) return [kind, `notification ${id}`, style.faint("not opened")];
  if (opened.refused !== undefined) {
    return [kind, `notification ${id}`, style.bad(`NOT AUTHENTIC: ${opened.refused.reason}`)];
  }
  return [...ipnText(opened.received, style), style.good("verified")];
}

/** Command, amount, status and reference come first. */
function ipnText({ kind, ipn, command, headers }: ReceivedIpn, style: Style): string[] {
  const name = style.strong(command ?? headers.command ?? ipn.transaction_type);
  if (kind === "settlement") {
    const batch = `batch ${ipn.batchNo}  ${ipn.quantity} for ${ipn.totalAmount}`;
    return [name, printable(batch), outcome(ipn.status, "", style), printable(`terminal ${ipn.tid}`)];
  }
  const reference = ipn.refId === "" ? [] : [printable(`refId ${ipn.refId}`)];
  return [
    name,
    printable(`${ipn.amount} ${ipn.currency}`),
    outcome(ipn.status, ` ${ipn.isoResponseCode}`, style),
    ...reference,
  ];
}

function outcome(status: string, code: string, style: Style): string {
  const text = printable(`${status}${code}`);
  return status === "SUCCESS" ? text : style.bad(text);
}

function forwardText(forwarded: Forwarded | undefined, style: Style): string[] {
  if (forwarded === undefined) return [];
  const { status, accepted, durationMs, detail } = forwarded;
  const took = `${Math.round(durationMs)} ms`;
  if (status === null) return [style.bad(`→ ${printable(detail)}`), took];
  return [accepted ? style.good(`→ ${status}`) : style.bad(`→ ${status}`), took];
}

/** The same for a program: one line of JSON. */
export function eventJson({ atMs, notification, opened, forwarded }: Event, withIpn: boolean): object {
  const { id, createdAt, kind } = notification;
  const { received, refused } = opened ?? {};
  return {
    at: new Date(atMs).toISOString(),
    notificationId: id,
    createdAt,
    kind,
    command: received?.headers.command ?? null,
    verified: opened === undefined ? null : received !== undefined,
    ...(refused !== undefined && { refused }),
    ...(received !== undefined && summaryOf(received)),
    forwarded: forwarded ?? null,
    ...(withIpn && received !== undefined && { ipn: received.ipn }),
  };
}

function summaryOf({ kind, ipn }: ReceivedIpn): object {
  const { id: transactionId, reqId, status } = ipn;
  if (kind === "settlement") {
    return { transactionId, reqId, status, batchNo: ipn.batchNo, totalAmount: ipn.totalAmount };
  }
  const { amount, currency, isoResponseCode, refId } = ipn;
  return { transactionId, reqId, status, isoResponseCode, amount, currency, refId };
}
