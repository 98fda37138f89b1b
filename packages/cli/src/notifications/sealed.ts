import type { NotificationDetail, NotificationPage } from "@paybell/partner/client";
import type { Api } from "../api.ts";
import { bodyOf } from "../listen/notification.ts";

/** The POST of a notification, as it would be made now: the input of `paybell open`. */
export interface SealedPost {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const pageItems = 500;
/** Ids and times are made a moment before the commit that orders them. */
const outOfOrderMs = 60_000;

/**
 * Searches the pull API, from the oldest on; undefined if it is no longer stored. @param looked called with the number
 * skipped so far
 */
export async function findSealed(
  api: Api,
  { id, createdAt }: NotificationDetail,
  looked: (count: number) => void,
): Promise<SealedPost | undefined> {
  const untilMs = Date.parse(createdAt) + outOfOrderMs;
  let after: string | undefined;
  let count = 0;
  for (;;) {
    const { items, next } = await api.get<NotificationPage>("/v1/notifications", { after, limit: pageItems });
    const found = items.find((item) => item.id === id);
    if (found !== undefined) return { body: bodyOf(found), headers: found.headers };
    const last = items.at(-1);
    if (last === undefined || Date.parse(last.createdAt) > untilMs) return undefined;
    count += items.length;
    looked(count);
    after = next;
  }
}
