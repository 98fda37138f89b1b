import type { NotifiedCommand } from "@paybell/contract";
import type { ChainId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { IpnFacts } from "../ipn/facts.ts";

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
  /** Its queue of delivery: `queueOf` (registered-url.ts). */
  readonly queue: string;
  readonly facts: IpnFacts;
  /** It is delivered after the earlier ones of its chain. */
  readonly follows: boolean;
  /** A settlement is delivered after the notifications of this batch. */
  readonly settlesBatch: string | null;
  /** `facts` as JSON text: serialized once, sent, and counted by its length. */
  readonly content: string;
}

/** Passes notifications from the ledger to delivery, which implements it. */
export interface Notifier {
  /**
   * The notification is durable, and due since `createdAtMs`. This is a hint: without it the notification is sent
   * later. @param begunMs by the monotonic clock, before it was written: other workers may have found it since then
   */
  notify(notification: NewNotification, createdAtMs: number, begunMs: number): void;
}
