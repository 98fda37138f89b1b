import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../clock.ts";
import type { ContentMac } from "../delivery/attempt/content-mac.ts";
import { dataOf, type Envelope, makeEnvelope, originalReqIdFor, type ReqIdOf } from "../delivery/attempt/envelope.ts";
import { ServiceError } from "../errors.ts";
import { type NotificationId, nilId, type PartnerId } from "../ids.ts";
import { callbackUrlOf } from "../notification.ts";
import type { Partner } from "../partners/partner.ts";
import type { SealBudget } from "../partners/seal-budget.ts";
import { type Cursor, positionAfter, readCursor, writeCursor } from "./cursor.ts";
import type { HistoryPoint, NotificationContent, NotificationStore, PageRow, StoredBacklog } from "./store.ts";
import { isoOrNull, isoTime, kindOf } from "./view.ts";

/** One notification as it would be POSTed now. */
type PulledNotification = NonNullable<Awaited<ReturnType<typeof pulled>>>;

export interface PulledPage {
  readonly items: readonly PulledNotification[];
  /** Always present: after the last page it waits for the next notification. */
  readonly next: string;
}

/**
 * Seals as an attempt would now. Rejects with `content_changed` if it is not as it was committed. `callBackUrl` is the
 * URL that an attempt would use, empty if there is none.
 */
export type Seal = (
  partner: Partner,
  notification: NotificationContent,
  callBackUrl: string,
) => Promise<Omit<Envelope, "keyId">>;

/** The sealer of attempts: each item counts against its key like a POSTed one. */
export function sealing(
  seals: Pick<SealBudget, "spend">,
  contents: Pick<ContentMac, "isAsCommitted">,
  clock: Pick<Clock, "nowMs">,
  reqIdOf: ReqIdOf,
): Seal {
  return async (partner, notification, callbackUrl) => {
    requireAsCommitted(contents, partner.id, notification);
    await seals.spend(partner.id, partner.keys.encryption.id);
    const originalReqId = await originalReqIdFor(partner, notification, reqIdOf);
    return makeEnvelope(notification.content, partner, {
      notificationId: notification.id,
      command: notification.command,
      originalId: notification.originalId,
      ...(originalReqId !== undefined && { originalReqId }),
      attemptNo: notification.attemptsMade + 1,
      callbackUrl,
      outOfOrder: false,
      nowMs: clock.nowMs(),
    });
  };
}

/** @throws ServiceError `content_changed` */
export function requireAsCommitted(
  contents: Pick<ContentMac, "isAsCommitted">,
  partnerId: PartnerId,
  { mac, ...stored }: NotificationContent,
): void {
  if (!contents.isAsCommitted({ partnerId, ...stored }, mac)) throw new ServiceError("content_changed");
}

const pullRowsMax = 500;
const pullBytesMax = 8 * 1024 * 1024;
/** Sealed content after which other work has a turn: a millisecond. */
const bytesPerTurn = 32 * 1024;
/** What so much costs at most: a part that took longer was suspended, because the machine had other work. */
const partMsMax = 2;
/** The JSON around an item's data: its other keys, and the headers. */
const itemBytes = 1_024;
const shareBytes = 4 * 1024 * 1024;
/** Rows that arrived are parsed in one turn of the event loop. */
const shareRows = 100;
// Larger contents are stored compressed, so their size is known only when they are read.
const storedPlainBytes = 2_000;
const compressionGuess = 4;

export interface PullOptions {
  /** `next` of the previous page, or `now`: nothing that is visible already. Absent: from the beginning. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** Called after each part of the page, which took `spentMs`. Default: the next part is made in the next turn. */
  readonly pause?: ((spentMs: number) => Promise<unknown>) | undefined;
}

/** A page and its end: the next page begins there. */
export interface Pulled {
  readonly page: PulledPage;
  readonly end: HistoryPoint;
}

/** Reads one page in commit order, bounded in rows and bytes. An item larger than the bound is a page of its own. */
export async function pullPage(
  store: NotificationStore,
  seal: Seal,
  partner: Partner,
  { after, limit, pause = () => nextTurn() }: PullOptions,
): Promise<Pulled> {
  const history = await store.history(partner.id);
  const cursor = after === undefined || after === "now" ? undefined : readCursor(after, history);
  // The cursor is ahead of everything ever committed here: the database was set back by copying its files.
  if (cursor !== undefined && cursor.position.xid > history.horizon) {
    throw new ServiceError("cursor_from_another_history");
  }
  const rowsMax = Math.min(Math.max(1, limit), pullRowsMax);
  // Transactions in progress have the horizon's id or a higher one, and are shown once they have ended.
  const rows = after === "now" ? [] : await store.page(partner.id, cursor?.position, history.horizon, rowsMax);

  const items: PulledNotification[] = [];
  let seen: PageRow | undefined;
  let bytes = 0;
  let partBytes = 0;
  const endingAt = (place: Cursor) => {
    return { page: { items, next: writeCursor(place, history.cluster) }, end: place.position };
  };
  for (const share of sharesOf(rows)) {
    const contents = await store.contents(partner.id, idsOf(share));
    let beganMs = performance.now();
    for (const row of share) {
      const content = contents.get(row.id);
      if (partBytes >= bytesPerTurn) {
        await pause(Math.min(performance.now() - beganMs, (partBytes / bytesPerTurn) * partMsMax));
        beganMs = performance.now();
        partBytes = 0;
      }
      // Without content: it was dropped since the page was read, because its retention is over. One that somebody
      // changed is left out, because the partner's others must not wait for it.
      const item = content && (await pulled(seal, partner, content));
      if (item) {
        bytes += item.data.length + itemBytes;
        partBytes += item.data.length;
        if (seen && items.length > 0 && bytes > pullBytesMax) return endingAt(positionAfter(seen, history.keptFromMs));
        items.push(item);
      }
      seen = row;
    }
  }
  if (seen && rows.length === rowsMax) {
    const { page, end } = endingAt(positionAfter(seen, history.keptFromMs));
    // A page without items says that nothing follows.
    return items.length > 0 ? { page, end } : pullPage(store, seal, partner, { after: page.next, limit, pause });
  }
  // Everything visible was seen. Later notifications have the horizon's transaction id or a higher one.
  return endingAt({ position: { xid: history.horizon, id: nilId }, asOfMs: history.nowMs });
}

async function pulled(seal: Seal, partner: Partner, content: NotificationContent) {
  const url = callbackUrlOf(content, partner.settings) ?? "";
  const sealed = await seal(partner, content, url).catch((error: unknown) => {
    if (error instanceof ServiceError && error.code === "content_changed") return undefined;
    throw error;
  });
  if (sealed === undefined) return undefined;
  const { headers, body } = sealed;
  return {
    id: content.id,
    createdAt: isoTime(content.createdAtMs),
    kind: kindOf(content.command),
    state: content.state,
    data: dataOf(body),
    headers,
  };
}

/** Splits a page into shares that are read one after the other, so that a large page is never in memory as a whole. */
function* sharesOf(rows: readonly PageRow[]): Generator<readonly PageRow[]> {
  let share: PageRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    share.push(row);
    bytes += row.storedBytes < storedPlainBytes ? row.storedBytes : row.storedBytes * compressionGuess;
    if (bytes < shareBytes && share.length < shareRows) continue;
    yield share;
    share = [];
    bytes = 0;
  }
  if (share.length > 0) yield share;
}

function idsOf(rows: readonly PageRow[]): NotificationId[] {
  return rows.map((row) => row.id);
}

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
