import type { KnownIpn } from "../stores/store.ts";
import type { ReceivedIpn } from "./receiver.ts";

/** The position of an IPN in its chain: a Sale and its Void; a PreAuth, its Complete and their Void. */
export interface ChainOrder {
  /** The IPN is outdated: a later one of its chain was processed already. */
  readonly stale: boolean;
  /** The IPN with the current state of the chain: this one, unless it is stale or an earlier one says more. */
  readonly latest: KnownIpn;
  /** The chain's other IPNs that were processed before, in order of their steps. */
  readonly known: readonly KnownIpn[];
}

/**
 * Returns the key that the IPNs of one chain share. The Void and the Complete have the invoiceNo of their original;
 * unlike paybell-original-transaction it is in the sealed body. A settlement, and an IPN without invoiceNo, has a chain
 * of its own.
 */
export function chainOf({ kind, ipn }: ReceivedIpn): string {
  return JSON.stringify(kind === "card" && ipn.invoiceNo !== "" ? [ipn.mid, ipn.tid, ipn.invoiceNo] : [ipn.id]);
}

export function knownFrom({ kind, ipn, command, originalTransactionId }: ReceivedIpn): KnownIpn {
  const of = kind === "card" ? ipn : { isoResponseCode: "", amount: ipn.totalAmount, currency: "", refId: "" };
  const facts = {
    id: ipn.id,
    command: command ?? ("" as const),
    transactionType: ipn.transaction_type,
    status: ipn.status,
    isoResponseCode: of.isoResponseCode,
    amount: of.amount,
    currency: of.currency,
    reqId: ipn.reqId,
    refId: of.refId,
    merchantTransId: ipn.merchantTransId,
    batchNo: ipn.batchNo,
  };
  const completed = command === "PREAUTH_COMPLETE" ? originalTransactionId : undefined;
  return { ...facts, preAuthId: kind === "card" && isPreAuth(facts) ? ipn.id : completed };
}

/** @param seen the other IPNs that a store has under the same chain */
export function orderOf(ipn: KnownIpn, seen: readonly KnownIpn[]): ChainOrder {
  const invoice = sameInvoice(ipn, seen);
  const step = (one: KnownIpn) => stepOf(one, invoice);
  const known = invoice.filter((other) => other !== ipn && step(other) + step(ipn) > 0);
  const stale = known.some(
    (other) => succeeded(other) && (step(other) > step(ipn) || (step(other) === step(ipn) && !succeeded(ipn))),
  );
  const says = (one: KnownIpn) => (succeeded(one) ? 10 : 0) + step(one);
  const latest = known.reduce((now, next) => (says(next) > says(now) ? next : now), ipn);
  return { stale, latest, known: known.sort((one, other) => step(one) - step(other)) };
}

function succeeded({ status }: KnownIpn): boolean {
  return status === "SUCCESS";
}

/**
 * 0 begins a chain, 1 completes a PreAuth, 2 ends it. An IPN that does not say its command completes a PreAuth if it is
 * in a batch and the invoice has one that is in none: a PreAuth is in no batch. The unsigned header decides nothing.
 */
function stepOf(one: KnownIpn, invoice: readonly KnownIpn[]): 0 | 1 | 2 {
  if (isEnd(one)) return 2;
  if (one.command !== "") return one.command === "PREAUTH_COMPLETE" ? 1 : 0;
  return !isPreAuth(one) && invoice.some(isPreAuth) ? 1 : 0;
}

function isEnd({ command, transactionType }: Pick<KnownIpn, "command" | "transactionType">): boolean {
  return command === "" ? transactionType === "VOID" || transactionType === "CANCEL" : command === "VOID";
}

function isPreAuth(one: Pick<KnownIpn, "command" | "transactionType" | "batchNo">): boolean {
  return !isEnd(one) && (one.command === "PREAUTH" || (one.command === "" && (one.batchNo ?? "") === ""));
}

const clocksApartMs = 3_600_000;

/**
 * A terminal's invoice numbers restart after 999,999. An IPN that begins a chain, and is later than all others by more
 * than the clocks can differ, therefore belongs to another invoice with the same number.
 */
function sameInvoice(ipn: KnownIpn, seen: readonly KnownIpn[]): KnownIpn[] {
  const byTime = [ipn, ...seen].sort((one, other) => startedMs(one.id) - startedMs(other.id));
  let invoice: KnownIpn[] = [];
  for (const one of byTime) {
    const before = invoice.at(-1);
    const isNext = before !== undefined && startedMs(one.id) - startedMs(before.id) > clocksApartMs;
    const hasEnded = invoice.some((other) => isEnd(other) && succeeded(other));
    if (isNext && !isEnd(one) && (hasEnded || stepOf(one, invoice) === 0)) {
      if (invoice.includes(ipn)) break;
      invoice = [];
    }
    invoice.push(one);
  }
  return invoice;
}

/** Ids of the service are UUIDv7, which begin with the time. Other ids have none: then the number decides. */
function startedMs(id: string): number {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7/i.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : Number.NaN;
}
