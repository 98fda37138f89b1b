import type { NotifiedCommand } from "@paybell/contract";
import { Misused } from "../misused.ts";

/** What is remembered of an IPN: enough to tell later how its chain stands. No card data. */
export interface KnownIpn {
  readonly id: string;
  /** As the header named it: "" where the header was missing. */
  readonly command: NotifiedCommand | "";
  readonly transactionType: string;
  readonly status: string;
  readonly isoResponseCode: string;
  /** Of a settlement: totalAmount. */
  readonly amount: string;
  readonly currency: string;
  readonly reqId: string;
  readonly refId: string;
  readonly merchantTransId: string;
}

/** An IPN as a store keeps it. */
export interface SeenIpn {
  /** The IPN's id: what makes it one. */
  readonly id: string;
  /** The same for a Sale and its Void, for a PreAuth, its Complete and their Void. */
  readonly chain: string;
  readonly facts: KnownIpn;
}

/**
 * Where it is written which IPNs were processed. Write your own for another database: `runs` must be called at most
 * once for an id, for one IPN of a chain at a time, and nothing may be remembered when it rejects.
 *
 * @typeParam Tx what your function writes with, in the same transaction
 */
export interface SeenStore<Tx> {
  /**
   * @param runs given the transaction, and what is known of other IPNs of the chain
   * @throws what `runs` threw; or its own error, when nobody knows whether it is processed: both mean "deliver again"
   */
  once(
    seen: SeenIpn,
    runs: (tx: Tx, known: readonly KnownIpn[]) => Promise<unknown> | unknown,
  ): Promise<"processed" | "duplicate">;
}

/** A store in SQL. */
export interface SqlStore<Tx> extends SeenStore<Tx> {
  /** The statements that make its table, for your own migrations. */
  readonly ddl: string;
  /** Makes the table where it is not there yet. */
  createTable(): Promise<void>;
  /**
   * Forgets what was processed longer ago. Keep it as long as an IPN can come again: the service keeps notifications
   * for 90 days unless its operator chose otherwise.
   *
   * @param days default 100, at least 7
   * @returns how many
   */
  forget(days?: number): Promise<number>;
}

export const retentionDaysDefault = 100;
const retentionDaysMin = 7;

export function checkedDays(days: number): number {
  if (days >= retentionDaysMin) return days;
  throw new Misused("wrong_option", `${days} days`, {
    meaning: "are too few: the service delivers for three",
    remedy: `Keep at least ${retentionDaysMin}.`,
  });
}

/** It becomes part of statements, so it must be a plain name. */
export function checkedTable(table: string): string {
  if (/^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/.test(table)) return table;
  throw new Misused("wrong_option", "table", {
    remedy: "Give a plain name in lower case, perhaps with its schema: paybell_ipns.",
  });
}

/** What to tell in place of the database's own error, which is the cause. */
export function noTable(table: string, cause: unknown): Misused {
  const missing = new Misused("wrong_option", `The table ${table}`, {
    meaning: "is not in this database",
    remedy: "Call the store's createTable() before the first IPN, or run its ddl with your migrations.",
  });
  missing.cause = cause;
  return missing;
}
