import type { NotifiedCommand } from "@paybell/contract";
import { type ChainId, type NotificationId, newId, type PartnerId, type TransactionId } from "../ids.ts";
import type { IpnFacts } from "../ipn/facts.ts";
import { queueOf, type RegisteredUrls } from "../notification.ts";
import type { PartnerSettings } from "../partners/partner.ts";

/** A new notification, created in the same transaction as its result. */
export interface NewNotification {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  readonly transactionId: TransactionId;
  readonly originalId: TransactionId | null;
  /** Set if the original is known only by the switch's id: it is looked up when the notification is delivered. */
  readonly originalExternalId: string | null;
  readonly chainId: ChainId;
  readonly command: NotifiedCommand;
  /** The command's own callBackUrl; null: one that is registered. */
  readonly callBackUrl: string | null;
  /** Its queue of delivery: `queueOf` (notification.ts). */
  readonly queue: string;
  readonly facts: IpnFacts;
  /** It is delivered after the earlier ones of its chain. */
  readonly follows: boolean;
  /** A settlement is delivered after the notifications of this batch. */
  readonly settlesBatch: string | null;
  /** `facts` as JSON text: serialized once, sent, and counted by its length. */
  readonly content: string;
}

/** The transaction that a notification tells of. */
export interface Notified
  extends Pick<NewNotification, "partnerId" | "transactionId" | "originalId" | "originalExternalId" | "chainId"> {
  /** Given where it is stored before the notification is made. */
  readonly id?: NotificationId;
  readonly callBackUrl: string | null;
  readonly facts: IpnFacts;
  /** The batch that a settlement closes. */
  readonly batchId: string | null;
}

/**
 * Makes the notification of a command, a report, or a report that waited for its original. A partner with the ordering
 * `none` has nothing wait for anything.
 *
 * @param settings undefined: the partner is not loaded, which changes the queue, and delivery finds it anyway
 */
export function notificationOf(
  { id = newId<"notification">(), batchId, ...notified }: Notified,
  settings: (RegisteredUrls & { readonly ordering: PartnerSettings["ordering"] }) | undefined,
): NewNotification {
  const { callBackUrl, originalId, originalExternalId, facts } = notified;
  const { command } = facts;
  const isOrdered = settings?.ordering !== "none";
  return {
    ...notified,
    id,
    originalExternalId: originalId === null ? originalExternalId : null,
    command,
    queue: queueOf({ callBackUrl, command }, settings),
    follows: isOrdered && (originalId !== null || originalExternalId !== null),
    settlesBatch: isOrdered && facts.kind === "settlement" ? batchId : null,
    content: JSON.stringify(facts),
  };
}

/** Passes notifications from the ledger to delivery, which implements it. */
export interface Notifier {
  /**
   * The notification is durable, and due since `createdAtMs`. This is a hint: without it the notification is sent
   * later. @param begunMs by the monotonic clock, before it was written: other workers may have found it since then
   */
  notify(notification: NewNotification, createdAtMs: number, begunMs: number): void;
}
