import type { Pool, PoolClient } from "pg";
import type { CircuitState } from "../../delivery/circuit.ts";
import type { EndpointKind, EndpointSearch, EndpointStore, StoredEndpoint } from "../../delivery/circuit-store.ts";
import type { FailureReason } from "../../delivery/store.ts";
import type { EndpointId, PartnerId } from "../../ids.ts";
import type { Database } from "../database/database.ts";
import type { Home, Homes } from "../database/homes.ts";
import { insertEvents } from "../events.ts";

/** Notifies the owner of the endpoint's shard that a person changed it. */
const announceEndpoints = { name: "announce_endpoints", text: "SELECT pg_notify('paybell_endpoint', '')" };

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
    control_no = control_no + 1, updated_at = now()
  WHERE e.partner_id = $1 AND e.id = $2 RETURNING ${shown}`;

interface EndpointRow {
  readonly partner_id: PartnerId;
  readonly id: EndpointId;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly state: CircuitState;
  readonly failures: number;
  readonly last_reason: FailureReason | null;
  readonly opened_at: Date | null;
  readonly probe_at: Date | null;
  readonly probes: number;
  readonly updated_at: Date;
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

  async search({ partnerId, state, after, limit }: EndpointSearch): Promise<readonly StoredEndpoint[]> {
    const values = [partnerId ?? null, state ?? null, after ?? null, limit];
    const rows = await this.#homes.gather(async ({ pool }) => (await pool.query<EndpointRow>(search, values)).rows);
    return [...rows]
      .sort((a, b) => (a.id < b.id ? 1 : -1))
      .slice(0, limit)
      .map(readEndpoint);
  }

  async close(id: EndpointId, partnerId: PartnerId | undefined): Promise<StoredEndpoint | undefined> {
    const homes = partnerId === undefined ? this.#homes.all : [this.#homes.of(partnerId)];
    for (const home of homes) {
      const closed = await this.#closeAt(home, id, partnerId);
      if (closed === undefined) continue;
      await this.#pool.query(announceEndpoints);
      return closed;
    }
    return undefined;
  }

  async #closeAt(
    { pool }: Home,
    id: EndpointId,
    partnerId: PartnerId | undefined,
  ): Promise<StoredEndpoint | undefined> {
    const client = await pool.connect();
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
