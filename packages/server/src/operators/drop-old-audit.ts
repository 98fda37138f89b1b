import type { Clock } from "../clock.ts";
import { type AuditStore, appendTo, byService } from "./audit.ts";

const dayMs = 86_400_000;

/**
 * Drops entries past their retention, and records that. The chain stays intact: it begins after the last dropped entry.
 * @returns the number dropped
 */
export async function dropOldAudit(
  store: Pick<AuditStore, "append" | "dropBefore">,
  clock: Pick<Clock, "nowMs">,
  auditDays: number,
): Promise<number> {
  const atMs = clock.nowMs();
  const beforeMs = atMs - auditDays * dayMs;
  let dropped = 0;
  for (let some = await store.dropBefore(beforeMs); some > 0; some = await store.dropBefore(beforeMs)) dropped += some;
  if (dropped > 0) {
    const after = JSON.stringify({ entries: dropped, before: new Date(beforeMs).toISOString() });
    await appendTo(store, { atMs, ...byService, action: "dropOldAudit", subject: "", before: "", after });
  }
  return dropped;
}
