import type { Pool } from "pg";
import type { ScheduleLength } from "../delivery/endpoints-store.ts";
import type { NewEvent } from "../events.ts";
import type { NotificationId, PartnerId } from "../ids.ts";
import { insertEvents } from "./events.ts";

// One step along the index for each queue of the partner, then the longest waiting of those that are blocked.
const park = {
  name: "park_overdue",
  text: `
    WITH RECURSIVE partner AS (
      SELECT i.partner_id, i.length_ms, a.registered_origin,
        a.registered_origin || ' '
          || encode(sha256(convert_to(a.settings ->> 'callBackUrl', 'UTF8')), 'hex') AS registered
      FROM unnest($1::uuid[], $2::double precision[]) AS i (partner_id, length_ms)
      JOIN partners a ON a.id = i.partner_id),
    queue AS (
      SELECT a.partner_id, first.origin FROM partner a CROSS JOIN LATERAL (
        SELECT p.origin FROM pending p WHERE p.instance_id IS NULL AND p.partner_id = a.partner_id
        ORDER BY p.origin, p.schedule_start LIMIT 1) AS first
      UNION ALL
      SELECT q.partner_id, next.origin FROM queue q CROSS JOIN LATERAL (
        SELECT p.origin FROM pending p
        WHERE p.instance_id IS NULL AND p.partner_id = q.partner_id AND p.origin > q.origin
        ORDER BY p.origin, p.schedule_start LIMIT 1) AS next),
    overdue AS MATERIALIZED (
      SELECT d.*, e.last_reason FROM partner a
      JOIN queue q ON q.partner_id = a.partner_id
      CROSS JOIN LATERAL (
        SELECT e.last_reason FROM endpoints e
        WHERE e.partner_id = a.partner_id AND (
          e.state = 'open' AND e.queue = CASE q.origin
            WHEN '' THEN a.registered_origin ELSE split_part(q.origin, ' ', 1) END
          OR e.state = 'gone' AND e.queue = CASE q.origin WHEN '' THEN a.registered ELSE q.origin END)
        ORDER BY e.state LIMIT 1) AS e
      CROSS JOIN LATERAL (
        SELECT p.ctid AS at FROM pending p
        WHERE p.instance_id IS NULL AND p.partner_id = q.partner_id AND p.origin = q.origin
          AND p.schedule_start <= now() - a.length_ms * interval '1 millisecond'
        ORDER BY p.schedule_start LIMIT $3
        FOR UPDATE OF p SKIP LOCKED) AS d
      LIMIT $3),
    gone AS (
      DELETE FROM pending p USING overdue o WHERE p.ctid = o.at
      RETURNING p.partner_id, p.id, p.chain_id, p.claim_no, p.attempts_made, p.bytes,
        coalesce(o.last_reason, 'timeout') AS reason)
    INSERT INTO parked (partner_id, id, chain_id, claim_no, attempts_made, bytes, reason)
    SELECT partner_id, id, chain_id, claim_no, attempts_made, bytes, reason FROM gone
    ON CONFLICT (partner_id, id) DO NOTHING
    RETURNING partner_id, id, reason, attempts_made`,
};

interface ParkedRow {
  readonly partner_id: PartnerId;
  readonly id: NotificationId;
  readonly reason: string;
  readonly attempts_made: number;
}

/** Parks, with their events, what no claim takes any more because its endpoint is open or gone. */
export async function parkOverdue(
  engine: Pool,
  lengths: readonly ScheduleLength[],
  rowsMax: number,
  alert: boolean,
): Promise<number> {
  const client = await engine.connect();
  try {
    await client.query("BEGIN");
    const { rows } = await client.query<ParkedRow>({
      ...park,
      values: [lengths.map(({ partnerId }) => partnerId), lengths.map(({ lengthMs }) => lengthMs), rowsMax],
    });
    if (rows.length > 0) await insertEvents(client, rows.map(parkedEvent), alert);
    await client.query("COMMIT");
    client.release();
    return rows.length;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

function parkedEvent({ partner_id, id, reason, attempts_made: attemptsMade }: ParkedRow): NewEvent {
  const detail = "Its schedule was over while its endpoint was open.";
  return {
    kind: "parked",
    partnerId: partner_id,
    subjectId: id,
    detail: { reason, detail, httpStatus: null, attemptsMade },
  };
}
