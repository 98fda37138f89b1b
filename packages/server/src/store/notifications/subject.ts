import type { Pool } from "pg";
import type { NotificationId, PartnerId } from "../../ids.ts";
import type { NotificationKey, NotificationSubject, SubjectMatch } from "../../notifications/store.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";

// A notification that outlived its day of history is in parked.
const withContent = (content: string) => `
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS k (partner_id, id, place)
  LEFT JOIN LATERAL (
    SELECT n.id, n.command, ${content} AS content FROM notifications n
    WHERE n.partner_id = k.partner_id AND n.id = k.id AND n.id BETWEEN $3 AND $4 LIMIT 1) AS n ON true
  LEFT JOIN LATERAL (
    SELECT d.notification ->> 'command' AS command, (d.notification ->> 'content')::json AS content FROM parked d
    WHERE n.id IS NULL AND d.partner_id = k.partner_id AND d.id = k.id LIMIT 1) AS d ON true
  CROSS JOIN LATERAL (
    SELECT coalesce(n.command, d.command) AS command, coalesce(n.content, d.content) AS content OFFSET 0) AS c
  CROSS JOIN LATERAL (SELECT c.content -> 'fields' AS fields OFFSET 0) AS f`;

const subjects = `
  SELECT k.partner_id AS "partnerId", k.id, f.fields ->> 'merchantTransId' AS "merchantTransId",
    coalesce(f.fields ->> 'amount', f.fields ->> 'totalAmount') AS amount,
    coalesce(f.fields ->> 'currency', c.content ->> 'currency') AS currency,
    f.fields ->> 'tid' AS tid, f.fields ->> 'mid' AS mid, f.fields ->> 'merchantName' AS "merchantName",
    f.fields ->> 'refId' AS "refId", f.fields ->> 'approveCode' AS "approveCode",
    f.fields ->> 'isoResponseCode' AS "isoResponseCode", f.fields ->> 'reqId' AS "reqId",
    right(f.fields ->> 'cardNumber', 4) AS "lastFour"
  ${withContent("CASE WHEN pg_column_size(n.content) <= $5 THEN n.content END")}
  ORDER BY k.place`;

const matching = `
  SELECT k.partner_id AS "partnerId", k.id ${withContent("n.content")}
  WHERE ($5::text IS NULL OR c.command = $5) AND ($6::text IS NULL OR f.fields ->> 'tid' = $6)
    AND ($7::text IS NULL OR f.fields ->> 'mid' = $7) AND ($8::text IS NULL OR f.fields ->> 'refId' = $8)
    AND ($9::text IS NULL OR f.fields ->> 'approveCode' = $9) AND ($10::text IS NULL OR f.fields ->> 'billId' = $10)
    AND ($11::text IS NULL OR right(f.fields ->> 'cardNumber', 4) = $11)
    AND ($12::text IS NULL OR position(lower($12) IN lower(f.fields ->> 'merchantTransId')) > 0)
    AND ($13::text IS NULL OR ($13 = 'approved') = (f.fields ->> 'isoResponseCode' = '00'))
    AND (($14::numeric IS NULL AND $15::numeric IS NULL) OR (CASE
      WHEN coalesce(f.fields ->> 'amount', f.fields ->> 'totalAmount') ~ '^[0-9]{1,20}([.][0-9]{1,6})?$'
      THEN coalesce(f.fields ->> 'amount', f.fields ->> 'totalAmount')::numeric
        BETWEEN coalesce($14::numeric, 0) AND coalesce($15::numeric, 'Infinity') END))
  ORDER BY k.place`;

// A settlement with thousands of entries is not read for a list: that would be megabytes for one line.
const listedBytesMax = 65_536;
const wholeBytesMax = 2 ** 31 - 1;

export async function readSubjects(
  pool: Pool,
  keys: readonly NotificationKey[],
): Promise<ReadonlyMap<NotificationId, NotificationSubject>> {
  if (keys.length === 0) return new Map();
  const bytesMax = keys.length === 1 ? wholeBytesMax : listedBytesMax;
  const { rows } = await queryAlongIndexes<Row>(pool, subjects, [...boundsOf(keys), bytesMax]);
  return new Map(rows.map(({ partnerId: _, id, ...subject }) => [id, subject]));
}

/** The keys whose content matches, in order. */
export async function readMatching(
  pool: Pool,
  keys: readonly NotificationKey[],
  match: SubjectMatch,
): Promise<readonly NotificationKey[]> {
  if (keys.length === 0) return [];
  const { command, tid, mid, refId, approveCode, billId, lastFour, contains, result, amountFrom, amountTo } = match;
  const texts = [command, tid, mid, refId, approveCode, billId, lastFour, contains, result, amountFrom, amountTo];
  const wanted = texts.map((value) => value ?? null);
  return (await queryAlongIndexes<NotificationKey>(pool, matching, [...boundsOf(keys), ...wanted])).rows;
}

interface Row extends NotificationSubject {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
}

function boundsOf(keys: readonly NotificationKey[]): unknown[] {
  const ids = keys.map((key) => key.id);
  const sorted = [...ids].sort();
  return [keys.map((key) => key.partnerId), ids, sorted[0], sorted.at(-1)];
}
