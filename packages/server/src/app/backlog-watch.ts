import type { EventKind, EventSink } from "../events.ts";
import type { PendingCount } from "../store/deliveries/pending-status.ts";

export interface BacklogWatch {
  count(): Promise<PendingCount>;
  /** Whether any instance has reported it since then. */
  wasSentSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  readonly events: EventSink;
  readonly alertAfterS: number;
}

const againAfterMs = 3_600_000;

/** Alerts the operator, once an hour, while the oldest pending notification is older than configured. */
export async function watchBacklog({ count: ask, wasSentSince, events, alertAfterS }: BacklogWatch): Promise<void> {
  const { count, oldestMs } = await ask();
  if (oldestMs === undefined) return;
  const nowMs = Date.now();
  const oldestS = Math.floor((nowMs - oldestMs) / 1_000);
  if (oldestS < alertAfterS || (await wasSentSince("oldest_pending", nowMs - againAfterMs))) return;
  events.record({
    kind: "oldest_pending",
    partnerId: null,
    subjectId: null,
    detail: { oldestSeconds: oldestS, count },
  });
}
