import { DatabaseError, type Pool, type PoolClient } from "pg";
import {
  type ChainId,
  idTimeMs,
  lowestId,
  type NotificationId,
  newId,
  type PartnerId,
  type RedeliveryId,
} from "../../ids.ts";
import { queueOfUrl } from "../../notification.ts";
import type { Held, RedeliveryCounts, TestNotification } from "../../notifications/store.ts";
import { epochMs } from "../database/along-indexes.ts";
import { planned } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { earlierThan } from "../deliveries/read.ts";
import type { Partitions } from "../schema/partitions.ts";
import { itsEndpoint } from "./status.ts";

const outlived = planned<{ id: NotificationId }>(`
  SELECT d.id FROM parked d WHERE d.partner_id = $1 AND d.id = ANY ($2::uuid[]) AND d.notification IS NOT NULL`);

// Waits for an outcome that is being written: if it were read before, its notification would be both parked and
// pending.
const awaitOutcomes = planned<{ id: NotificationId }>(`
  SELECT p.id FROM pending p WHERE p.partner_id = $1 AND p.id = ANY ($2::uuid[]) ORDER BY p.id FOR UPDATE`);

// Outcomes of earlier rounds may still arrive. Each names its round, and changes no later one.
const takeOut = planned<Removed>(`
  WITH freed AS (
    DELETE FROM parked WHERE partner_id = $1 AND id = ANY ($2::uuid[])
    RETURNING partner_id, id, chain_id, round, bytes, notification),
  restored AS (
    INSERT INTO notifications (partner_id, id, transaction_id, original_id, original_external_id, chain_id, command,
      callback_url, content, content_mac, xid, created_at)
    SELECT f.partner_id, f.id, (f.notification ->> 'transaction_id')::uuid, (f.notification ->> 'original_id')::uuid,
      f.notification ->> 'original_external_id', f.chain_id, f.notification ->> 'command',
      f.notification ->> 'callback_url', (f.notification ->> 'content')::json,
      (f.notification ->> 'content_mac')::bytea, (f.notification ->> 'xid')::xid8,
      (f.notification ->> 'created_at')::timestamptz
    FROM freed f WHERE f.notification IS NOT NULL
    ON CONFLICT DO NOTHING),
  kept AS (
    SELECT n.id, n.chain_id, 0 AS round, octet_length(n.content::text) AS bytes, n.callback_url, n.command
    FROM notifications n
    WHERE n.partner_id = $1 AND n.id = ANY ($2::uuid[]) AND n.id BETWEEN $3 AND $4
      AND $5::boolean AND NOT EXISTS (SELECT FROM freed f WHERE f.id = n.id)
    UNION ALL
    SELECT f.id, f.chain_id, f.round, f.bytes, coalesce(f.notification ->> 'callback_url', n.callback_url),
      coalesce(f.notification ->> 'command', n.command)
    FROM freed f LEFT JOIN LATERAL (
      SELECT n.callback_url, n.command FROM notifications n
      WHERE n.partner_id = $1 AND n.id = f.id AND n.id BETWEEN $3 AND $4) AS n ON true)
  SELECT k.id, k.chain_id, k.bytes, k.callback_url, coalesce((
    SELECT a.registered_routes -> k.command ->> 'queue' FROM partners a WHERE a.id = $1), '') AS registered_queue,
    greatest(k.round, (
    SELECT max(a.round) FROM attempts a WHERE a.partner_id = $1 AND a.id = k.id AND a.id BETWEEN $3 AND $4)) AS round
  FROM kept k ORDER BY k.id`);

const makeDue = planned<{ id: NotificationId }>(`
  INSERT INTO pending (partner_id, id, chain_id, due_at, round, bytes, queue, to_registered)
  SELECT $1, i.id, i.chain_id, now(), i.round + 1, i.bytes, i.queue, $2
  FROM unnest($3::uuid[], $4::uuid[], $5::integer[], $6::integer[], $7::text[]) AS i (id, chain_id, round, bytes, queue)
  ON CONFLICT DO NOTHING
  RETURNING id`);

interface Removed {
  readonly id: NotificationId;
  readonly chain_id: ChainId;
  readonly round: number;
  readonly bytes: number;
  readonly callback_url: string | null;
  readonly registered_queue: string;
}

const registeredQueues = planned<{ id: NotificationId; queue: string }>(`
  SELECT n.id, coalesce((
    SELECT a.registered_routes -> n.command ->> 'queue' FROM partners a WHERE a.id = $1), '') AS queue
  FROM notifications n WHERE n.partner_id = $1 AND n.id = ANY ($2::uuid[]) AND n.id BETWEEN $3 AND $4`);

// A first attempt counts as a step of the schedule, although a person asked for it. One that goes to the registered URL
// leaves the queue of its own, which is not read while that accepts nothing.
const sendNow = planned(`
  UPDATE pending p SET due_at = least(p.due_at, now()), is_asked = p.attempts_made > 0,
    requests = p.requests + 1, to_registered = p.to_registered OR $2, queue = coalesce(i.queue, p.queue)
  FROM unnest($3::uuid[], $4::text[]) AS i (id, queue) WHERE p.partner_id = $1 AND p.id = i.id`);

/** A tripped circuit is probed now. Its owner reads what a person changed: the number says that. */
const probeNow = planned(`
  UPDATE endpoints e SET probe_at = now(), control_no = control_no + 1, updated_at = now()
  WHERE e.partner_id = $1 AND e.state = 'open' AND e.probe_at > now()`);

const isHeld = `
  CASE WHEN (SELECT a.state FROM partners a WHERE a.id = p.partner_id) <> 'active' THEN 'paused'
    WHEN ${earlierThan("p")} IS NOT NULL THEN 'order' END`;

/** With those that another session made due in the meantime. */
const nowPending = planned<{ id: NotificationId; held: Held | null }>(`
  SELECT p.id, ${isHeld} AS held FROM pending p WHERE p.partner_id = $1 AND p.id = ANY ($2::uuid[])`);

/** The progress of a redelivery can be asked for this long. */
const redeliveriesKeptMs = 30 * 86_400_000;
const dropOldRedeliveries = planned("DELETE FROM redeliveries WHERE partner_id = $1 AND id < $2::uuid");
const insertStep = planned("INSERT INTO redeliveries (partner_id, id, step, ids) VALUES ($1, $2, $3, $4::uuid[])");

const redeliveryCounts = planned<Omit<RedeliveryCounts, "held"> & { paused: number; in_order: number }>(`
  SELECT count(*)::integer AS redelivered, count(p.held)::integer AS pending,
    count(*) FILTER (WHERE p.has_failed)::integer AS failed,
    count(d.id) FILTER (WHERE p.held IS NULL)::integer AS parked,
    count(*) FILTER (WHERE p.held = 'paused')::integer AS paused,
    count(*) FILTER (WHERE p.held = 'order')::integer AS in_order,
    count(*) FILTER (WHERE next.at <= now())::integer AS due,
    ${epochMs("min(next.at) FILTER (WHERE next.at > now())")} AS "nextAttemptMs"
  FROM (
    SELECT DISTINCT r.partner_id, i.id FROM redeliveries r CROSS JOIN LATERAL unnest(r.ids) AS i (id)
    WHERE r.id = $1 AND ($2::uuid IS NULL OR r.partner_id = $2)) AS i
  LEFT JOIN LATERAL (
    SELECT p.*, coalesce(${isHeld}, '') AS held, p.attempts_made > 0 AND NOT p.is_asked AS has_failed FROM pending p
    WHERE p.partner_id = i.partner_id AND p.id = i.id LIMIT 1) AS p ON true
  LEFT JOIN LATERAL (SELECT a.* FROM partners a WHERE a.id = i.partner_id LIMIT 1) AS a ON true
  ${itsEndpoint}
  CROSS JOIN LATERAL (
    SELECT CASE WHEN p.held = '' AND e.state IS DISTINCT FROM 'gone' THEN greatest(p.due_at, e.probe_at) END AS at
  ) AS next
  LEFT JOIN LATERAL (
    SELECT d.id FROM parked d WHERE d.partner_id = i.partner_id AND d.id = i.id LIMIT 1) AS d ON true`);

const insertTest = planned(`
  WITH history AS (
    INSERT INTO notifications (partner_id, id, chain_id, command, content, content_mac)
    VALUES ($1, $2, $3, $4, $5, $8))
  INSERT INTO pending (partner_id, id, chain_id, due_at, bytes, queue) VALUES ($1, $2, $3, now(), $6, $7)`);

/** `no partition of relation found for row`: the day was dropped between reading and writing. */
const noPartition = "23514";

export interface RedeliveryRequest {
  readonly partnerId: PartnerId;
  readonly ids: readonly NotificationId[];
  readonly to: "original" | "registered";
  /** The redelivery that counts them. */
  readonly redelivery?: RedeliveryId | undefined;
  /** Default true; false: those that were accepted meanwhile stay so. */
  readonly ofAccepted?: boolean;
}

export async function redeliverAll(
  pool: Pool,
  partitions: Pick<Partitions, "ensureDays">,
  request: RedeliveryRequest,
): Promise<ReadonlyMap<NotificationId, Held | null>> {
  for (let tries = 1; ; tries += 1) {
    const rows = await outlived.rows(pool, [request.partnerId, request.ids]);
    if (rows.length > 0) await partitions.ensureDays(rows.map((row) => idTimeMs(row.id)));
    try {
      return await inTransaction(pool, (client) => redeliverIn(client, request));
    } catch (error) {
      if (tries === 3 || !(error instanceof DatabaseError) || error.code !== noPartition) throw error;
    }
  }
}

async function redeliverIn(
  client: PoolClient,
  { partnerId, ids, to, redelivery, ofAccepted = true }: RedeliveryRequest,
): Promise<ReadonlyMap<NotificationId, Held | null>> {
  const sorted = [...ids].sort();
  const waited = await awaitOutcomes.rows(client, [partnerId, sorted]);
  const pending = new Set(waited.map((row) => row.id));
  const free = sorted.filter((id) => !pending.has(id));
  const bounds = [sorted[0] ?? null, sorted.at(-1) ?? null];
  const rows = await takeOut.rows(client, [partnerId, free, ...bounds, ofAccepted]);
  const toRegistered = to === "registered";
  const begun = await makeDue.rows(client, [
    partnerId,
    toRegistered,
    rows.map((row) => row.id),
    rows.map((row) => row.chain_id),
    rows.map((row) => row.round),
    rows.map((row) => row.bytes),
    rows.map(({ callback_url: url, registered_queue: queue }) =>
      toRegistered || url === null ? queue : queueOfUrl(url),
    ),
  ]);
  const due = await nowPending.rows(client, [partnerId, sorted]);
  if (redelivery !== undefined && due.length > 0) {
    const step = newId();
    await dropOldRedeliveries.run(client, [partnerId, lowestId(idTimeMs(step) - redeliveriesKeptMs)]);
    await insertStep.run(client, [partnerId, redelivery, step, due.map((row) => row.id)]);
  }
  const again = new Set(begun.map((row) => row.id));
  const waiting = due.map((row) => row.id).filter((id) => !again.has(id));
  const moved = toRegistered ? await registeredQueues.rows(client, [partnerId, waiting, ...bounds]) : [];
  const queueOfId = new Map(moved.map(({ id, queue }) => [id, queue]));
  const queues = waiting.map((id) => queueOfId.get(id) ?? null);
  if (waiting.length > 0) await sendNow.run(client, [partnerId, toRegistered, waiting, queues]);
  // Last, so that endpoints are not locked while waiting for anything else.
  if (due.length > 0) await probeNow.run(client, [partnerId]);
  return new Map(due.map(({ id, held }) => [id, held]));
}

/** Undefined: none of these partners has a part in it. */
export async function countRedelivery(
  pool: Pool,
  id: RedeliveryId,
  partnerId: PartnerId | undefined,
): Promise<RedeliveryCounts | undefined> {
  const row = await redeliveryCounts.first(pool, [id, partnerId ?? null]);
  if (row === undefined || row.redelivered === 0) return undefined;
  const { paused, in_order: order, ...counts } = row;
  return { ...counts, held: { paused, order } };
}

/** The counts of all homes. */
export function sumOf(parts: readonly (RedeliveryCounts | undefined)[]): RedeliveryCounts | undefined {
  return parts.reduce((sum, part) => {
    if (sum === undefined || part === undefined) return sum ?? part;
    return {
      redelivered: sum.redelivered + part.redelivered,
      pending: sum.pending + part.pending,
      failed: sum.failed + part.failed,
      due: sum.due + part.due,
      nextAttemptMs: earlier(sum.nextAttemptMs, part.nextAttemptMs),
      parked: sum.parked + part.parked,
      held: { paused: sum.held.paused + part.held.paused, order: sum.held.order + part.held.order },
    };
  }, undefined);
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

export async function insertTestNotification(pool: Pool, test: TestNotification): Promise<void> {
  const { partnerId, id, chainId, command, queue, content, mac } = test;
  await insertTest.run(pool, [partnerId, id, chainId, command, content, Buffer.byteLength(content), queue, mac]);
}
