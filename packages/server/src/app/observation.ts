import type { Acquirer } from "../acquirer/acquirer.ts";
import type { Arrivals } from "../delivery/arrivals.ts";
import type { Attempted, Dispatcher } from "../delivery/dispatcher.ts";
import type { Claimed } from "../delivery/store.ts";
import type { Lease } from "../instance.ts";
import type { Metrics } from "../metrics.ts";
import type { Standing } from "./standing.ts";

/** Counts what became of one attempt. */
export function countAttempt(metrics: Metrics, claimed: Claimed, { attempt, next }: Attempted): void {
  const outcome = attempt.reason ?? "accepted";
  metrics.attemptSeconds.observe({ outcome }, attempt.durationMs / 1_000);
  if (attempt.reason !== null) metrics.attemptsFailed.inc({ reason: attempt.reason });
  if (next.kind === "parked") metrics.notificationsParked.inc({ reason: outcome });
  if (next.kind !== "accepted") return;
  metrics.notificationsAccepted.inc({ command: claimed.command });
  const sinceMs = attempt.startedAtMs + attempt.durationMs - claimed.scheduleStartMs;
  metrics.deliverySeconds.observe({ command: claimed.command }, Math.max(0, sinceMs) / 1_000);
}

export interface Observed {
  readonly arrivals: Pick<Arrivals, "waiting">;
  readonly dispatcher: Pick<Dispatcher, "unrecorded"> & {
    readonly admission: Pick<Dispatcher["admission"], "bytes"> & {
      readonly slots: Pick<Dispatcher["admission"]["slots"], "taken">;
      readonly waitingRoom: Pick<Dispatcher["admission"]["waitingRoom"], "waiting" | "taken">;
    };
  };
  readonly lease: Pick<Lease, "remainingMs">;
  readonly database: { readonly [Name in "pool" | "engine"]: { readonly waitingCount: number } };
  readonly standing: Pick<Standing, "pending" | "daysAhead">;
  readonly acquirer?: Pick<Acquirer, "health"> | null;
}

/** Reads, every time somebody looks at the metrics, what stands rather than happens. */
export function observeStanding(metrics: Metrics, observed: Observed): void {
  const { dispatcher, arrivals, database, lease, standing, acquirer } = observed;
  metrics.onRead(async () => {
    metrics.acquirerLinks.set(acquirer?.health?.().ok === false ? 0 : 1);
    metrics.slotsInUse.set(dispatcher.admission.slots.taken);
    metrics.waitingForPlace.set(dispatcher.admission.waitingRoom.waiting);
    metrics.seatsInUse.set(dispatcher.admission.waitingRoom.taken);
    metrics.pullsWaiting.set(arrivals.waiting);
    metrics.unrecorded.set(dispatcher.unrecorded);
    for (const pool of ["pool", "engine"] as const) metrics.databaseWaiting.set({ pool }, database[pool].waitingCount);
    metrics.bytesInFlight.set(dispatcher.admission.bytes);
    metrics.leaseRemainingSeconds.set(lease.remainingMs() / 1_000);
    const [{ count, oldestMs }, daysAhead] = await Promise.all([standing.pending(), standing.daysAhead()]);
    metrics.pending.set(count);
    metrics.oldestPendingSeconds.set(oldestMs === undefined ? 0 : (Date.now() - oldestMs) / 1_000);
    metrics.partitionsAhead.set(daysAhead);
  });
}
