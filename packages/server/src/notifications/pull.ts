import { setImmediate as nextTurn } from "node:timers/promises";
import type { IpnKind } from "@paybell/contract";
import type { Clock } from "../clock.ts";
import type { ContentMac } from "../delivery/content-mac.ts";
import { dataOf, type Envelope, makeEnvelope, originalReqIdFor, type ReqIdOf } from "../delivery/envelope.ts";
import { ServiceError } from "../errors.ts";
import { idTimeMs, type NotificationId, type PartnerId } from "../ids.ts";
import type { NotificationState } from "../notification-state.ts";
import type { Partner } from "../partners/partner.ts";
import type { SealBudget } from "../partners/seal-budget.ts";
import { callbackUrlOf } from "../registered-url.ts";
import { type Cursor, firstId, type HistoryPoint, readCursor, writeCursor } from "./cursor.ts";
import type { NotificationContent, NotificationStore, PageRow } from "./store.ts";
import { isoTime, kindOf } from "./view.ts";

/** One notification as it would be POSTed now. */
export interface PulledNotification {
  readonly id: NotificationId;
  readonly createdAt: string;
  readonly kind: IpnKind;
  readonly state: NotificationState;
  /** The sealed IPN: section 2.1. */
  readonly data: string;
  /** The headers of the POST, with the signature over its body. */
  readonly headers: Readonly<Record<string, string>>;
}

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
    const originalReqId = await originalReqIdFor(partner, notification.originalId, reqIdOf);
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
/** Sealed content after which other work has a turn. */
const bytesPerTurn = 32 * 1024;
/** The JSON around an item's data: its other keys, and the headers. */
const itemBytes = 1_024;
// Ids are created shortly before they are committed, so a later notification may be slightly older.
const commitDelayMs = 60_000;
const shareBytes = 4 * 1024 * 1024;
/** Rows that arrived are parsed in one turn of the event loop. */
const shareRows = 100;
// Larger contents are stored compressed, so their size is known only when they are read.
const storedPlainBytes = 2_000;
const compressionGuess = 4;

export interface PullOptions {
  /** `next` of the previous page, or `now`: nothing that is settled already. Absent: from the beginning. */
  readonly after?: string | undefined;
  readonly limit: number;
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
  { after, limit }: PullOptions,
): Promise<Pulled> {
  const history = await store.history(partner.id);
  const cursor = after === undefined || after === "now" ? undefined : readCursor(after, history);
  // The cursor is ahead of everything ever committed here: the database was set back by copying its files.
  if (cursor !== undefined && cursor.position.xid > history.horizon) {
    throw new ServiceError("cursor_from_another_history");
  }
  const rowsMax = Math.min(Math.max(1, limit), pullRowsMax);
  // Transactions in progress have the horizon's id or a higher one, and are shown once they are settled.
  const rows = after === "now" ? [] : await store.page(partner.id, cursor?.position, history.horizon, rowsMax);

  const items: PulledNotification[] = [];
  let seen: PageRow | undefined;
  let bytes = 0;
  let turnBytes = 0;
  const endingAt = (place: Cursor) => {
    return { page: { items, next: writeCursor(place, history.cluster) }, end: place.position };
  };
  for (const share of sharesOf(rows)) {
    const contents = await store.contents(partner.id, idsOf(share));
    for (const row of share) {
      const content = contents.get(row.id);
      if (turnBytes >= bytesPerTurn) {
        await nextTurn();
        turnBytes = 0;
      }
      // Without content: it was dropped since the page was read, because its retention is over. One that somebody
      // changed is left out, because the partner's others must not wait for it.
      const item = content && (await pulled(seal, partner, content));
      bytes += item ? item.data.length + itemBytes : 0;
      turnBytes += item?.data.length ?? 0;
      if (seen && bytes > pullBytesMax) return endingAt(positionAfter(seen, history.keptFromMs));
      if (item) items.push(item);
      seen = row;
    }
  }
  if (seen && rows.length === rowsMax) return endingAt(positionAfter(seen, history.keptFromMs));
  // Everything settled was seen. Later notifications have the horizon's transaction id or a higher one.
  return endingAt({ position: { xid: history.horizon, id: firstId }, asOfMs: history.nowMs });
}

async function pulled(
  seal: Seal,
  partner: Partner,
  content: NotificationContent,
): Promise<PulledNotification | undefined> {
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

/** The cursor after this row, whose id contains about when it was committed. */
export function positionAfter(row: HistoryPoint, keptFromMs: number): Cursor {
  // A restored notification may be older than the oldest day kept. Its position then counts as that of the oldest day.
  const asOfMs = Math.max(keptFromMs, idTimeMs(row.id) - commitDelayMs);
  return { position: { xid: row.xid, id: row.id }, asOfMs };
}
