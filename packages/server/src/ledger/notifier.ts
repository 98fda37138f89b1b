import type { NotifiedCommand } from "@paybell/contract";
import type { ChainId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { Instance } from "../instance.ts";
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
  /** The instance that sends it as soon as it is durable; null: it is born due, for any instance. */
  readonly lease: Instance | null;
}

/** How the ledger passes a notification on. Delivery implements it. */
export interface Notifier {
  /**
   * Asks for a slot before the row is written. Undefined when there is none, or when the partner has due work
   * already, which must not be overtaken, or when nothing is to be sent there now: then the notification is born due.
   *
   * @param callBackUrl the command's own; null: the one registered
   */
  reserve(partnerId: PartnerId, bytes: number, callBackUrl: string | null): Slot | undefined;
  /** A notification was left due: whoever has a slot may take it. */
  bornDue(partnerId: PartnerId, callBackUrl: string | null): void;
}

/** A place among the POSTs in flight. Exactly one of its two methods is called, once. */
export interface Slot {
  readonly instance: Instance;
  /** The notification is durable under `instance`: send it. */
  send(notification: NewNotification, createdAtMs: number): void;
  /** Nothing was written: the place is free again. */
  release(): void;
}
