import type { NotifiedCommand } from "@paybell/contract";
import type { ChainId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { IpnFacts } from "../ipn/facts.ts";

/** A notification as it comes into being, in the same transaction as the result that it tells. */
export interface NewNotification {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  readonly transactionId: TransactionId;
  readonly originalId: TransactionId | null;
  /** Set when the original is known by the switch's id alone: looked up when the notification leaves. */
  readonly originalExternalId: string | null;
  readonly chainId: ChainId;
  readonly command: NotifiedCommand;
  /** The command's own callBackUrl; null: the one registered. */
  readonly callBackUrl: string | null;
  readonly facts: IpnFacts;
  /** It leaves after the earlier ones of its chain. */
  readonly follows: boolean;
  /** A settlement leaves after the notifications of this batch. */
  readonly settlesBatch: string | null;
  /** `facts` as JSON text: written once, sent and counted by its length. */
  readonly content: string;
}

/** How the ledger passes a notification on. Delivery implements it. */
export interface Notifier {
  /**
   * The notification is durable, and due since `createdAtMs`. A hint: one that is not told of leaves later.
   *
   * @param begunMs by the monotonic clock, before it was written: others may have found it since then
   */
  notify(notification: NewNotification, createdAtMs: number, begunMs: number): void;
}
