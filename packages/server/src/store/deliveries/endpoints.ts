import type { Pool, PoolClient } from "pg";
import type { EndpointSearch, EndpointStore, StoredEndpoint } from "../../delivery/endpoint-operations.ts";
import type { EndpointId, PartnerId } from "../../ids.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";

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
    const rows = await this.#homes.gather(async ({ pool }) => (await pool.query<StoredEndpoint>(search, values)).rows);
    return [...rows].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
  }

  async close(id: EndpointId, partnerId: PartnerId | undefined): Promise<StoredEndpoint | undefined> {
    const homes = partnerId === undefined ? this.#homes.all : [this.#homes.of(partnerId)];
    for (const { pool } of homes) {
      const closed = await inTransaction(pool, (client) => this.#closeIn(client, id, partnerId));
      if (closed === undefined) continue;
      await this.announce();
      return closed;
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
  ): Promise<StoredEndpoint | undefined> {
    const { rows } = await client.query<StoredEndpoint>(lockOne, [id, partnerId ?? null]);
    const [found] = rows;
    if (found === undefined || found.state === "closed") return found;
    const closed = await client.query<StoredEndpoint>(closeOne, [found.partnerId, id]);
    const detail = { target: found.target, reason: found.lastReason, failures: found.failures, by: "hand" };
    const event = { kind: "breaker_closed", partnerId: found.partnerId, subjectId: id, detail } as const;
    await insertEvents(client, [event], this.#alerting);
    return closed.rows[0];
  }
}
