import type { NotificationPage } from "@paybell/partner/client";

/** One notification as it is pulled, sealed. */
export type SealedNotification = NotificationPage["items"][number];

/** The body that a callback would carry: what webhook-signature covers. */
export function bodyOf({ data }: Pick<SealedNotification, "data">): string {
  return JSON.stringify({ data });
}
