import { chargingCommands, type SettlementEntry } from "@paybell/contract";
import type { PoolClient } from "pg";
import type { HeldTransaction } from "../../commands/reports/settlement-difference.ts";
import type {
  ComparedInto,
  ComparedSettlement,
  ComparisonStore,
  DueComparison,
} from "../../ledger/reports/comparer.ts";
import { alongIndexes } from "../database/along-indexes.ts";
import { dueClaim } from "../database/claims.ts";
import type { Homes } from "../database/homes.ts";
import { planned, prepared } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";
import { commandsInSql, isStanding } from "../transactions/conditions.ts";

const claim = dueClaim<DueComparison>({
  table: "transactions",
  key: "id",
  dueAt: "compare_at",
  returning: "r.id",
});

// The instance that ends it first writes the event, so that nothing is reported twice.
const end = prepared(`
  UPDATE transactions SET compare_at = NULL
  WHERE partner_id = $1 AND id = $2 AND compare_at IS NOT NULL`);

// Numbers are reused: its round is between the previous and the next settlement of the same batch number. Times stay
// strings, because a Date would truncate the microseconds.
const settlement = planned<SettlementRow>(`
  SELECT s.external_id, s.facts -> 'fields' AS fields, s.reported_batch, s.created_at::text AS reported_at,
    coalesce((
      SELECT b.created_at FROM transactions b
      WHERE b.partner_id = s.partner_id AND b.reported_batch = s.reported_batch AND b.created_at < s.created_at
        AND b.command = 'SETTLEMENT' AND b.state = 'SUCCESS'
      ORDER BY b.created_at DESC LIMIT 1), '-infinity')::text AS since,
    coalesce((
      SELECT a.created_at FROM transactions a
      WHERE a.partner_id = s.partner_id AND a.reported_batch = s.reported_batch AND a.created_at > s.created_at
        AND a.command = 'SETTLEMENT' AND a.state = 'SUCCESS'
      ORDER BY a.created_at LIMIT 1), 'infinity')::text AS until
  FROM transactions s WHERE s.partner_id = $1 AND s.id = $2`);

const columns = `t.id, t.external_id AS "externalId", t.original_id AS "originalId",
    t.original_external_id AS "originalExternalId", t.command, t.req_id AS "reqId",
    coalesce(t.facts #>> '{fields,refId}', '') AS "refId", coalesce(t.facts #>> '{fields,amount}', '') AS amount`;
const counting = `${isStanding} AND t.command IN ${commandsInSql([...chargingCommands, "VOID", "REVERSAL"])}`;
const reportedRows = `
  SELECT ${columns}, t.created_at > $5 AS "isLate", coalesce(t.facts #>> '{fields,transDateTime}', '') AS "time"
  FROM transactions t
  WHERE t.partner_id = $1 AND t.reported_batch = $2 AND t.created_at > $3 AND t.created_at < $4 AND ${counting}
  ORDER BY t.created_at DESC`;

// Our own commands on that terminal, if its open batch has that number.
const ownRows = `
  SELECT ${columns} FROM terminals r JOIN transactions t ON t.partner_id = r.partner_id AND t.batch_id = r.batch_id
  WHERE r.partner_id = $1 AND r.tid = $2 AND r.mid = $3 AND lpad(r.batch_no::text, 6, '0') = $4 AND ${counting}`;

const listed = `
  SELECT coalesce(e ->> 'reqId', '') AS "reqId", coalesce(e ->> 'refNo', '') AS "refNo"
  FROM transactions s CROSS JOIN LATERAL json_array_elements(s.facts -> 'settlementList') AS e
  WHERE s.partner_id = $1 AND s.id = $2`;

const rowsAtOnce = 500;

interface ReportedTransaction extends HeldTransaction {
  /** It was reported after the settlement. */
  readonly isLate: boolean;
  /** As the switch reported it; empty without one. */
  readonly time: string;
}

interface SettlementRow {
  readonly external_id: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly reported_batch: string;
  readonly reported_at: string;
  readonly since: string;
  readonly until: string;
}

/** Settlements that a switch reported, and the ledger's rows of their batches, in PostgreSQL. */
export function postgresComparisons(homes: Homes): ComparisonStore {
  return {
    claimDue: (rowsMax, heldForMs) => claim(homes, rowsMax, heldForMs),

    async read({ partnerId, id }, into, rowsMax) {
      // One snapshot of the ledger for everything.
      const snapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${alongIndexes}`;
      const reading = async (client: PoolClient) => {
        const row = await settlement.first(client, [partnerId, id]);

        return row && (await readBatch(client, { partnerId, id }, row, into, rowsMax));
      };
      // Not the engine's connection: reading a batch takes longer than its statements may.
      return inTransaction(homes.of(partnerId).pool, reading, snapshot);
    },

    end: ({ partnerId, id }, event) =>
      inTransaction(homes.of(partnerId).engine, async (client) => {
        const rowCount = await end.run(client, [partnerId, id]);
        if (rowCount === 1 && event !== undefined) await insertEvents(client, [event], false);
        return rowCount === 1;
      }),
  };
}

async function readBatch(
  client: PoolClient,
  { partnerId, id }: DueComparison,
  row: SettlementRow,
  into: ComparedInto,
  rowsMax: number,
): Promise<ComparedSettlement> {
  const { fields, reported_batch: batch, since, until, reported_at: reportedAt } = row;
  const { tid = "", mid = "", batchNo = "", transaction_time: time = "" } = fields;
  const add = (transaction: HeldTransaction) => into.addTransaction(transaction);
  const addEntry = (entry: SettlementEntry) => into.addEntry(entry);
  // Reports after the settlement belong to its batch too, unless the switch says that they happened later.
  const addReported = ({ isLate, time: at, ...transaction }: ReportedTransaction) => {
    if (!isLate || time === "" || at === "" || !into.isAfter(at, time)) into.addTransaction(transaction);
  };
  const values = [partnerId, batch, since, until, reportedAt];
  const reported = await each(client, reportedRows, values, rowsMax, addReported);
  const own = await each(client, ownRows, [partnerId, tid, mid, batchNo], rowsMax, add);
  await each(client, listed, [partnerId, id], rowsMax, addEntry);
  return { externalId: row.external_id, fields, isCut: reported === rowsMax || own === rowsMax };
}

/** Reads row by row, in small steps, because a batch may have 50,000. @returns the number of rows, up to `rowsMax` */
async function each<Row extends object>(
  client: PoolClient,
  text: string,
  values: readonly unknown[],
  rowsMax: number,
  take: (row: Row) => void,
): Promise<number> {
  await client.query(`DECLARE batch NO SCROLL CURSOR FOR ${text} LIMIT ${rowsMax}`, [...values]);
  let count = 0;
  let rows: Row[];
  do {
    ({ rows } = await client.query<Row>(`FETCH ${rowsAtOnce} FROM batch`));
    for (const row of rows) take(row);
    count += rows.length;
  } while (rows.length === rowsAtOnce);
  await client.query("CLOSE batch");
  return count;
}
