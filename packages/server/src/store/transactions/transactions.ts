import { voidableCommands } from "@paybell/contract";
import type { Pool } from "pg";
import type { ReqIdOf } from "../../delivery/attempt/envelope.ts";
import { type LeaseId, type NotificationId, newId, type PartnerId, type TransactionId } from "../../ids.ts";
import type { Begun, Init, ReportedOriginal, Transaction, TransactionStore } from "../../ledger/store.ts";
import type { NotificationState } from "../../notification.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";
import { batchState, reversalOf, reversesEarly, settlementCommands } from "./conditions.ts";
import { Inits, type InitsOptions } from "./inits.ts";

// Named columns: a later version adds columns while this one runs, and PostgreSQL refuses a prepared statement whose
// result has changed, at every call until its connection ends.
const columns = `
  t.partner_id AS "partnerId", t.id, t.origin, t.command, t.state, t.req_id AS "reqId", t.external_id AS "externalId",
  t.original_id AS "originalId", t.original_external_id AS "originalExternalId", t.chain_id AS "chainId",
  t.callback_url AS "callBackUrl", t.amount_minor::text AS "amountText", t.currency, t.acquirer, t.site,
  t.lease_id AS "runBy", t.facts, t.notification_id AS "notificationId",
  t.created_at AS "createdAt", t.completed_at AS "completedAt"`;

const columnsOfInit = `${columns}, t.reversal_state AS reversal, NULL AS "notificationState", NULL AS batch`;

// A command is in doubt once its lease is gone. A lease id is never reused, so this cannot change back.
const findLeasesOfInits = prepared<{ lease_id: LeaseId; reverses: boolean }>(`
  SELECT f.lease_id, bool_or(f.command = 'REVERSAL') AS reverses FROM transactions f
  WHERE f.state = 'INIT' AND f.command NOT IN ${settlementCommands} GROUP BY f.lease_id`);
const findTheirStates = prepared<{ lease_id: LeaseId; is_gone: boolean }>(`
  SELECT f.lease_id, NOT EXISTS (SELECT FROM leases l WHERE l.id = f.lease_id) AS is_gone
  FROM unnest($1::uuid[]) AS f (lease_id)
  -- After a restore the outcome is known to the acquirer alone, until an operator has asked.
  WHERE NOT EXISTS (SELECT FROM restores r WHERE r.released_at IS NULL AND f.lease_id < r.leases_below)`);

// A partner's REVERSAL is answered by the instance that ends the Reversal, which may have died since. Its own instance
// lives, and does not know: once the claim of the dead one is over, any takes it.
const unansweredReversal = `
  f.command = 'REVERSAL' AND EXISTS (
    SELECT FROM reversals r WHERE r.partner_id = f.partner_id AND r.transaction_id = f.original_id
      AND r.requested_by = f.id AND r.state <> 'PENDING' AND r.due_at <= now())`;

// In one statement with the search for leases, another instance's take-over could be taken over at once: after a row
// lock the row is checked again, but with the statement's older snapshot of the leases.
const takeOver = prepared<TransactionRow>(`
  UPDATE transactions t SET lease_id = $1
  WHERE (t.partner_id, t.id) IN (
    SELECT f.partner_id, f.id FROM transactions f
    WHERE f.state = 'INIT' AND f.command NOT IN ${settlementCommands}
      AND (f.lease_id = ANY ($2::uuid[]) OR (f.lease_id = ANY ($4::uuid[]) AND ${unansweredReversal}))
    LIMIT $3
    FOR UPDATE SKIP LOCKED)
  RETURNING ${columnsOfInit}`);

const findInitsOfLease = prepared<TransactionRow>(`
  SELECT ${columnsOfInit} FROM transactions t
  WHERE t.state = 'INIT' AND t.command NOT IN ${settlementCommands} AND t.lease_id = $1`);

// A settlement belongs to no batch: it settles one. A refused one left its batch open for the next.
const selectTransaction = `
  SELECT ${columns}, ${reversalOf("t")} AS reversal, CASE
    WHEN t.command = 'SETTLEMENT' AND t.origin = 'command' THEN
      ${batchState("lpad(r.batch_no::text, 6, '0') = t.facts #>> '{fields,batchNo}'")}
    WHEN t.batch_id IS NOT NULL THEN ${batchState("r.batch_id = t.batch_id")}
    END AS batch, CASE
    WHEN t.notification_id IS NULL THEN NULL
    WHEN t.notify_at IS NOT NULL THEN 'pending'
    WHEN EXISTS (SELECT FROM pending p WHERE p.partner_id = t.partner_id AND p.id = t.notification_id) THEN 'pending'
    WHEN EXISTS (SELECT FROM parked p WHERE p.partner_id = t.partner_id AND p.id = t.notification_id) THEN 'parked'
    ELSE 'accepted' END AS "notificationState"
  FROM transactions t LEFT JOIN terminals r ON r.partner_id = t.partner_id AND r.tid = t.tid`;

const findById = prepared<TransactionRow>(
  `${selectTransaction} WHERE t.partner_id = $1 AND t.id = $2 AND NOT t.is_tombstone`,
);

// A command's reqId is unique. A switch may report the same one, also repeatedly: the command comes first, then the
// newest.
const findByReqId = prepared<TransactionRow>(`
  (${selectTransaction}
   WHERE (t.partner_id = $1) IS TRUE AND t.req_id = $2 AND t.origin = 'command' AND NOT t.is_tombstone)
  UNION ALL
  (${selectTransaction} WHERE t.partner_id = $1 AND t.req_id = $2 AND t.origin = 'switch' ORDER BY t.id DESC LIMIT 1)
  LIMIT 1`);

const findBegun = prepared<{ id: TransactionId }>(`
  SELECT t.id FROM transactions t
  WHERE (t.partner_id = $1) IS TRUE AND t.req_id = $2 AND t.origin = 'command' AND t.body_hash = $3`);

// Before the message leaves. Zero rows: it must not leave any more.
const redirect = prepared(`
  UPDATE transactions SET site = $4 WHERE partner_id = $1 AND id = $2 AND state = 'INIT' AND lease_id = $3`);

// The keys of what a reported Reversal may name by a number.
const keysOfNamed = ["", ...voidableCommands.map((command) => ` #${command}`)];
/**
 * From any transaction of a chain ($2) up to its first, and `linked` to all that refer to one of them. A switch may report
 * two that refer to each other: UNION ends the recursion. A Reversal that it reported before its original refers to it
 * by its number.
 */
export const withChain = `
    WITH RECURSIVE up AS (
      SELECT t.id, t.original_id FROM transactions t WHERE t.partner_id = $1 AND t.id = $2
      UNION
      SELECT t.id, t.original_id FROM transactions r JOIN transactions t
        ON (t.partner_id = r.partner_id) IS TRUE AND ${reversesEarly("r", "t")}
        AND t.external_id IN (${keysOfNamed.map((key) => `r.original_external_id || '${key}'`).join(", ")})
      WHERE r.partner_id = $1 AND r.id = $2
      UNION
      SELECT t.id, t.original_id FROM up JOIN transactions t ON t.partner_id = $1 AND t.id = up.original_id),
    down AS (
      SELECT id FROM up
      UNION
      SELECT t.id FROM down JOIN transactions t ON t.partner_id = $1 AND t.original_id = down.id),
    linked AS (
      SELECT id FROM down
      UNION
      SELECT r.id FROM down JOIN transactions t ON t.partner_id = $1 AND t.id = down.id
        JOIN transactions r ON ${reversesEarly("r", "t")})`;

const findChain = prepared<TransactionRow>(`${withChain}
  ${selectTransaction} JOIN linked ON linked.id = t.id WHERE t.partner_id = $1 ORDER BY t.id LIMIT 100`);

// The unique reqId decides which came first: this record, or the command itself.
const insertTombstone = prepared(`
  INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, is_tombstone,
    completed_at)
  VALUES ($1, $2, 'command', 'REVERSAL', 'ERROR', $3, $2, '{"kind":"system","fields":{}}', true, now())
  ON CONFLICT DO NOTHING
  RETURNING id`);

const findReported = prepared<ReportedOriginal & { readonly external_id: string }>(`
  SELECT t.external_id, t.id, t.chain_id AS "chainId", t.command, t.req_id AS "reqId", t.reported_batch AS "batchId"
  FROM unnest($2::text[]) AS i (external_id)
  JOIN transactions t ON (t.partner_id = $1) IS TRUE AND t.external_id = i.external_id AND t.origin = 'switch'`);

type TransactionRow = Omit<Transaction, "amountMinor" | "notification" | "createdAtMs" | "completedAtMs" | "emv"> & {
  readonly amountText: string | null;
  readonly notificationId: NotificationId | null;
  readonly notificationState: NotificationState | null;
  readonly createdAt: Date;
  readonly completedAt: Date | null;
};

/** The ledger's transactions in PostgreSQL. INITs are group-committed. */
export class PostgresTransactions implements TransactionStore {
  readonly #engine: Pool;
  readonly #homes: Homes;
  readonly #inits: Inits;

  /** @param engine the database with the leases */
  constructor({ engine, homes }: Pick<Database, "engine" | "homes">, options: InitsOptions = {}) {
    this.#engine = engine;
    this.#homes = homes;
    this.#inits = new Inits(homes, options);
  }

  begin(init: Init): Promise<Begun> {
    return this.#inits.begin(init);
  }

  async find(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined> {
    const row = await findById.first(this.#homes.of(partnerId).engine, [partnerId, id]);
    return row && toTransaction(row);
  }

  async findByReqId(partnerId: PartnerId, reqId: string): Promise<Transaction | undefined> {
    const row = await findByReqId.first(this.#homes.of(partnerId).engine, [partnerId, reqId.toLowerCase()]);
    return row && toTransaction(row);
  }

  async findBegun(partnerId: PartnerId, reqId: string, bodyHash: Buffer): Promise<TransactionId | undefined> {
    const values = [partnerId, reqId.toLowerCase(), bodyHash];
    return (await findBegun.first(this.#homes.of(partnerId).engine, values))?.id;
  }

  async chain(transaction: Transaction): Promise<readonly Transaction[]> {
    const { partnerId, id } = transaction;
    const rows = await findChain.rows(this.#homes.of(partnerId).engine, [partnerId, id]);
    return rows.map(toTransaction);
  }

  async reverseBeforeArrival(partnerId: PartnerId, reqId: string): Promise<TransactionId | undefined> {
    const rowCount = await insertTombstone.run(this.#homes.of(partnerId).engine, [partnerId, newId(), reqId]);
    return rowCount === 1 ? undefined : (await this.findByReqId(partnerId, reqId))?.id;
  }

  async findReported(
    partnerId: PartnerId,
    externalIds: readonly string[],
  ): Promise<ReadonlyMap<string, ReportedOriginal>> {
    const rows = await findReported.rows(this.#homes.of(partnerId).engine, [partnerId, externalIds]);
    return new Map(rows.map(({ external_id: externalId, ...original }) => [externalId, original]));
  }

  async redirect(partnerId: PartnerId, id: TransactionId, leaseId: LeaseId, site: string): Promise<boolean> {
    const values = [partnerId, id, leaseId, site];
    return (await redirect.run(this.#homes.of(partnerId).engine, values)) === 1;
  }

  async takeOver(leaseId: LeaseId, rowsMax: number): Promise<readonly Transaction[]> {
    const named = await this.#homes.gather(({ engine }) => findLeasesOfInits.rows(engine));
    if (named.length === 0) return [];
    const leases = await findTheirStates.rows(this.#engine, [named.map((row) => row.lease_id)]);
    const idsOf = (which: (lease: (typeof leases)[number]) => boolean) =>
      leases.filter(which).map((row) => row.lease_id);
    const gone = idsOf((lease) => lease.is_gone);
    const reversing = new Set(named.filter((row) => row.reverses).map((row) => row.lease_id));
    const living = idsOf((lease) => !lease.is_gone && reversing.has(lease.lease_id));
    if (gone.length + living.length === 0) return [];
    const values = [leaseId, gone, this.#homes.share(rowsMax), living];
    const rows = await this.#homes.gather(({ engine }) => takeOver.rows(engine, values));
    return rows.map(toTransaction);
  }

  async initsOf(leaseId: LeaseId): Promise<readonly Transaction[]> {
    const rows = await this.#homes.gather(({ engine }) => findInitsOfLease.rows(engine, [leaseId]));
    return rows.map(toTransaction);
  }
}

const findReqId = prepared<{ req_id: string | null }>(
  "SELECT req_id FROM transactions WHERE partner_id = $1 AND id = $2",
);

export function readReqId(homes: Homes): ReqIdOf {
  return async (partnerId, id) => {
    const values = [partnerId, id];
    const row = await findReqId.first(homes.of(partnerId).engine, values);
    return row?.req_id ?? "";
  };
}

function toTransaction(row: TransactionRow): Transaction {
  const { amountText, notificationId: id, notificationState: state, createdAt, completedAt, ...same } = row;
  return {
    ...same,
    amountMinor: amountText === null ? null : BigInt(amountText),
    notification: id && state ? { id, state } : null,
    createdAtMs: createdAt.getTime(),
    completedAtMs: completedAt?.getTime() ?? null,
  };
}
