import { Restores } from "../backups/restores.ts";
import { systemClock } from "../clock.ts";
import type { EventSink } from "../events.ts";
import type { Database } from "../store/database/database.ts";
import { PostgresRestores } from "../store/restores.ts";

/** Holds what was pending in a database that was restored from a backup, before anything can be sent. */
export async function holdRestored(database: Database, events: EventSink): Promise<Restores> {
  const store = new PostgresRestores(database);
  const restore = await store.holdMarked(systemClock.nowMs());
  if (restore !== undefined) {
    const { name, held, endsAtMs } = restore;
    const endsAt = endsAtMs === null ? null : new Date(endsAtMs).toISOString();
    events.record({ kind: "restored", partnerId: null, subjectId: null, detail: { name, held, endsAt } });
  }
  return new Restores(store);
}
