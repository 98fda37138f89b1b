import type { Pool } from "pg";
import type { NotificationId } from "../../ids.ts";
import type { NotificationKey, WaitingFor } from "../../notifications/store.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";

// The same order as in read_preceding, which the workers use.
const waiting = `
  SELECT a.state AS partner_state, a.updated_at AS partner_since, p.due_at, p.attempts_made,
    e.id AS endpoint_id, e.state AS endpoint_state, e.target, e.last_reason, e.probe_at,
    coalesce(
      CASE WHEN p.follows THEN (
        SELECT b.id FROM pending b
        WHERE b.chain_id = p.chain_id AND b.partner_id = p.partner_id AND b.schedule_start < p.schedule_start
        ORDER BY b.schedule_start LIMIT 1) END,
      CASE WHEN p.settles_batch IS NOT NULL THEN (
        SELECT b.id FROM pending b
        WHERE b.batch_id = p.settles_batch AND b.partner_id = p.partner_id AND b.schedule_start < p.schedule_start
        ORDER BY b.schedule_start LIMIT 1) END) AS after_id
  FROM pending p
  JOIN partners a ON a.id = p.partner_id
  LEFT JOIN LATERAL (
    SELECT e.* FROM endpoints e
    WHERE e.partner_id = p.partner_id AND e.state <> 'closed' AND e.queue = ANY (CASE p.queue
      WHEN '' THEN ARRAY[a.registered_origin, a.registered_origin || ' '
        || encode(sha256(convert_to(a.settings ->> 'callBackUrl', 'UTF8')), 'hex')]
      ELSE ARRAY[p.queue, split_part(p.queue, ' ', 1)] END)
    ORDER BY e.state DESC LIMIT 1) AS e ON true
  WHERE p.partner_id = $1 AND p.id = $2`;

interface Row {
  readonly partner_state: "active" | "paused" | "disabled";
  readonly partner_since: Date;
  readonly due_at: Date;
  readonly attempts_made: number;
  readonly endpoint_id: string | null;
  readonly endpoint_state: "open" | "gone" | null;
  readonly target: string | null;
  readonly last_reason: string | null;
  readonly probe_at: Date | null;
  readonly after_id: NotificationId | null;
}

/** Undefined if it is not pending. */
export async function readWaiting(pool: Pool, { partnerId, id }: NotificationKey): Promise<WaitingFor | undefined> {
  const { rows } = await queryAlongIndexes<Row>(pool, waiting, [partnerId, id]);
  const [row] = rows;
  if (row === undefined) return undefined;
  const untilMs = row.due_at.getTime();
  if (row.partner_state !== "active") {
    return { because: row.partner_state, sinceMs: row.partner_since.getTime(), untilMs: null };
  }
  if (row.endpoint_state !== null && row.endpoint_id !== null && row.target !== null) {
    const { endpoint_id: endpointId, target, last_reason: reason, probe_at: probeAt } = row;
    const because = row.endpoint_state === "gone" ? "gone" : "circuit";
    const probeMs = probeAt === null ? null : Math.max(probeAt.getTime(), untilMs);
    return { because, endpointId, target, reason, untilMs: because === "gone" ? null : probeMs };
  }
  if (row.after_id !== null) return { because: "order", after: row.after_id, untilMs };
  return { because: row.attempts_made > 0 && untilMs > Date.now() ? "retry" : "turn", untilMs };
}
