import type { Pool, PoolClient } from "pg";
import type { EndpointState } from "../delivery/breaker.ts";
import type {
  EndpointKey,
  EndpointKind,
  EndpointSearch,
  EndpointStore,
  ScheduleLength,
  StoredEndpoint,
  TroubledEndpoint,
} from "../delivery/endpoints-store.ts";
import type { FailureReason } from "../delivery/store.ts";
import type { EndpointId, PartnerId } from "../ids.ts";
import type { Database } from "./database.ts";
import { parkOverdue } from "./endpoints-overdue.ts";
import { announceEndpoints } from "./endpoints-sightings.ts";
import { insertEvents } from "./events.ts";

const troubled = {
  name: "troubled_endpoints",
  text: `
    SELECT e.partner_id AS "partnerId", e.queue, e.state FROM endpoints e WHERE e.state <> 'closed' OR e.failures > 0`,
};

const releaseProbe = {
  name: "release_probe",
  text: `
    UPDATE endpoints SET probe_at = now() + $3 * interval '1 millisecond', probes = greatest(probes - 1, 0)
    WHERE partner_id = $1 AND queue = $2 AND state = 'open'`,
};

const livingInstances = {
  name: "living_instances",
  text: "SELECT count(*) AS living FROM instances WHERE expires_at > now()",
};

const shown = `
  e.partner_id, e.id, e.kind, e.target, e.state, e.failures, e.last_reason, e.opened_at, e.probe_at, e.probes,
  e.updated_at`;

const search = `
  SELECT ${shown} FROM endpoints e
  WHERE ($1::uuid IS NULL OR e.partner_id = $1) AND ($2::text IS NULL OR e.state = $2)
    AND ($3::uuid IS NULL OR e.id < $3)
  ORDER BY e.id DESC LIMIT $4`;

const lockOne = `
  SELECT ${shown} FROM endpoints e WHERE e.id = $1 AND ($2::uuid IS NULL OR e.partner_id = $2) FOR UPDATE`;

const closeOne = `
  UPDATE endpoints e SET state = 'closed', failures = 0, probes = 0, probe_at = NULL, opened_at = NULL,
    updated_at = now()
  WHERE e.partner_id = $1 AND e.id = $2 RETURNING ${shown}`;

interface EndpointRow {
  readonly partner_id: PartnerId;
  readonly id: EndpointId;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly state: EndpointState;
  readonly failures: number;
  readonly last_reason: FailureReason | null;
  readonly opened_at: Date | null;
  readonly probe_at: Date | null;
  readonly probes: number;
  readonly updated_at: Date;
}

/** Callback endpoints that have failed, in PostgreSQL. What is not there is closed. */
export class PostgresEndpoints implements EndpointStore {
  readonly #pool: Pool;
  readonly #engine: Pool;
  readonly #alerting: boolean;

  constructor({ pool, engine }: Pick<Database, "pool" | "engine">, options: { readonly alerting?: boolean } = {}) {
    this.#pool = pool;
    this.#engine = engine;
    this.#alerting = options.alerting ?? false;
  }

  async troubled(): Promise<readonly TroubledEndpoint[]> {
    return (await this.#engine.query<{ partnerId: PartnerId; queue: string; state: EndpointState }>(troubled)).rows;
  }

  async search({ partnerId, state, after, limit }: EndpointSearch): Promise<readonly StoredEndpoint[]> {
    const values = [partnerId ?? null, state ?? null, after ?? null, limit];
    return (await this.#pool.query<EndpointRow>(search, values)).rows.map(readEndpoint);
  }

  async close(id: EndpointId, partnerId: PartnerId | undefined): Promise<StoredEndpoint | undefined> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      const closed = await this.#closeIn(client, id, partnerId);
      await client.query("COMMIT");
      client.release();
      return closed;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async releaseProbe({ partnerId, queue }: EndpointKey, delayMs: number): Promise<void> {
    await this.#engine.query({ ...releaseProbe, values: [partnerId, queue, delayMs] });
  }

  parkOverdue(lengths: readonly ScheduleLength[], rowsMax: number): Promise<number> {
    return parkOverdue(this.#engine, lengths, rowsMax, this.#alerting);
  }

  async livingInstances(): Promise<number> {
    const { rows } = await this.#engine.query<{ living: number }>(livingInstances);
    return rows[0]?.living ?? 1;
  }

  async #closeIn(
    client: PoolClient,
    id: EndpointId,
    partnerId: PartnerId | undefined,
  ): Promise<StoredEndpoint | undefined> {
    const { rows } = await client.query<EndpointRow>(lockOne, [id, partnerId ?? null]);
    const [standing] = rows;
    if (standing === undefined || standing.state === "closed") return standing && readEndpoint(standing);
    const closed = await client.query<EndpointRow>(closeOne, [standing.partner_id, id]);
    const detail = { target: standing.target, reason: standing.last_reason, failures: standing.failures, by: "hand" };
    const event = { kind: "breaker_closed", partnerId: standing.partner_id, subjectId: id, detail } as const;
    await insertEvents(client, [event], this.#alerting);
    await client.query(announceEndpoints);
    return closed.rows.map(readEndpoint)[0];
  }
}

function readEndpoint(row: EndpointRow): StoredEndpoint {
  const { id, kind, target, state, failures, probes } = row;
  return {
    partnerId: row.partner_id,
    id,
    kind,
    target,
    state,
    failures,
    lastReason: row.last_reason,
    openedAt: row.opened_at,
    probeAt: row.probe_at,
    probes,
    updatedAt: row.updated_at,
  };
}
