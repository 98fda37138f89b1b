import type { Command } from "@paybell/contract";
import type { Pool, PoolClient } from "pg";
import type { ChainId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import type { Begun, Init, ReportedOriginal, TerminalTurn, TransactionStore } from "../ledger/store.ts";
import type { NotificationState, Transaction } from "../ledger/transaction.ts";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import { allotTurns } from "./turns.ts";

const usedReqIds = {
  name: "used_req_ids",
  text: `
    SELECT t.partner_id, t.req_id, t.id, t.body_hash, t.facts, t.created_at
    FROM unnest($1::uuid[], $2::text[]) AS i (partner_id, req_id)
    JOIN transactions t ON t.partner_id = i.partner_id AND t.req_id = i.req_id AND t.origin = 'command'`,
};

const insertInits = {
  name: "insert_inits",
  text: `
    INSERT INTO transactions (partner_id, id, origin, command, state, req_id, body_hash, original_id, chain_id, callback_url, tid,
      batch_no, amount_minor, currency, facts, instance_id, epoch)
    SELECT i.partner_id, i.id, 'command', i.command, 'INIT', i.req_id, i.body_hash, i.original_id, i.chain_id,
      i.callback_url, i.tid, i.batch_no, i.amount_minor, i.currency, i.facts, i.instance_id, i.epoch
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bytea[], $6::uuid[], $7::uuid[], $8::text[], $9::text[],
      $10::text[], $11::bigint[], $12::text[], $13::json[], $14::uuid[], $15::integer[])
      AS i (partner_id, id, command, req_id, body_hash, original_id, chain_id, callback_url, tid, batch_no, amount_minor,
        currency, facts, instance_id, epoch)
    ON CONFLICT DO NOTHING
    RETURNING id, created_at`,
};

// The caller was told that nothing was accepted, and the acquirer was never asked.
const deleteAbandoned = {
  name: "delete_abandoned",
  text: "DELETE FROM transactions WHERE partner_id = $1 AND id = $2 AND state = 'INIT' AND instance_id = $3 AND epoch = $4",
};

// An instance's commands stay its own while its lease stands under the same epoch.
const takeOver = {
  name: "take_over",
  text: `
    UPDATE transactions t SET instance_id = $1, epoch = $2
    WHERE (t.partner_id, t.id) IN (
      SELECT f.partner_id, f.id FROM transactions f
      WHERE f.state = 'INIT' AND f.instance_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM instances i WHERE i.id = f.instance_id AND i.epoch = f.epoch AND i.expires_at > now())
      LIMIT $3
      FOR UPDATE SKIP LOCKED)
    RETURNING t.*, NULL AS notification_state`,
};

const selectTransaction = `
  SELECT t.*, CASE
    WHEN t.notification_id IS NULL THEN NULL
    WHEN EXISTS (SELECT FROM pending p WHERE p.partner_id = t.partner_id AND p.id = t.notification_id) THEN 'pending'
    WHEN EXISTS (SELECT FROM parked p WHERE p.partner_id = t.partner_id AND p.id = t.notification_id) THEN 'parked'
    ELSE 'accepted' END AS notification_state
  FROM transactions t`;

const findById = { name: "find_transaction", text: `${selectTransaction} WHERE t.partner_id = $1 AND t.id = $2` };

// A command's reqId is unique; a switch may report the same one, and more than once: the command comes first, then the newest.
const findByReqId = {
  name: "find_transaction_by_req_id",
  text: `
    (${selectTransaction} WHERE t.partner_id = $1 AND t.req_id = $2 AND t.origin = 'command')
    UNION ALL
    (${selectTransaction} WHERE t.partner_id = $1 AND t.req_id = $2 AND t.origin = 'switch' ORDER BY t.id DESC LIMIT 1)
    LIMIT 1`,
};

const findReported = {
  name: "find_reported",
  text: `
    SELECT t.id, t.external_id, t.chain_id, t.command FROM unnest($2::text[]) AS i (external_id)
    JOIN transactions t ON t.partner_id = $1 AND t.external_id = i.external_id AND t.origin = 'switch'`,
};

export interface TransactionRow {
  readonly partner_id: PartnerId;
  readonly id: TransactionId;
  readonly origin: "command" | "switch";
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  readonly req_id: string | null;
  readonly external_id: string | null;
  readonly original_id: TransactionId | null;
  readonly original_external_id: string | null;
  readonly chain_id: ChainId;
  readonly callback_url: string | null;
  readonly facts: Transaction["facts"];
  readonly notification_id: NotificationId | null;
  readonly notification_state: NotificationState | null;
  readonly created_at: Date;
  readonly completed_at: Date | null;
}

/** The ledger's transactions in PostgreSQL. INITs are group-committed. */
export class PostgresTransactions implements TransactionStore {
  readonly #engine: Pool;
  readonly #pool: Pool;
  readonly #inits: GroupCommit<Init, Begun>;

  constructor(
    pools: { readonly engine: Pool; readonly pool: Pool },
    observe: Pick<GroupCommitOptions<Init, Begun>, "onFlush"> = {},
  ) {
    this.#engine = pools.engine;
    this.#pool = pools.pool;
    this.#inits = new GroupCommit<Init, Begun>({
      name: "begin",
      key: (init) => `${init.partnerId} ${init.reqId}`,
      bytes: () => 1024,
      commit: (inits) => this.#commit(inits),
      giveUpAfterMs: 5_000,
      onDoubt: (init) => this.#abandon(init),
      ...observe,
    });
  }

  begin(init: Init): Promise<Begun> {
    return this.#inits.add(init);
  }

  async find(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined> {
    const { rows } = await this.#pool.query<TransactionRow>({ ...findById, values: [partnerId, id] });
    return rows[0] && toTransaction(rows[0]);
  }

  async findByReqId(partnerId: PartnerId, reqId: string): Promise<Transaction | undefined> {
    const { rows } = await this.#pool.query<TransactionRow>({
      ...findByReqId,
      values: [partnerId, reqId.toLowerCase()],
    });
    return rows[0] && toTransaction(rows[0]);
  }

  async findReported(
    partnerId: PartnerId,
    externalIds: readonly string[],
  ): Promise<ReadonlyMap<string, ReportedOriginal>> {
    const { rows } = await this.#engine.query<{
      id: TransactionId;
      external_id: string;
      chain_id: ChainId;
      command: Command;
    }>({ ...findReported, values: [partnerId, externalIds] });
    return new Map(rows.map((row) => [row.external_id, { id: row.id, chainId: row.chain_id, command: row.command }]));
  }

  async takeOver(instance: Instance, rowsMax: number): Promise<readonly Transaction[]> {
    const { rows } = await this.#engine.query<TransactionRow>({
      ...takeOver,
      values: [instance.id, instance.epoch, rowsMax],
    });
    return rows.map(toTransaction);
  }

  async #commit(inits: readonly Init[]): Promise<ReadonlyMap<string, Begun>> {
    const results = new Map<string, Begun>();
    const client = await this.#engine.connect();
    try {
      const [, used] = await Promise.all([
        client.query("BEGIN"),
        client.query<TransactionRow & { body_hash: Buffer }>({
          ...usedReqIds,
          values: [inits.map((init) => init.partnerId), inits.map((init) => init.reqId)],
        }),
      ]);
      const known = new Map(used.rows.map((row) => [`${row.partner_id} ${row.req_id}`, row]));
      const fresh: Init[] = [];
      for (const init of inits) {
        const row = known.get(keyOf(init));
        if (row === undefined) fresh.push(init);
        else results.set(keyOf(init), repeatedOrBegun(init, row));
      }
      if (fresh.length > 0) await insertFresh(client, fresh, results);
      await client.query("COMMIT");
      client.release();
    } catch (error) {
      // What this connection did is unknown or undone: closing it rolls back whatever was open.
      client.release(true);
      throw error;
    }
    // Lost a race for the reqId against another instance, which has committed by now: the next look finds its row.
    const raced = inits.filter((init) => !results.has(keyOf(init)));
    if (raced.length > 0) for (const [key, begun] of await this.#commit(raced)) results.set(key, begun);
    return results;
  }

  async #abandon(init: Init): Promise<void> {
    for (let tries = 0; tries < 600; tries += 1) {
      try {
        await this.#engine.query({
          ...deleteAbandoned,
          values: [init.partnerId, init.id, init.instance.id, init.instance.epoch],
        });
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 1_000).unref());
      }
    }
  }
}

async function insertFresh(client: PoolClient, inits: readonly Init[], results: Map<string, Begun>): Promise<void> {
  const turns = await allotTurns(client, inits);
  const ready: { init: Init; turn: TerminalTurn; facts: ReturnType<Init["facts"]> }[] = [];
  for (const init of inits) {
    const turn = turns.get(init);
    if (turn === undefined) throw new Error(`No turn was allotted to ${init.id}.`);
    if (typeof turn === "string") results.set(keyOf(init), { outcome: turn });
    else ready.push({ init, turn, facts: init.facts(turn) });
  }
  const { rows } = await client.query<{ id: TransactionId; created_at: Date }>({
    ...insertInits,
    values: [
      ready.map(({ init }) => init.partnerId),
      ready.map(({ init }) => init.id),
      ready.map(({ init }) => init.command),
      ready.map(({ init }) => init.reqId),
      ready.map(({ init }) => init.bodyHash),
      ready.map(({ init }) => init.originalId),
      ready.map(({ init }) => init.chainId),
      ready.map(({ init }) => init.callBackUrl),
      ready.map(({ init }) => init.tid),
      ready.map(({ init, turn }) => (init.takes.batchNo ? turn.batchNo : null)),
      ready.map(({ init }) => init.amountMinor),
      ready.map(({ init }) => init.currency),
      ready.map(({ facts }) => JSON.stringify(facts)),
      ready.map(({ init }) => init.instance.id),
      ready.map(({ init }) => init.instance.epoch),
    ],
  });
  const insertedAt = new Map(rows.map((row) => [row.id, row.created_at]));
  for (const { init, facts } of ready) {
    const createdAt = insertedAt.get(init.id);
    if (createdAt) results.set(keyOf(init), { outcome: "begun", facts, createdAtMs: createdAt.getTime() });
  }
}

function repeatedOrBegun(init: Init, row: TransactionRow & { body_hash: Buffer }): Begun {
  // Our own row: its COMMIT had happened after all.
  if (row.id === init.id) return { outcome: "begun", facts: row.facts, createdAtMs: row.created_at.getTime() };
  return { outcome: "repeated", sameBody: row.body_hash.equals(init.bodyHash), id: row.id };
}

function keyOf(init: Init): string {
  return `${init.partnerId} ${init.reqId}`;
}

export function toTransaction(row: TransactionRow): Transaction {
  return {
    partnerId: row.partner_id,
    id: row.id,
    origin: row.origin,
    command: row.command,
    state: row.state,
    reqId: row.req_id,
    externalId: row.external_id,
    originalId: row.original_id,
    originalExternalId: row.original_external_id,
    chainId: row.chain_id,
    callBackUrl: row.callback_url,
    facts: row.facts,
    notification:
      row.notification_id && row.notification_state ? { id: row.notification_id, state: row.notification_state } : null,
    createdAtMs: row.created_at.getTime(),
    completedAtMs: row.completed_at?.getTime() ?? null,
  };
}
