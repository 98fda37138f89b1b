import type { PoolClient, QueryConfig } from "pg";
import type { Circuit } from "../../delivery/circuit.ts";
import {
  type CircuitChange,
  type CircuitStore,
  circuitsPerPartnerMax,
  type LoadedCircuit,
} from "../../delivery/circuit.ts";
import type { NewEvent } from "../../events.ts";
import type { EndpointId, PartnerId } from "../../ids.ts";
import { Columns } from "../database/columns.ts";
import type { Homes } from "../database/homes.ts";
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
