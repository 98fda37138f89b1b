import type { NotifiedCommand } from "@paybell/contract";
import { Misused } from "../errors/misused.ts";

/** The recorded facts of an IPN, for the state of its chain. No card data. */
export interface KnownIpn {
  readonly id: string;
  /** "" where it is not known. */
  readonly command: NotifiedCommand | "";
  readonly transactionType: string;
  readonly status: string;
  readonly isoResponseCode: string;
  /** For a settlement: totalAmount. */
  readonly amount: string;
  readonly currency: string;
  readonly reqId: string;
  readonly refId: string;
  readonly merchantTransId: string;
  /** Absent in older records. */
  readonly batchNo?: string;
  /** The PreAuth that it is or completes, where known. */
  readonly preAuthId?: string | undefined;
}

/** An IPN as a store records it. */
export interface SeenIpn {
  readonly id: string;
  /** The same for a Sale and its Void, for a PreAuth, its Complete and their Void at one terminal. */
  readonly chain: string;
  readonly facts: KnownIpn;
}

/**
 * Records which IPNs were processed. To support another database, implement this: call `runs` at most once for an id,
 * for one IPN of a chain at a time, and record nothing if it rejects.
 *
 * @typeParam Tx the transaction that your function writes with
 */
export interface SeenStore<Tx> {
  /**
   * @param runs gets the transaction, and the other known IPNs of the chain
   * @throws the error of `runs`, or its own error if it is not known whether the IPN is processed: both mean "deliver
   * again"
   */
  once(
    seen: SeenIpn,
    runs: (tx: Tx, known: readonly KnownIpn[]) => Promise<unknown> | unknown,
  ): Promise<"processed" | "duplicate">;
}

/** The record of a link, under an id that no IPN has. */
export function linkTo({ id, chain }: SeenIpn): { readonly id: string; readonly facts: string } {
  return { id: JSON.stringify(["link", id]), facts: JSON.stringify({ chain }) };
}

/** The chains, without the IPN's own, that records of links lead to. */
export function linkedChains(own: string, links: readonly string[]): string[] {
  const chains = links.map((text) => (JSON.parse(text) as { readonly chain: string }).chain);
  return [...new Set(chains)].filter((chain) => chain !== own);
}

/** A store in an SQL database. */
export interface SqlStore<Tx> extends SeenStore<Tx> {
  /** The statements that create its table, for your own migrations. */
  readonly ddl: string;
  /** If it does not exist. */
  createTable(): Promise<void>;
  /**
   * Deletes IPNs that were processed longer ago. The service keeps notifications for 90 days unless its operator chose
   * otherwise, and parked ones whatever their age: have those sent again before.
   *
   * @param days default 100, at least 7
   * @returns the number deleted
   */
  forget(days?: number): Promise<number>;
}

export const retentionDaysDefault = 100;
const retentionDaysMin = 7;
/** A hundred years: the databases take no number without an end. */
const retentionDaysMax = 36_500;

export function checkedDays(days: number): number {
  if (days >= retentionDaysMin && days <= retentionDaysMax) return days;
  throw new Misused("wrong_option", `${days} days`, {
    remedy: `Keep ${retentionDaysMin} to ${retentionDaysMax}: the service delivers for three.`,
  });
}

/** It becomes part of SQL statements, so it must be a plain name. */
export function checkedTable(table: string): string {
  if (/^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/.test(table)) return table;
  throw new Misused("wrong_option", "table", {
    remedy: "Give a plain name in lower case, perhaps with its schema: paybell_ipns.",
  });
}

/** The error reported in place of the database's own, which is its cause. */
export function noTable(table: string, cause: unknown): Misused {
  const missing = new Misused("wrong_option", `The table ${table}`, {
    meaning: "is not in this database",
    remedy: "Call the store's createTable() before the first IPN, or run its ddl with your migrations.",
  });
  missing.cause = cause;
  return missing;
}
