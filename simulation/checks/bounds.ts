import type { SimulationPlan } from "../context.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";

const rowsPerSlot = 8;
const rowsPerQueueMin = 4;
const unrecordedPerSlot = 4;
/** The size of one page, or of one row, which comes whatever its size. */
const pageBytesMax = 4 * 1_024 * 1_024;

/** Invariant 10: a worker's memory stays within its bounds, and nothing in it waits for a partner that is paused. */
export function checkBounds(world: World, plan: SimulationPlan, { name, worker, partners }: Instance): void {
  const { slots, bytes, rows, rowsBytes, unrecorded } = worker.status;
  const { slotsMax, bytesInFlightMax, merchants } = plan;
  const bounds = [
    ["slots", slots, slotsMax],
    ["bytes", bytes, bytesInFlightMax],
    ["rows", rows, 2 * slotsMax * rowsPerSlot + rowsPerQueueMin + merchants],
    ["bytes in rows", rowsBytes, 2 * bytesInFlightMax + (1 + merchants) * pageBytesMax],
    ["unrecorded outcomes", unrecorded, slotsMax * (unrecordedPerSlot + 1)],
  ] as const;
  for (const [what, is, most] of bounds) {
    if (is < 0 || is > most) world.violated(10, `${name} has ${is} ${what}, and ${most} at most are agreed`);
  }
  for (const partnerId of worker.queues.partners().filter((id) => partners.isPaused(id))) {
    const waits = worker.queues.queuesOf(partnerId).find(({ head }) => head !== undefined);
    if (waits !== undefined) world.violated(10, `${name} keeps deliveries of ${partnerId}, which is paused`);
  }
}
