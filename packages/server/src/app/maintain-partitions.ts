import type { EventSink } from "../events.ts";
import type { Log } from "../log.ts";
import type { Partitions } from "../store/schema/partitions.ts";

const daysAheadMin = 3;

/**
 * Creates missing days of history, drops those past retention, and reports failures to the operator. Rejects if there
 * is no partition for today.
 */
export async function maintainPartitions(
  partitions: Pick<Partitions, "maintain">,
  events: EventSink,
  log: Log,
): Promise<void> {
  const { created, dropped, waiting, troubles, daysAhead, prolonged } = await partitions.maintain();
  for (const trouble of troubles) log.error({ err: trouble }, "a day of history could not be made; it is tried again");
  if (created + dropped > 0) log.info({ created, dropped, daysAhead }, "history maintained");
  if (prolonged !== undefined) {
    const { days, scheduleDays } = prolonged;
    log.error(
      prolonged,
      `a partner's retry schedule lasts ${scheduleDays} days, so history is kept for ${days}. ` +
        `Set PAYBELL_HISTORY_DAYS to at least ${days}, or shorten the schedule`,
    );
  }
  const about = { partnerId: null, subjectId: null };
  if (daysAhead < daysAheadMin) events.record({ kind: "partitions_short", ...about, detail: { daysAhead } });
  if (waiting.length > 0 || prolonged !== undefined) {
    events.record({ kind: "history_waiting", ...about, detail: { waiting, keptDays: prolonged?.days } });
  }
}
