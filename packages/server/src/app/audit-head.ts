import type { Alerts } from "../alerts/alerts.ts";
import type { NewEvent } from "../events.ts";
import type { Log } from "../log.ts";
import type { AuditStore } from "../operators/audit.ts";

export interface AuditHeadParts {
  readonly audit: Pick<AuditStore, "head">;
  readonly log: Pick<Log, "info">;
  readonly events: Pick<Alerts, "record">;
  /** Whether any instance has sent an event of this kind since then. */
  wasSentSince(kind: NewEvent["kind"], sinceMs: number): Promise<boolean>;
}

/** Somewhat shorter than an hour: timers are not exact. */
const everyMs = 3_500_000;

/**
 * Sends the number and hash of the last entry out of the database, to the log and the alert channels. They show later
 * whether entries were cut off at the end.
 *
 * @param isLast the instance stops: it says so whatever others have sent
 */
export async function tellAuditHead(parts: AuditHeadParts, nowMs: number, isLast = false): Promise<void> {
  const head = await parts.audit.head();
  if (head === undefined) return;
  const expect = `${head.seq}:${head.hash}`;
  parts.log.info({ expect }, "the audit's last entry");
  if (!isLast && (await parts.wasSentSince("audit_head", nowMs - everyMs))) return;
  await parts.events.record({ kind: "audit_head", partnerId: null, subjectId: null, detail: { expect } });
}
