import type { Clock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import { readCursor } from "./cursor.ts";
import type { NotificationStore, StoredBacklog } from "./store.ts";
import { isoOrNull, isoTime } from "./view.ts";

const leftMax = 1_000;
const noteEveryMs = 10_000;

/** Notes how far partners have pulled, for the people who look after a catch-up. */
export class PullNotes {
  readonly #store: Pick<NotificationStore, "notePull">;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #noted = new Map<PartnerId, { readonly atMs: number; readonly isAtEnd: boolean }>();

  constructor(store: Pick<NotificationStore, "notePull">, clock: Pick<Clock, "nowMs">) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Notes the cursor that a partner passed: every ten seconds, and when it has reached the end. Never rejects: the page
   * matters more than its note.
   */
  async note(partnerId: PartnerId, cursor: string, isAtEnd: boolean): Promise<void> {
    const noted = this.#noted.get(partnerId);
    const atMs = this.#clock.nowMs();
    const isNews = noted === undefined || noted.isAtEnd !== isAtEnd || atMs - noted.atMs >= noteEveryMs;
    if (!isNews) return;
    this.#noted.set(partnerId, { atMs, isAtEnd });
    await this.#store.notePull(partnerId, cursor).catch(() => void this.#noted.delete(partnerId));
  }
}

export async function backlogOf(store: Pick<NotificationStore, "backlog" | "history" | "page">, partnerId: PartnerId) {
  const { pending, oldestPendingMs, parked, pull } = await store.backlog(partnerId);
  return {
    pending,
    oldestPendingAt: isoOrNull(oldestPendingMs),
    parked,
    pull: pull === null ? null : await progressOf(store, partnerId, pull),
  };
}

async function progressOf(
  store: Pick<NotificationStore, "history" | "page">,
  partnerId: PartnerId,
  { cursor, atMs }: NonNullable<StoredBacklog["pull"]>,
) {
  const history = await store.history(partnerId);
  const at = isoTime(atMs);
  try {
    const { position, asOfMs } = readCursor(cursor, history);
    const left = await store.page(partnerId, position, history.horizon, leftMax);
    return { at, upTo: isoTime(asOfMs), left: left.length, problem: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { at, upTo: null, left: null, problem: error.code };
  }
}
