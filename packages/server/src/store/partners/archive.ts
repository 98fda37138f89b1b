import type { Pool } from "pg";
import { ServiceError } from "../../errors.ts";
import type { PartnerId } from "../../ids.ts";
import type { PartnerArchiveStore } from "../../partners/archive.ts";
import type { Database } from "../database/database.ts";
import { planned, runInBatches } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { isStanding, openReversal } from "../transactions/conditions.ts";

const pageRows = 500;

interface PartnerTable {
  readonly name: string;
  /** The rest of its primary key, after the partner. */
  readonly key: Readonly<Record<string, "uuid" | "text" | "integer">>;
}

const id = { id: "uuid" } as const;

/** In the order in which they are written and deleted. */
const tables: readonly PartnerTable[] = [
  { name: "terminals", key: { tid: "text" } },
  { name: "attempts", key: { ...id, round: "integer", attempt_no: "integer", lease_id: "uuid" } },
  { name: "notifications", key: id },
  { name: "parked", key: id },
  { name: "proofs", key: id },
  { name: "endpoints", key: id },
  { name: "events", key: id },
  { name: "reversals", key: { transaction_id: "uuid" } },
  { name: "batches", key: id },
  { name: "clearing_entries", key: id },
  { name: "transactions", key: id },
];

/** Nobody can read them without the master key, or they are sums of what is written. */
const deletedOnly: readonly PartnerTable[] = [
  { name: "cards", key: { chain_id: "uuid" } },
  { name: "pulls", key: {} },
  { name: "redeliveries", key: { ...id, step: "uuid" } },
  { name: "clearing_matches", key: { transaction_id: "uuid" } },
  { name: "clearing_books", key: { transaction_id: "uuid" } },
  { name: "delivery_figures", key: { grain: "text", at: "text" } },
];

/** Empty, unless a person redelivered something since the deletion began: deleted last, because that adds to it. */
const pending: PartnerTable = { name: "pending", key: id };

/** Every instance knows of a change after 5 s, and then starts nothing for the partner. */
const settledS = 10;

const findObstacles = planned<{ why: string }>(`
  SELECT why FROM (VALUES
    ((SELECT count(*) FROM pending WHERE partner_id = $1), 'notifications are pending'),
    ((SELECT count(*) FROM transactions WHERE partner_id = $1 AND state = 'INIT'), 'commands are in flight'),
    ((SELECT count(*) FROM transactions WHERE partner_id = $1 AND notify_at IS NOT NULL), 'reports wait'),
    ((SELECT count(*) FROM settlements WHERE partner_id = $1), 'settlements are under way'),
    ((SELECT count(*) FROM reversals WHERE partner_id = $1 AND state ${openReversal}), 'Reversals are not done'),
    ((SELECT count(*) FROM clearing_entries WHERE partner_id = $1 AND state = 'open'), 'exceptions of clearing are open'),
    ((SELECT count(*) FROM terminals r WHERE r.partner_id = $1 AND EXISTS (
      SELECT FROM transactions t WHERE t.partner_id = $1 AND t.batch_id = r.batch_id AND ${isStanding})),
      'batches are open')) AS found (count, what)
  CROSS JOIN LATERAL (SELECT found.count || ' ' || found.what AS why) AS told
  WHERE found.count > 0`);

// Not stopped_at: a partner that was paused before, and so could run commands, has stopped since then.
const changedJustNow = planned(`
  SELECT FROM partners WHERE id = $1 AND updated_at > now() - ${settledS} * interval '1 second'`);

// A partner that was enabled meanwhile may have new rows, which belong to nobody's archive.
const isDisabled = "id = $1 AND state = 'disabled'";

const partnerLine = planned<{ line: string }>(`
  SELECT json_build_object('table', 'partners', 'row', json_build_object('id', id, 'state', state, 'settings', settings,
    'created_at', created_at))::text AS line
  FROM partners WHERE id = $1`);

/** The rows of one partner, for its archive. */
export function postgresPartnerArchive(database: Pick<Database, "pool" | "homes">): PartnerArchiveStore {
  const poolOf = (partnerId: PartnerId) => database.homes.of(partnerId).pool;

  return {
    async obstacles(partnerId) {
      const rows = await findObstacles.rows(poolOf(partnerId), [partnerId]);
      const changes = await changedJustNow.run(database.pool, [partnerId]);
      return [
        ...rows.map(({ why }) => why),
        ...(changes === 0 ? [] : [`it was changed less than ${settledS} seconds ago`]),
      ];
    },

    async *lines(partnerId) {
      const rows = await partnerLine.rows(database.pool, [partnerId]);
      yield rows.map(({ line }) => line);
      for (const table of tables) yield* linesOf(poolOf(partnerId), table, partnerId);
    },

    async count(partnerId) {
      const counts = tables.map(({ name }) => `(SELECT count(*) FROM ${name} WHERE partner_id = $1)`);
      const { rows } = await poolOf(partnerId).query<{ count: number }>(
        `SELECT (1 + ${counts.join(" + ")})::integer AS count`,
        [partnerId],
      );
      return rows[0]?.count ?? 0;
    },

    async remove(partnerId) {
      const home = poolOf(partnerId);
      for (const table of [...deletedOnly, ...tables, pending]) await removeRows(home, table, partnerId);
      await inTransaction(database.pool, async (client) => {
        for (const table of ["terminal_claims", "partner_keys", "proposals"]) {
          await client.query(`DELETE FROM ${table} WHERE partner_id = $1`, [partnerId]);
        }
        const { rowCount } = await client.query(`DELETE FROM partners WHERE ${isDisabled}`, [partnerId]);
        if (rowCount === 0) throw new ServiceError("partner_in_use", "The partner was enabled during its deletion.");
        await client.query("SELECT pg_notify('paybell_partner', $1)", [partnerId]);
      });
    },
  };
}

async function* linesOf(pool: Pool, { name, key }: PartnerTable, partnerId: PartnerId) {
  const names = Object.keys(key).map((column) => `t.${column}`);
  const columns = names.join(", ");
  const after = Object.values(key)
    .map((type, nth) => `$${nth + 2}::text::${type}`)
    .join(", ");
  const text = (isFirst: boolean) => `
    SELECT json_build_object('table', '${name}', 'row', row_to_json(t))::text AS line,
      ARRAY[${names.map((column) => `${column}::text`).join(", ")}] AS at
    FROM ${name} t WHERE t.partner_id = $1 ${isFirst ? "" : `AND (${columns}) > (${after})`}
    ORDER BY ${columns} LIMIT ${pageRows}`;
  let position: readonly string[] = [];
  for (;;) {
    const { rows } = await pool.query<{ line: string; at: string[] }>(text(position.length === 0), [
      partnerId,
      ...position,
    ]);
    // Within JSON a line break is white space.
    if (rows.length > 0) yield rows.map(({ line }) => line.replaceAll("\n", " "));
    if (rows.length < pageRows) return;
    position = rows.at(-1)?.at ?? [];
  }
}

function removeRows(pool: Pool, { name, key }: PartnerTable, partnerId: PartnerId): Promise<void> {
  const columns = ["partner_id", ...Object.keys(key)].join(", ");
  const remove = planned(`
    DELETE FROM ${name} WHERE (${columns}) IN (SELECT ${columns} FROM ${name} WHERE partner_id = $1 LIMIT $2)
      AND EXISTS (SELECT FROM partners WHERE ${isDisabled})`);
  return runInBatches(pool, remove, [partnerId]);
}
