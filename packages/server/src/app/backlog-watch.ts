import type { EventKind, EventSink } from "../events.ts";
import type { PendingStanding } from "../store/deliveries.ts";

export interface BacklogWatch {
  standing(): Promise<PendingStanding>;
  /** Whether any instance told of it since then. */
  wasToldSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  readonly events: EventSink;
  readonly alertAfterS: number;
}

const againAfterMs = 3_600_000;

/** Alerts the operator, once an hour, while the oldest pending notification is older than agreed. */
export async function watchBacklog({ standing, wasToldSince, events, alertAfterS }: BacklogWatch): Promise<void> {
  const { count, oldestMs } = await standing();
  if (oldestMs === undefined) return;
  const nowMs = Date.now();
  const oldestS = Math.floor((nowMs - oldestMs) / 1_000);
  if (oldestS < alertAfterS || (await wasToldSince("oldest_pending", nowMs - againAfterMs))) return;
  events.record({
    kind: "oldest_pending",
    partnerId: null,
    subjectId: null,
    detail: { oldestSeconds: oldestS, count },
  });
}
