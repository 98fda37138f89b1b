import type { Clock } from "../clock.ts";
import { type AuditStore, byService, prepared } from "./audit.ts";

const dayMs = 86_400_000;

/**
 * Drops entries past their retention, and records that. The chain stays intact: it begins after the last dropped entry.
 * @returns the number dropped
 */
export async function dropOldAudit(
  store: Pick<AuditStore, "dropBefore">,
  clock: Pick<Clock, "nowMs">,
  auditDays: number,
): Promise<number> {
  const atMs = clock.nowMs();
  const beforeMs = atMs - auditDays * dayMs;
  const before = new Date(beforeMs).toISOString();
  const dropSome = () =>
    store.dropBefore(beforeMs, (entries) => {
      const after = JSON.stringify({ entries, before });
      return prepared({ atMs, ...byService, action: "dropOldAudit", subject: "", before: "", after });
    });
  let dropped = 0;
  for (let some = await dropSome(); some > 0; some = await dropSome()) dropped += some;
  return dropped;
}
