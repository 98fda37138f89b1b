import type { Pool } from "pg";
import { idTimeMs, type PartnerId } from "../../ids.ts";
import type { StoredBacklog } from "../../notifications/store.ts";

/** Counts are exact up to here, so that no query grows with the number of rows. */
const countedMax = 10_000;

const backlog = {
  name: "backlog",
  text: `
    SELECT
      (SELECT count(*) FROM (SELECT FROM pending p WHERE p.partner_id = $1 LIMIT ${countedMax}) AS few)::integer
        AS pending,
      (SELECT p.id FROM pending p WHERE p.partner_id = $1 ORDER BY p.id LIMIT 1) AS oldest_id,
      (SELECT count(*) FROM (SELECT FROM parked d WHERE d.partner_id = $1 LIMIT ${countedMax}) AS few)::integer
        AS parked`,
};

const lastPull = { name: "last_pull", text: "SELECT u.cursor, u.at FROM pulls u WHERE u.partner_id = $1" };

const notePull = {
  name: "note_pull",
  text: `
    INSERT INTO pulls (partner_id, cursor) VALUES ($1, $2)
    ON CONFLICT (partner_id) DO UPDATE SET cursor = excluded.cursor, at = excluded.at`,
};

export async function readBacklog(pool: Pool, partnerId: PartnerId): Promise<StoredBacklog> {
  type Counts = { readonly pending: number; readonly oldest_id: string | null; readonly parked: number };
  type Pull = { readonly cursor: string; readonly at: Date };
  const [{ rows: counts }, { rows: pulls }] = await Promise.all([
    pool.query<Counts>({ ...backlog, values: [partnerId] }),
    pool.query<Pull>({ ...lastPull, values: [partnerId] }),
  ]);
  const { pending = 0, oldest_id = null, parked = 0 } = counts[0] ?? {};
  const [pull] = pulls;
  return {
    pending,
    oldestPendingMs: oldest_id === null ? null : idTimeMs(oldest_id),
    parked,
    pull: pull === undefined ? null : { cursor: pull.cursor, atMs: pull.at.getTime() },
  };
}

export async function writePull(pool: Pool, partnerId: PartnerId, cursor: string): Promise<void> {
  await pool.query({ ...notePull, values: [partnerId, cursor] });
}
