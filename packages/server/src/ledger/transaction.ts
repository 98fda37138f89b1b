import type { Command } from "@paybell/contract";
import type { ChainId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { CardFacts, SettlementFacts } from "../ipn/facts.ts";

/** INIT: the acquirer may be asked, the outcome is not known. The others are final. */
export type TransactionState = "INIT" | "SUCCESS" | "ERROR";

/** A transaction as the ledger holds it. */
export interface Transaction {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  /** Who processed it: this service, or the operator's switch, which only reported it. */
  readonly origin: "command" | "switch";
  readonly command: Command;
  readonly state: TransactionState;
  /** Lower case; null when a switch reported none. */
  readonly reqId: string | null;
  readonly externalId: string | null;
  readonly originalId: TransactionId | null;
  readonly originalExternalId: string | null;
  readonly chainId: ChainId;
  /** The one that the command brought; null: the registered one. */
  readonly callBackUrl: string | null;
  /** In the currency's smallest unit; null where no money is named, or a switch reported it. */
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  /** Whom the acquirer's messages of its chain go to; empty: the acquirer of the settings, or none. */
  readonly acquirer: string;
  /** How the batch stands that it belongs to, or settles; null for a PreAuth, a system command, a switch's report. */
  readonly batch: BatchState | null;
  /** Of its own Reversal. */
  readonly reversal: "pending" | "done" | "parked" | null;
  readonly facts: CardFacts | SettlementFacts | SystemFacts;
  readonly notification: { readonly id: NotificationId; readonly state: NotificationState } | null;
  /** The lease of the process that runs it while it is INIT. */
  readonly runBy: LeaseId | null;
  readonly createdAtMs: number;
  readonly completedAtMs: number | null;
  /** What the issuer answered to the chip: for whoever asked, and stored nowhere. */
  readonly emv?: string;
}

export type BatchState = "open" | "closing" | "closed";

/** Of a system command (Logon, Reversal, Batch Upload), for which no IPN is sent. */
export interface SystemFacts {
  readonly kind: "system";
  readonly fields: Readonly<Record<string, string>>;
}

export type NotificationState = "pending" | "accepted" | "parked";
