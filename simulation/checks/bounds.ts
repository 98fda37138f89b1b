import type { Plan } from "../context.ts";
import type { WorkerThread } from "../service/worker-thread.ts";
import type { World } from "../world.ts";

const rowsPerSlot = 8;
const rowsPerQueueMin = 4;
const unrecordedPerSlot = 4;

/** Invariant 10: what a worker has in memory stays within its bounds. */
export function checkBounds(world: World, plan: Plan, { name, worker }: WorkerThread): void {
  const { slots, bytes, rows, unrecorded } = worker.status;
  const { slotsMax, bytesInFlightMax } = plan;
  const queues = worker.queues.partners().reduce((sum, id) => sum + worker.queues.queuesOf(id).length, 0);
  const bounds = [
    ["slots", slots, slotsMax],
    ["bytes", bytes, bytesInFlightMax],
    ["rows", rows, slotsMax * rowsPerSlot + queues * rowsPerQueueMin],
    ["unrecorded outcomes", unrecorded, slotsMax * (unrecordedPerSlot + 1)],
  ] as const;
  for (const [what, is, most] of bounds) {
    if (is < 0 || is > most) world.violated(10, `${name} has ${is} ${what}, and ${most} at most are agreed`);
  }
}
