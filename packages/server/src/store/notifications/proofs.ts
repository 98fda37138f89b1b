import { hash } from "node:crypto";
import type { Pool } from "pg";
import type { ContentMac, FixedContent } from "../../delivery/attempt/content-mac.ts";
import { lowestId, type NotificationId, nilId, type TransactionId } from "../../ids.ts";
import type { KeptProof } from "../../notifications/store.ts";
import { epochMs } from "../database/along-indexes.ts";
import type { Homes } from "../database/homes.ts";
import { planned, runInBatches } from "../database/statement.ts";

const pageRows = 500;
/** The size of their contents as stored, which is compressed. */
const pageBytes = 1_024 * 1_024;

// Attempts without a reason were accepted. Of several, a redelivery's among them, the first one proves the delivery.
const accepted = planned<AcceptedRow>(`
  SELECT f.partner_id AS "partnerId", f.id, f.transaction_id, f.command, f.created_at, f.started_at, f.duration_ms, f.url,
    f.address, f.http_status, f.key_id, f.attempts, f.callback_url AS "callBackUrl", f.content::text AS content,
    f.content_mac, f.original_id AS "originalId",
    CASE WHEN f.original_id IS NULL THEN f.original_external_id END AS "originalExternalId"
  FROM (
    SELECT d.*, sum(pg_column_size(d.content)) OVER (ORDER BY d.partner_id, d.id) - pg_column_size(d.content)
      AS bytes_before
    FROM (
      SELECT DISTINCT ON (a.partner_id, a.id) a.partner_id, a.id, n.transaction_id, n.command, n.created_at,
        a.started_at, a.duration_ms, a.url, a.address, a.http_status, a.key_id, (
          SELECT count(*) FROM attempts m
          WHERE m.partner_id = a.partner_id AND m.id = a.id AND m.id >= $1 AND m.id < $2)::integer AS attempts,
        n.callback_url, n.content, n.content_mac, n.original_id, n.original_external_id
      FROM attempts a JOIN notifications n ON n.partner_id = a.partner_id AND n.id = a.id AND n.id >= $1 AND n.id < $2
      WHERE a.id >= $1 AND a.id < $2 AND (a.partner_id, a.id) > ($3, $4) AND a.reason IS NULL
      ORDER BY a.partner_id, a.id, a.round, a.attempt_no LIMIT ${pageRows}) AS d) AS f
  WHERE f.bytes_before < ${pageBytes} ORDER BY f.partner_id, f.id`);

const insertProofs = planned(`
  INSERT INTO proofs (partner_id, id, transaction_id, command, created_at, started_at, duration_ms, url, address,
    http_status, key_id, attempts, content_sha256)
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[],
    $7::integer[], $8::text[], $9::text[], $10::integer[], $11::text[], $12::integer[], $13::bytea[])
  ON CONFLICT DO NOTHING`);

interface AcceptedRow extends FixedContent {
  readonly transaction_id: TransactionId | null;
  readonly created_at: Date;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly url: string;
  readonly address: string | null;
  readonly http_status: number | null;
  readonly key_id: string | null;
  readonly attempts: number;
  readonly content_mac: Buffer | null;
}

/**
 * Keeps what proves the deliveries of a day, before it is dropped. A notification that somebody changed is alerted, and
 * leaves no proof. Safe to repeat.
 */
export async function keepProofs(
  pool: Pool,
  ids: readonly [string, string],
  contents: Pick<ContentMac, "isAsCommitted">,
): Promise<void> {
  let after = [nilId, nilId];
  for (;;) {
    const rows = await accepted.rows(pool, [...ids, ...after]);
    const last = rows.at(-1);
    if (last === undefined) return;
    const proved = rows.filter((row) => contents.isAsCommitted(row, row.content_mac));
    const column = <Name extends keyof AcceptedRow>(name: Name) => proved.map((row) => row[name]);
    await insertProofs.run(pool, [
      column("partnerId"),
      column("id"),
      column("transaction_id"),
      column("command"),
      column("created_at"),
      column("started_at"),
      column("duration_ms"),
      column("url"),
      column("address"),
      column("http_status"),
      column("key_id"),
      column("attempts"),
      proved.map(({ content }) => hash("sha256", content, "buffer")),
    ]);
    after = [last.partnerId, last.id];
  }
}

const drop = planned(`
  DELETE FROM proofs WHERE (partner_id, id) IN (
    SELECT f.partner_id, f.id FROM partners p CROSS JOIN LATERAL (
      SELECT o.partner_id, o.id FROM proofs o WHERE o.partner_id = p.id AND o.id < $1 LIMIT $2) AS f
    LIMIT $2)`);

/** Drops proofs of notifications that were created before. */
export function pruneProofs(pool: Pool, beforeMs: number): Promise<void> {
  return runInBatches(pool, drop, [lowestId(beforeMs)]);
}

const find = planned<KeptProof>(`
  SELECT f.id, f.partner_id AS "partnerId", f.transaction_id AS "transactionId", f.command,
    ${epochMs("f.created_at")} AS "createdAtMs", ${epochMs("f.started_at")} AS "startedAtMs",
    f.duration_ms AS "durationMs", f.url, f.address, f.http_status AS "httpStatus", f.key_id AS "keyId", f.attempts,
    encode(f.content_sha256, 'hex') AS "contentSha256"
  FROM partners p JOIN proofs f ON f.partner_id = p.id AND f.id = $1`);

/** Finds the proof of a notification whose day was dropped. */
export async function findProof(homes: Homes, id: NotificationId): Promise<KeptProof | undefined> {
  const [found] = await homes.gather(({ pool }) => find.rows(pool, [id]));
  return found;
}
