import type { Arrivals } from "../delivery/arrivals.ts";
import type { Dispatcher } from "../delivery/dispatcher.ts";
import type { Claimed } from "../delivery/store.ts";
import type { NewNotification, Notifier } from "../ledger/notifier.ts";

/**
 * What the ledger passes on becomes what delivery sends, without a look into the database, and wakes whoever waits
 * to pull it.
 */
export function handOver(dispatcher: Dispatcher, arrivals: Pick<Arrivals, "wrote">): Notifier {
  return {
    reserve(partnerId, bytes, callBackUrl) {
      const place = dispatcher.reserve(partnerId, bytes, callBackUrl);
      if (place === undefined) return undefined;
      return {
        instance: place.instance,
        send: (notification, createdAtMs) => {
          place.send(bornClaimed(notification, createdAtMs));
          arrivals.wrote(partnerId);
        },
        release: place.release,
      };
    },
    bornDue: (partnerId, callBackUrl) => {
      dispatcher.bornDue(partnerId, callBackUrl);
      arrivals.wrote(partnerId);
    },
  };
}

/** A row that is born leased has its first claim already. */
function bornClaimed(notification: NewNotification, createdAtMs: number): Claimed {
  const { partnerId, id, transactionId, originalId, chainId, command, content, callBackUrl } = notification;
  return {
    partnerId,
    id,
    transactionId,
    originalId,
    chainId,
    command,
    content,
    callBackUrl,
    toRegistered: false,
    claimNo: 1,
    attemptsMade: 0,
    scheduleStartMs: createdAtMs,
    outOfOrder: false,
    isProbe: false,
  };
}
