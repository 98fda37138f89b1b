import type { PoolClient } from "pg";
import type { EndpointStanding } from "../delivery/breaker.ts";
import type { Breaker, EndpointKind, EndpointSighting } from "../delivery/endpoints-store.ts";
import type { EventKind, NewEvent } from "../events.ts";
import { type EndpointId, newId, type PartnerId } from "../ids.ts";
import { insertEvents } from "./events.ts";

// Rows come into being and are locked in key order: several instances tell of one endpoint at the same time.
const lock = {
  name: "lock_endpoints",
  text: `
    INSERT INTO endpoints AS e (partner_id, id, kind, target, queue, state)
    SELECT i.partner_id, i.id, i.kind, i.target, i.queue, 'closed'
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[]) AS i (partner_id, id, kind, target, queue)
    ON CONFLICT (partner_id, queue) DO UPDATE SET updated_at = now()
    RETURNING e.partner_id, e.id, e.queue, e.target, e.state, e.failures, e.probes, e.last_reason,
      (extract(epoch FROM e.probe_at - now()) * 1000)::double precision AS probe_in_ms`,
};

const write = {
  name: "write_endpoints",
  text: `
    UPDATE endpoints e SET state = i.state, failures = i.failures, probes = i.probes, last_reason = i.last_reason,
      probe_at = now() + i.probe_in_ms * interval '1 millisecond',
      opened_at = CASE WHEN i.state = 'closed' THEN NULL WHEN e.state = i.state THEN e.opened_at ELSE now() END
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::integer[], $6::text[], $7::double precision[])
      AS i (partner_id, id, state, failures, probes, last_reason, probe_in_ms)
    WHERE e.partner_id = i.partner_id AND e.id = i.id`,
};

interface EndpointRow {
  readonly partner_id: PartnerId;
  readonly id: EndpointId;
  readonly queue: string;
  readonly target: string;
  readonly state: EndpointStanding["state"];
  readonly failures: number;
  readonly probes: number;
  readonly last_reason: EndpointStanding["lastReason"];
  readonly probe_in_ms: number | null;
}

interface Told {
  readonly partnerId: PartnerId;
  readonly queue: string;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly sightings: EndpointSighting[];
}

/** Tells every instance, when the transaction is committed, that an endpoint has another state. */
export const announceEndpoints = { name: "announce_endpoints", text: "SELECT pg_notify('paybell_endpoint', '')" };

/**
 * Lets the breaker judge what attempts tell of their endpoints, within the open transaction of their outcomes. The row
 * lock makes one of several instances the one that changes an endpoint, and that one alone writes the event.
 */
export async function recordSightings(
  client: PoolClient,
  sightings: readonly EndpointSighting[],
  breaker: Breaker,
  alert: boolean,
): Promise<void> {
  const told = byEndpoint(sightings);
  const { rows } = await client.query<EndpointRow>({
    ...lock,
    values: [
      told.map(({ partnerId }) => partnerId),
      told.map(() => newId<"endpoint">()),
      told.map(({ kind }) => kind),
      told.map(({ target }) => target),
      told.map(({ queue }) => queue),
    ],
  });
  const locked = new Map(rows.map((row) => [`${row.partner_id} ${row.queue}`, row]));
  const judged = told.flatMap(({ partnerId, queue, sightings }) => {
    const row = locked.get(`${partnerId} ${queue}`);
    if (row === undefined) return [];
    return [{ row, becomes: sightings.reduce(breaker, standingOf(row)) }];
  });
  const events = judged.flatMap(({ row, becomes }) => changeEvent(row, becomes));
  await Promise.all([
    client.query({
      ...write,
      values: [
        judged.map(({ row }) => row.partner_id),
        judged.map(({ row }) => row.id),
        judged.map(({ becomes }) => becomes.state),
        judged.map(({ becomes }) => becomes.failures),
        judged.map(({ becomes }) => becomes.probes),
        judged.map(({ becomes }) => becomes.lastReason),
        judged.map(({ becomes }) => becomes.probeInMs),
      ],
    }),
    events.length > 0 ? insertEvents(client, events, alert) : undefined,
    events.length > 0 ? client.query(announceEndpoints) : undefined,
  ]);
}

/** Each endpoint with its sightings in the order in which they were made. */
function byEndpoint(sightings: readonly EndpointSighting[]): readonly Told[] {
  const told = new Map<string, Told>();
  for (const sighting of [...sightings].sort((a, b) => a.atMs - b.atMs)) {
    const { partnerId, queue, kind, target } = sighting;
    const key = `${partnerId} ${queue}`;
    const known = told.get(key);
    if (known === undefined) told.set(key, { partnerId, queue, kind, target, sightings: [sighting] });
    else known.sightings.push(sighting);
  }
  return [...told].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}

function standingOf(row: EndpointRow): EndpointStanding {
  const { state, failures, probes } = row;
  return { state, failures, probes, probeInMs: row.probe_in_ms, lastReason: row.last_reason };
}

function changeEvent(row: EndpointRow, becomes: EndpointStanding): NewEvent[] {
  if (row.state === becomes.state) return [];
  const kinds = { open: "breaker_open", closed: "breaker_closed", gone: "endpoint_gone" } as const;
  const kind: EventKind = kinds[becomes.state];
  const detail = { target: row.target, reason: becomes.lastReason, failures: becomes.failures };
  return [{ kind, partnerId: row.partner_id, subjectId: row.id, detail }];
}
