import type { Delivery } from "../delivery/delivery.ts";
import type { Hints } from "../delivery/hints.ts";
import type { NewNotification, Notifier } from "../ledger/notifier.ts";
import type { LongPolls } from "../notifications/long-polls.ts";
import type { Traces } from "../tracing/traces.ts";

/** Passes durable notifications of the ledger to delivery, without reading the database, and to waiting pulls. */
export function deliveryNotifier(
  hints: Pick<Hints, "offer" | "due">,
  arrivals: Pick<LongPolls, "notify">,
  traces?: Pick<Traces, "notified">,
): Notifier {
  return {
    notify(notification, createdAtMs, begunMs) {
      traces?.notified(notification);
      const { partnerId, queue, originalId, originalExternalId } = notification;
      // Its original is looked up when it is read from the database.
      if (originalId === null && originalExternalId !== null) hints.due({ partnerId, queue });
      else hints.offer(toDelivery(notification, createdAtMs), begunMs);
      arrivals.notify(partnerId);
    },
  };
}

function toDelivery(notification: NewNotification, createdAtMs: number): Delivery {
  const { partnerId, id, transactionId, originalId, chainId, command, callBackUrl, queue, content } = notification;
  return {
    partnerId,
    id,
    queue,
    round: 0,
    attemptsMade: 0,
    attemptsBefore: 0,
    scheduleStartMs: createdAtMs,
    chainId,
    follows: notification.follows,
    settlesBatch: notification.settlesBatch,
    toRegistered: false,
    transactionId,
    originalId,
    command,
    callBackUrl,
    content,
    bytes: Buffer.byteLength(content),
  };
}
