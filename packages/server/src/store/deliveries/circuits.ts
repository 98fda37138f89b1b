import type { Pool, PoolClient } from "pg";
import type { Circuit } from "../../delivery/limits/circuit.ts";
import type { Endpoint, EndpointStore } from "../../delivery/limits/circuits.ts";
import {
  type CircuitChange,
  type CircuitStore,
  circuitsPerPartnerMax,
  type LoadedCircuit,
} from "../../delivery/limits/circuits.ts";
import type { EndpointId, PartnerId } from "../../ids.ts";
import { pageOf } from "../../page.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { Columns } from "../database/columns.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { planned, prepared, type Statement } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";

const loaded = `e.partner_id AS "partnerId", e.queue, e.state, e.failures, e.probes, e.last_reason AS "lastReason",
      e.control_no AS "controlNo", (extract(epoch FROM e.probe_at - now()) * 1000)::double precision AS "probeInMs"`;

const load = prepared<CircuitRow>(`
  SELECT ${loaded}
  FROM (
    SELECT e.*, row_number() OVER (PARTITION BY e.partner_id ORDER BY e.updated_at DESC) AS nth FROM endpoints e
    WHERE e.shard = ANY ($1::smallint[])
      AND (e.state <> 'closed' OR e.failures > 0 OR e.control_no > 0)) AS e
  WHERE e.nth <= $2
  ORDER BY e.nth DESC`);

const loadChangedByHand = prepared<CircuitRow>(`
  SELECT ${loaded} FROM endpoints e
  WHERE e.shard = ANY ($1::smallint[]) AND e.control_no > 0
  ORDER BY e.updated_at`);

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
const write = prepared<{ partner_id: PartnerId; queue: string; id: EndpointId }>(`
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
    RETURNING e.partner_id, e.queue, e.id`);

type CircuitRow = Omit<LoadedCircuit, "circuit"> & Circuit;

/** Circuit breakers, for the workers that own them. */
export function postgresCircuits(homes: Homes): CircuitStore {
  async function query(
    shards: readonly number[],
    statement: Statement<CircuitRow>,
    more: readonly number[] = [],
  ): Promise<readonly LoadedCircuit[]> {
    const itself = (shard: number) => shard;
    const rows = await homes.askAbout(shards, itself, ({ engine }, some) => statement.rows(engine, [some, ...more]));
    return rows.map(({ partnerId, queue, controlNo, ...circuit }) => ({ partnerId, queue, controlNo, circuit }));
  }

  return {
    load: (shards) => query(shards, load, [circuitsPerPartnerMax]),

    loadChangedByHand: (shards) => query(shards, loadChangedByHand),
  };
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
  const rows = await write.rows(client, changed.values(written));
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

const announce = prepared("SELECT pg_notify('paybell_endpoint', '')");

/** Owners of shards read again what a person changed. */
export async function announceEndpoints(pool: Pool): Promise<void> {
  await announce.run(pool);
}

const shown = `
  e.id, e.partner_id AS "partnerId", e.kind, e.target, e.state, e.failures, e.last_reason AS "lastReason",
  e.opened_at AS "openedAt", e.probe_at AS "probeAt", e.probes, e.updated_at AS "updatedAt"`;

const search = planned<Endpoint>(`
  SELECT ${shown} FROM endpoints e
  WHERE ($1::uuid IS NULL OR e.partner_id = $1) AND ($2::text IS NULL OR e.state = $2)
    AND ($3::uuid IS NULL OR e.id < $3)
  ORDER BY e.id DESC LIMIT $4`);

const lockOne = planned<Endpoint>(`
  SELECT ${shown} FROM endpoints e WHERE e.id = $1 AND ($2::uuid IS NULL OR e.partner_id = $2) FOR UPDATE`);

const closeOne = planned<Endpoint>(`
  UPDATE endpoints e SET state = 'closed', failures = 0, probes = 0, probe_at = NULL, opened_at = NULL,
    control_no = control_no + 1, updated_at = now()
  WHERE e.partner_id = $1 AND e.id = $2 RETURNING ${shown}`);

/**
 * Callback endpoints that have failed, in PostgreSQL. An endpoint without a row is closed.
 *
 * @param database its pool is of the database that every instance listens to
 */
export function postgresEndpoints(
  { pool, homes }: Pick<Database, "pool" | "homes">,
  { alerting = false }: { readonly alerting?: boolean } = {},
): EndpointStore {
  async function closeIn(
    client: PoolClient,
    id: EndpointId,
    partnerId: PartnerId | undefined,
  ): Promise<Endpoint | undefined> {
    const found = await lockOne.first(client, [id, partnerId ?? null]);
    if (found === undefined || found.state === "closed") return found;
    const closed = await closeOne.first(client, [found.partnerId, id]);
    const detail = { target: found.target, reason: found.lastReason, failures: found.failures, by: "hand" };
    const event = { kind: "breaker_closed", partnerId: found.partnerId, subjectId: id, detail } as const;
    await insertEvents(client, [event], alerting);
    return closed;
  }

  return {
    async list({ partnerId, state, after, limit }) {
      const values = [partnerId ?? null, state ?? null, after ?? null, limit + 1];
      const rows = await homes.gather(({ pool }) => search.rows(pool, values));
      const found = rows.toSorted((a, b) => (a.id < b.id ? 1 : -1));
      return pageOf(found, limit, ({ id }) => id);
    },

    async close(id, partnerId) {
      const asked = partnerId === undefined ? homes.all : [homes.of(partnerId)];
      for (const home of asked) {
        const closed = await inTransaction(home.pool, (client) => closeIn(client, id, partnerId));
        if (closed === undefined) continue;
        await announceEndpoints(pool);
        return closed;
      }
      return undefined;
    },
  };
}
