import type { Pool, PoolClient, QueryConfig } from "pg";
import {
  type Circuit,
  type CircuitChange,
  type CircuitStore,
  circuitsPerPartnerMax,
  type Endpoint,
  type EndpointPage,
  type EndpointSearch,
  type EndpointStore,
  type LoadedCircuit,
} from "../../delivery/circuit.ts";
import type { NewEvent } from "../../events.ts";
import type { EndpointId, PartnerId } from "../../ids.ts";
import { Columns } from "../database/columns.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";

const loaded = `e.partner_id AS "partnerId", e.queue, e.state, e.failures, e.probes, e.last_reason AS "lastReason",
      e.control_no AS "controlNo", (extract(epoch FROM e.probe_at - now()) * 1000)::double precision AS "probeInMs"`;

const load = {
  name: "load_circuits",
  text: `
    SELECT ${loaded}
    FROM (
      SELECT e.*, row_number() OVER (PARTITION BY e.partner_id ORDER BY e.updated_at DESC) AS nth FROM endpoints e
      WHERE e.shard = ANY ($1::smallint[])
        AND (e.state <> 'closed' OR e.failures > 0 OR e.control_no > 0)) AS e
    WHERE e.nth <= $2
    ORDER BY e.nth DESC`,
};

const loadChangedByHand = {
  name: "load_circuits_changed_by_hand",
  text: `
    SELECT ${loaded} FROM endpoints e
    WHERE e.shard = ANY ($1::smallint[]) AND e.control_no > 0
    ORDER BY e.updated_at`,
};

const changed = new Columns<CircuitChange>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ endpointId }) => endpointId],
  kind: ["text", ({ kind }) => kind],
  target: ["text", ({ target }) => target],
  queue: ["text", ({ queue }) => queue],
  state: ["text", ({ circuit }) => circuit.state],
  failures: ["integer", ({ circuit }) => circuit.failures],
  probes: ["integer", ({ circuit }) => circuit.probes],
  last_reason: ["text", ({ circuit }) => circuit.lastReason],
  probe_in_ms: ["double", ({ circuit }) => circuit.probeInMs],
  epoch: ["integer", ({ epoch }) => epoch],
  control_no: ["integer", ({ controlNo }) => controlNo],
});
// Rows are inserted and locked in key order. Unchanged rows belong to a later owner, or were changed by a person.
const write = {
  name: "write_circuits",
  text: `
    INSERT INTO endpoints AS e (partner_id, id, kind, target, queue, state, failures, probes, last_reason, probe_at,
      opened_at, epoch, control_no, updated_at)
    SELECT i.partner_id, i.id, i.kind, i.target, i.queue, i.state, i.failures, i.probes, i.last_reason,
      now() + i.probe_in_ms * interval '1 millisecond', CASE WHEN i.state <> 'closed' THEN now() END, i.epoch,
      i.control_no, now()
    FROM ${changed.rows}
    ON CONFLICT (partner_id, queue) DO UPDATE SET state = excluded.state, failures = excluded.failures,
      probes = excluded.probes, last_reason = excluded.last_reason, probe_at = excluded.probe_at,
      opened_at = CASE WHEN excluded.state = 'closed' THEN NULL WHEN e.state = excluded.state THEN e.opened_at
        ELSE excluded.opened_at END,
      epoch = excluded.epoch, updated_at = excluded.updated_at
    WHERE e.epoch <= excluded.epoch AND e.control_no = excluded.control_no
    RETURNING e.partner_id, e.queue, e.id`,
};

type CircuitRow = Omit<LoadedCircuit, "circuit"> & Circuit;

/** Circuit breakers, for the workers that own them. */
export class PostgresCircuits implements CircuitStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  load(shards: readonly number[]): Promise<readonly LoadedCircuit[]> {
    return this.#query(shards, (some) => ({ ...load, values: [some, circuitsPerPartnerMax] }));
  }

  loadChangedByHand(shards: readonly number[]): Promise<readonly LoadedCircuit[]> {
    return this.#query(shards, (some) => ({ ...loadChangedByHand, values: [some] }));
  }

  async #query(
    shards: readonly number[],
    statement: (some: readonly number[]) => QueryConfig,
  ): Promise<readonly LoadedCircuit[]> {
    const itself = (shard: number) => shard;
    const rows = await this.#homes.askAbout(
      shards,
      itself,
      async ({ engine }, some) => (await engine.query<CircuitRow>(statement(some))).rows,
    );
    return rows.map(({ partnerId, queue, controlNo, ...circuit }) => ({ partnerId, queue, controlNo, circuit }));
  }
}

/** Writes the changes of circuits by outcomes, within their transaction, with the events of the changed rows. */
export async function writeCircuits(
  client: PoolClient,
  changes: readonly CircuitChange[],
  alert: boolean,
): Promise<void> {
  // The outcomes of a commit are in key order, not in the order of events.
  const inOrder = [...changes].sort((a, b) => a.changeNo - b.changeNo);
  const last = new Map(inOrder.map((change) => [keyOf(change), change]));
  const written = [...last].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, change]) => change);
  const { rows } = await client.query<{ partner_id: PartnerId; queue: string; id: EndpointId }>({
    ...write,
    values: changed.values(written),
  });
  const ids = new Map(rows.map((row) => [`${row.partner_id} ${row.queue}`, row.id]));
  const events = inOrder.flatMap((change) => eventOf(change, ids.get(keyOf(change))));
  if (events.length > 0) await insertEvents(client, events, alert);
}

function eventOf({ partnerId, event, target, circuit }: CircuitChange, endpointId: EndpointId | undefined): NewEvent[] {
  if (event === null || endpointId === undefined) return [];
  const detail = { target, reason: circuit.lastReason, failures: circuit.failures };
  return [{ id: event.id, kind: event.kind, partnerId, subjectId: endpointId, detail }];
}

function keyOf({ partnerId, queue }: Pick<CircuitChange, "partnerId" | "queue">): string {
  return `${partnerId} ${queue}`;
}

/** Notifies the owner of the endpoint's shard that a person changed it. */
const announceEndpoints = { name: "announce_endpoints", text: "SELECT pg_notify('paybell_endpoint', '')" };

const shown = `
  e.id, e.partner_id AS "partnerId", e.kind, e.target, e.state, e.failures, e.last_reason AS "lastReason",
  e.opened_at AS "openedAt", e.probe_at AS "probeAt", e.probes, e.updated_at AS "updatedAt"`;

const search = `
  SELECT ${shown} FROM endpoints e
  WHERE ($1::uuid IS NULL OR e.partner_id = $1) AND ($2::text IS NULL OR e.state = $2)
    AND ($3::uuid IS NULL OR e.id < $3)
  ORDER BY e.id DESC LIMIT $4`;

const lockOne = `
  SELECT ${shown} FROM endpoints e WHERE e.id = $1 AND ($2::uuid IS NULL OR e.partner_id = $2) FOR UPDATE`;

const closeOne = `
  UPDATE endpoints e SET state = 'closed', failures = 0, probes = 0, probe_at = NULL, opened_at = NULL,
    control_no = control_no + 1, updated_at = now()
  WHERE e.partner_id = $1 AND e.id = $2 RETURNING ${shown}`;

type EndpointRow = Omit<Endpoint, "openedAt" | "probeAt" | "updatedAt"> &
  Record<"openedAt" | "probeAt", Date | null> & { readonly updatedAt: Date };

function endpointOf({ openedAt, probeAt, updatedAt, ...endpoint }: EndpointRow): Endpoint {
  const iso = (at: Date | null) => at?.toISOString() ?? null;
  return { ...endpoint, openedAt: iso(openedAt), probeAt: iso(probeAt), updatedAt: updatedAt.toISOString() };
}

/** Callback endpoints that have failed, in PostgreSQL. An endpoint without a row is closed. */
export class PostgresEndpoints implements EndpointStore {
  readonly #pool: Pool;
  readonly #homes: Homes;
  readonly #alerting: boolean;

  /** @param pool the database that every instance listens to */
  constructor({ pool, homes }: Pick<Database, "pool" | "homes">, options: { readonly alerting?: boolean } = {}) {
    this.#pool = pool;
    this.#homes = homes;
    this.#alerting = options.alerting ?? false;
  }

  async list({ partnerId, state, after, limit }: EndpointSearch): Promise<EndpointPage> {
    const values = [partnerId ?? null, state ?? null, after ?? null, limit + 1];
    const rows = await this.#homes.gather(async ({ pool }) => (await pool.query<EndpointRow>(search, values)).rows);
    const found = rows.toSorted((a, b) => (a.id < b.id ? 1 : -1));
    const items = found.slice(0, limit).map(endpointOf);
    return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null };
  }

  async close(id: EndpointId, partnerId?: PartnerId): Promise<Endpoint | undefined> {
    const homes = partnerId === undefined ? this.#homes.all : [this.#homes.of(partnerId)];
    for (const { pool } of homes) {
      const closed = await inTransaction(pool, (client) => this.#closeIn(client, id, partnerId));
      if (closed === undefined) continue;
      await this.announce();
      return endpointOf(closed);
    }
    return undefined;
  }

  /** Owners read again what a person changed. */
  async announce(): Promise<void> {
    await this.#pool.query(announceEndpoints);
  }

  async #closeIn(
    client: PoolClient,
    id: EndpointId,
    partnerId: PartnerId | undefined,
  ): Promise<EndpointRow | undefined> {
    const { rows } = await client.query<EndpointRow>(lockOne, [id, partnerId ?? null]);
    const [found] = rows;
    if (found === undefined || found.state === "closed") return found;
    const closed = await client.query<EndpointRow>(closeOne, [found.partnerId, id]);
    const detail = { target: found.target, reason: found.lastReason, failures: found.failures, by: "hand" };
    const event = { kind: "breaker_closed", partnerId: found.partnerId, subjectId: id, detail } as const;
    await insertEvents(client, [event], this.#alerting);
    return closed.rows[0];
  }
}
