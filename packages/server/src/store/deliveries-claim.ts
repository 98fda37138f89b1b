import type { NotifiedCommand } from "@paybell/contract";
import type { Pool } from "pg";
import type { Claimed, ClaimLimits } from "../delivery/store.ts";
import type { ChainId, NotificationId, TransactionId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { doubleArray, textArray, uuidArray } from "./arrays.ts";
import { floorOf, type Queue, type Queues, walkQueues } from "./deliveries-queues.ts";

// Each partner's queue of one origin gives its share; the round begins behind the partner that was served last. Queues
// whose endpoint is open give one row together when its probe is due, and none before; the queue of a URL that is gone
// gives none. Endpoints are locked without waiting: one instance alone has the probe. Of a share, what must wait for
// others is put off for a moment, so that it never hides what may leave: "blocked" itself is never stored, because a
// delete that unblocks cannot see a successor that is not committed yet. What has a URL of its own that is gone is set
// aside into that URL's queue. What is larger than the bytes that are free is passed by, until nothing is in flight.
function claimDue(name: string, queue: string) {
  const text = `
    WITH RECURSIVE ${queue},
    route AS MATERIALIZED (
      SELECT q.partner_id, q.origin, q.floor, e.id AS endpoint_id, q.origin <> '' AND EXISTS (
          SELECT FROM endpoints g WHERE g.partner_id = q.partner_id AND g.state = 'gone') AS beside_gone
      FROM queue q
      JOIN partners a ON a.id = q.partner_id AND a.state = 'active'
      LEFT JOIN endpoints e ON e.partner_id = q.partner_id AND e.state = 'open'
        AND e.queue = CASE q.origin WHEN '' THEN a.registered_origin ELSE split_part(q.origin, ' ', 1) END
      WHERE q.partner_id <> ALL ($5::uuid[]) AND (e.id IS NULL OR e.probe_at <= now())
        AND NOT EXISTS (
          SELECT FROM endpoints g WHERE g.partner_id = q.partner_id AND g.state = 'gone' AND g.queue = CASE q.origin
            WHEN '' THEN a.registered_origin || ' '
              || encode(sha256(convert_to(a.settings ->> 'callBackUrl', 'UTF8')), 'hex')
            ELSE q.origin END)),
    probeable AS MATERIALIZED (
      SELECT e.partner_id, e.id FROM (
        SELECT DISTINCT r.partner_id, r.endpoint_id FROM route r WHERE r.endpoint_id IS NOT NULL) AS r
      JOIN endpoints e ON e.partner_id = r.partner_id AND e.id = r.endpoint_id
      WHERE e.state = 'open' AND e.probe_at <= now()
      FOR NO KEY UPDATE OF e SKIP LOCKED),
    due AS MATERIALIZED (
      SELECT d.*, r.endpoint_id, d.preceded AND NOT d.waited AND d.gone_queue IS NULL AS must_wait FROM (
        SELECT r.partner_id, r.origin, r.floor, r.endpoint_id, r.beside_gone FROM route r
        WHERE r.endpoint_id IS NULL
          OR EXISTS (SELECT FROM probeable b WHERE b.partner_id = r.partner_id AND b.id = r.endpoint_id)
        ORDER BY r.partner_id <= $6::uuid, r.partner_id) AS r
      CROSS JOIN LATERAL (
        SELECT p.ctid AS at, p.partner_id, p.id, p.bytes, p.due_at,
          p.follows AND EXISTS (
            SELECT FROM pending e WHERE e.partner_id = p.partner_id AND e.chain_id = p.chain_id
              AND e.schedule_start < p.schedule_start)
          OR p.settles_batch IS NOT NULL AND EXISTS (
            SELECT FROM pending e WHERE e.partner_id = p.partner_id AND e.batch_id = p.settles_batch
              AND e.schedule_start < p.schedule_start) AS preceded,
          p.schedule_start < now() - interval '10 minutes' AS waited,
          CASE WHEN r.beside_gone AND NOT p.to_registered THEN (
            SELECT g.queue FROM notifications n
            JOIN endpoints g ON g.partner_id = p.partner_id AND g.state = 'gone'
              AND g.queue = p.origin || ' ' || encode(sha256(convert_to(n.callback_url, 'UTF8')), 'hex')
            WHERE n.partner_id = p.partner_id AND n.id = p.id) END AS gone_queue
        FROM pending p
        WHERE p.instance_id IS NULL AND p.partner_id = r.partner_id AND p.origin = r.origin
          AND p.due_at >= r.floor AND p.due_at <= now()
        ORDER BY p.due_at LIMIT coalesce(($9::integer[])[array_position($8::uuid[], r.partner_id)], $4)
        FOR UPDATE OF p SKIP LOCKED) AS d
      LIMIT $3),
    may_leave AS (
      SELECT o.*, row_number() OVER (PARTITION BY o.partner_id, o.endpoint_id ORDER BY o.due_at) AS nth_of_endpoint
      FROM (SELECT due.*, row_number() OVER () AS nth FROM due
        WHERE NOT due.must_wait AND due.gone_queue IS NULL) AS o),
    chosen AS MATERIALIZED (
      SELECT c.* FROM (
        SELECT m.*, sum(m.bytes) OVER (ORDER BY m.nth) AS bytes_so_far, row_number() OVER (ORDER BY m.nth) AS nth_chosen
        FROM may_leave m
        WHERE (m.endpoint_id IS NULL OR m.nth_of_endpoint = 1) AND (m.bytes <= $10::bigint OR $11)) AS c
      WHERE c.bytes_so_far <= $10 OR c.nth_chosen = 1 AND $11),
    probes AS (
      UPDATE endpoints e SET probe_at = now() + $7 * interval '1 millisecond', probes = e.probes + 1
      FROM chosen c WHERE c.endpoint_id IS NOT NULL AND e.partner_id = c.partner_id AND e.id = c.endpoint_id),
    put_off AS (
      UPDATE pending p SET due_at = now() + greatest(interval '500 milliseconds', least(interval '30 seconds',
        (now() - p.schedule_start) / 10, p.schedule_start + interval '10 minutes' - now()))
      FROM due WHERE due.must_wait AND p.ctid = due.at
      RETURNING 1),
    set_aside AS (
      UPDATE pending p SET origin = due.gone_queue FROM due WHERE due.gone_queue IS NOT NULL AND p.ctid = due.at
      RETURNING 1),
    taken AS (
      UPDATE pending p SET instance_id = $1, epoch = $2, claim_no = p.claim_no + 1
      FROM chosen c WHERE p.ctid = c.at
      RETURNING p.partner_id, p.id, p.origin, p.claim_no, p.attempts_made, p.to_registered, p.schedule_start,
        ${floorOf("c.due_at")} AS floor, c.preceded AS out_of_order, c.endpoint_id IS NOT NULL AS is_probe)
    SELECT aside.count AS set_aside, taken.*, n.transaction_id, n.chain_id, n.command, n.callback_url, n.content::text,
      coalesce(n.original_id, (
        SELECT o.id FROM transactions o
        WHERE (o.partner_id = n.partner_id) IS TRUE AND o.external_id = n.original_external_id
          AND o.origin = 'switch')) AS original_id
    FROM (SELECT (SELECT count(*) FROM set_aside) + (SELECT count(*) FROM put_off) AS count) AS aside
    LEFT JOIN (taken JOIN notifications n ON n.partner_id = taken.partner_id AND n.id = taken.id) ON true`;
  return { name, text };
}

const claimWalking = claimDue("claim_due", walkQueues);
// Only what is known is looked at, each from its floor on.
const claimKnown = claimDue(
  "claim_known",
  `queue AS (
      SELECT i.partner_id, i.origin, to_timestamp(i.floor) AS floor
      FROM unnest($12::uuid[], $13::text[], $14::double precision[]) AS i (partner_id, origin, floor))`,
);

interface ClaimedRow extends Queue {
  readonly id: NotificationId;
  readonly claim_no: number;
  readonly attempts_made: number;
  readonly to_registered: boolean;
  readonly schedule_start: Date;
  readonly transaction_id: TransactionId | null;
  readonly original_id: TransactionId | null;
  readonly chain_id: ChainId;
  readonly command: NotifiedCommand;
  readonly callback_url: string | null;
  readonly content: string;
  readonly out_of_order: boolean;
  readonly is_probe: boolean;
}

/** One row always comes: where nothing was taken it tells only how many were set aside. */
type ClaimRow = { readonly set_aside: number } & (ClaimedRow | { readonly id: null });

export interface ClaimHow {
  readonly limits: ClaimLimits;
  /** The partner behind which the round begins. */
  readonly servedLast: string;
  /** What is known of where to look. */
  readonly queues: Queues;
}

export interface ClaimResult {
  readonly claimed: readonly Claimed[];
  /** Rows that are out of the way now, and hid others. */
  readonly setAside: number;
}

/** Takes due notifications for `instance`. */
export async function claim(
  engine: Pool,
  instance: Instance,
  { limits, servedLast, queues }: ClaimHow,
): Promise<ClaimResult> {
  const rowsMaxOf = [...(limits.rowsMaxOf ?? [])];
  const known = await queues.known();
  const startedMs = performance.now();
  const answer = await engine.query<ClaimRow>({
    ...(known === undefined ? claimWalking : claimKnown),
    values: [
      instance.id,
      instance.epoch,
      limits.rowsMax,
      limits.rowsPerPartnerMax,
      limits.without,
      servedLast,
      limits.probeLeaseMs,
      rowsMaxOf.map(([partnerId]) => partnerId),
      rowsMaxOf.map(([, rowsMax]) => rowsMax),
      limits.bytesMax,
      limits.oversizeAllowed ?? true,
      ...(known === undefined ? [] : knownColumns(known)),
    ],
  });
  const rows = answer.rows.filter((row) => row.id !== null);
  queues.claimed(performance.now() - startedMs, rows);
  return { claimed: rows.map(readClaimed), setAside: answer.rows[0]?.set_aside ?? 0 };
}

function readClaimed(row: ClaimedRow): Claimed {
  return {
    partnerId: row.partner_id,
    id: row.id,
    transactionId: row.transaction_id,
    originalId: row.original_id,
    chainId: row.chain_id,
    command: row.command,
    content: row.content,
    callBackUrl: row.callback_url,
    toRegistered: row.to_registered,
    claimNo: row.claim_no,
    attemptsMade: row.attempts_made,
    scheduleStartMs: row.schedule_start.getTime(),
    outOfOrder: row.out_of_order,
    isProbe: row.is_probe,
  };
}

function knownColumns(known: readonly Queue[]): unknown[] {
  return [
    uuidArray(known.map((queue) => queue.partner_id)),
    textArray(known.map((queue) => queue.origin)),
    doubleArray(known.map((queue) => queue.floor)),
  ];
}
