import type { Command } from "@paybell/contract";
import type { SystemFacts } from "../commands/system.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { CardFacts, SettlementFacts } from "../ipn/facts.ts";
import type { NotificationState } from "../notification.ts";

/** INIT: the acquirer may have been asked, and the outcome is unknown. The others are final. */
export type TransactionState = "INIT" | "SUCCESS" | "ERROR";

/** A transaction in the ledger. */
export interface Transaction {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  /** This service processed it, or the operator's switch, which only reported it. */
  readonly origin: "command" | "switch";
  readonly command: Command;
  readonly state: TransactionState;
  /** Lower case; null if a switch reported none. */
  readonly reqId: string | null;
  readonly externalId: string | null;
  readonly originalId: TransactionId | null;
  readonly originalExternalId: string | null;
  readonly chainId: ChainId;
  /** The command's own URL; null: the registered one. */
  readonly callBackUrl: string | null;
  /** In the currency's smallest unit; null without an amount, or if a switch reported it. */
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  /** The acquirer of its chain; empty: that of the settings, or none. */
  readonly acquirer: string;
  /** The acquirer's host to which its message went, or was about to go; null: not known. */
  readonly site: string | null;
  /** The state of its batch, or of the batch it settles; null for a PreAuth, a system command, a switch's report. */
  readonly batch: BatchState | null;
  /** The state of its own Reversal. */
  readonly reversal: "pending" | "done" | "parked" | null;
  readonly facts: CardFacts | SettlementFacts | SystemFacts;
  readonly notification: { readonly id: NotificationId; readonly state: NotificationState } | null;
  /** The lease of the process that runs it while it is INIT. */
  readonly runBy: LeaseId | null;
  readonly createdAtMs: number;
  readonly completedAtMs: number | null;
  /** The issuer's answer to the chip: returned to the caller, and never stored. */
  readonly emv?: string;
}

export type BatchState = "open" | "closing" | "closed";
