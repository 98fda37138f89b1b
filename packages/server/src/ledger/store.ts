import type { Command } from "@paybell/contract";
import type { BatchTotals } from "../acquirer/acquirer.ts";
import type { Refusal } from "../commands/original.ts";
import type { ReportContent } from "../commands/reports/reported-facts.ts";
import type { OriginalState, ReversalState } from "../commands/states.ts";
import type { SystemFacts } from "../commands/system.ts";
import type { TerminalSequence, TerminalState } from "../commands/terminal.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { CardFacts, IpnFacts, SettlementFacts } from "../ipn/facts.ts";
import type { NotificationState } from "../notification.ts";
import type { NewNotification } from "./notifier.ts";

/** INIT: the acquirer may have been asked, and the outcome is unknown. The others are final. */
export type TransactionState = "INIT" | "SUCCESS" | "ERROR";

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
  /** The state of its own Reversal, or done if a switch reported one. */
  readonly reversal: ReversalState | null;
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

/** The ledger's rows. Every method is durable when it resolves, and safe to repeat when it rejects. */
export interface TransactionStore {
  /**
   * Makes a command's INIT durable under its terminal's row lock, with the terminal's next numbers, before the acquirer
   * is asked. Concurrent calls share one commit.
   */
  begin(init: Init): Promise<Begun>;
  /** The command that has begun under this reqId with this body. */
  findBegun(partnerId: PartnerId, reqId: string, bodyHash: Buffer): Promise<TransactionId | undefined>;
  find(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined>;
  findByReqId(partnerId: PartnerId, reqId: string): Promise<Transaction | undefined>;
  /** The transactions of the same chain, in order. */
  chain(transaction: Transaction): Promise<readonly Transaction[]>;
  findReported(partnerId: PartnerId, externalIds: readonly string[]): Promise<ReadonlyMap<string, ReportedOriginal>>;
  /**
   * Notes that a command's message will go to this host of the acquirer, and not to the one noted before. False if the
   * command has ended, or is another instance's: then the message must not leave.
   */
  redirect(partnerId: PartnerId, id: TransactionId, leaseId: LeaseId, site: string): Promise<boolean>;
  /**
   * Takes over, under `leaseId`, commands still INIT whose own lease is gone: they are in doubt. Also a REVERSAL that was
   * not answered in the time of the claim that ended its Reversal.
   */
  takeOver(leaseId: LeaseId, rowsMax: number): Promise<readonly Transaction[]>;
  /** The INITs of a lease, without those that the settler runs. */
  initsOf(leaseId: LeaseId): Promise<readonly Transaction[]>;
  /**
   * Records that a reqId was reversed before it arrived: a command with it is then refused. Resolves to the transaction
   * if it had arrived, otherwise to undefined.
   */
  reverseBeforeArrival(partnerId: PartnerId, reqId: string): Promise<TransactionId | undefined>;
}

/** The only way by which a result, its IPN and the pending delivery become durable: all of them or none. */
export interface CompletionStore {
  /**
   * Completes a command. Applies only while the row is INIT under the same lease; otherwise another instance took the
   * command over, and this result is late.
   */
  complete(completion: Completion): Promise<Completed>;
  /** The same for a command that a switch already completed: the transaction is inserted with its result. */
  report(report: ReportedCompletion): Promise<Reported>;
  /**
   * Creates the notification of a report that waited, due immediately.
   *
   * @returns the time of the transaction, in milliseconds since 1970; undefined if another instance was faster: then
   * nothing is changed
   */
  release(release: Release): Promise<number | undefined>;
}

export type Completed = { readonly outcome: "completed"; readonly atMs: number } | { readonly outcome: "late" };

export interface Init
  extends Pick<Transaction, "partnerId" | "id" | "command" | "chainId" | "callBackUrl" | "amountMinor" | "currency"> {
  readonly leaseId: LeaseId;
  readonly reqId: string;
  /** HMAC-SHA256 of the request's RFC 8785 form: requests with the same one have the same body. */
  readonly bodyHash: Buffer;
  /** The original: its row is locked, checked by `refusal`, and held by this command until it ends. */
  readonly originalId: TransactionId | null;
  /** Empty for the Reversal of a command that has not arrived: it has no terminal. */
  readonly tid: string;
  readonly mid: string;
  /** Whether an unknown terminal is created by this command. */
  readonly openTerminals: boolean;
  /** In the sandbox: a terminal that another partner used first, without registration, is not refused. */
  readonly sharesTerminals: boolean;
  /** The number of terminals that the partner's commands may claim. */
  readonly claimsMax: number;
  readonly takes: {
    /** A Reversal keeps its original's. */
    readonly traceNo: boolean;
    readonly invoiceNo: boolean;
    /** Whether it belongs to the terminal's open batch. */
    readonly batch: boolean;
    /** It closes or uploads the batch: a settlement row is inserted, which any instance can continue. */
    readonly settlement: "SETTLEMENT" | "BATCH_UPLOAD" | null;
  };
  /** The acquirer of its original, or the one assumed for its terminal: checked again under the terminal's lock. */
  readonly acquirer: string;
  /** The acquirer's host to which its message will go; null: not known yet. */
  readonly site: string | null;
  /** For a Sale or PreAuth whose acquirer wants its card in follow-up messages. */
  readonly sealedCard: Buffer | null;
  /** Checks the locked state; undefined: the command may run. An unknown terminal is passed as undefined. */
  refusal(terminal: TerminalState | undefined, original: OriginalState | undefined): Refusal | undefined;
  /** Makes the facts from the terminal's numbers, and the merchant registered for it. */
  facts(terminal: TerminalSequence): IpnFacts | SystemFacts;
}

export type Begun =
  | { readonly outcome: "begun"; readonly facts: IpnFacts | SystemFacts; readonly createdAtMs: number }
  /** The reqId was used before. With the same body it is a repetition, with another one it is refused. */
  | { readonly outcome: "repeated"; readonly sameBody: boolean; readonly id: TransactionId }
  | { readonly outcome: "reversed_before_arrival" }
  /** The state forbids it; no number was used. */
  | { readonly outcome: "refused"; readonly refusal: Refusal }
  /** The terminal has another acquirer than it was taken to have, or the original's was removed; nothing was used up. */
  | { readonly outcome: "rerouted" }
  | { readonly outcome: "terminal_unknown" }
  /** It would be the first command on a terminal that the acquirer, which pads with spaces, takes for another one. */
  | { readonly outcome: "terminal_padded"; readonly field: "tid" | "mid" }
  | { readonly outcome: "terminal_taken" }
  /** It would be the partner's first command on one terminal too many. */
  | { readonly outcome: "terminal_quota" };

export interface Completion {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly leaseId: LeaseId;
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: IpnFacts | SystemFacts;
  /** The part of its amount that was approved; absent: the amount is unchanged. */
  readonly amountMinor?: bigint;
  readonly notification: NewNotification | null;
  /** The new state of the original that this command held. */
  readonly original: { readonly id: TransactionId; readonly becomes: "done" | "free" | "in_doubt" } | null;
  /** The money may have moved, and must not have: a Reversal is queued in the same transaction. */
  readonly reversal: { readonly tid: string; readonly requestedBy: TransactionId | null } | null;
  readonly batch: BatchEnd | null;
}

/** The effect of a settlement, or a Batch Upload, on its terminal's batch. */
export interface BatchEnd {
  readonly tid: string;
  readonly batchId: string;
  /**
   * `open`: refused, and open again under the same number. `unchanged`: it was only uploaded. `reported`: the acquirer
   * had settled it before, and it was closed then.
   */
  readonly becomes: "closed" | "open" | "unchanged" | "reported";
  readonly totals: BatchTotals;
}

export interface ReportedCompletion {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly externalId: string;
  readonly originalExternalId: string | null;
  readonly originalId: TransactionId | null;
  readonly chainId: ChainId;
  readonly callBackUrl: string | null;
  readonly command: Command;
  readonly state: "SUCCESS" | "ERROR";
  readonly reqId: string | null;
  /** The batch that the switch assigned it to, or settled with it; null: none was named. */
  readonly batchId: string | null;
  readonly facts: IpnFacts | SystemFacts;
  readonly notification: NewNotification | null;
  /** Its notification id is fixed now, and `release` creates the notification. */
  readonly waitsForOriginal?: boolean;
}

/** The facts of a report that waited for its original. */
export interface Release {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly originalId: TransactionId | null;
  readonly chainId: ChainId;
  readonly batchId: string | null;
  readonly facts: IpnFacts;
  readonly notification: NewNotification;
}

export type Reported =
  | { readonly outcome: "accepted"; readonly id: TransactionId; readonly atMs: number }
  /** Its externalId was reported before: identical, or with other content. */
  | { readonly outcome: "known"; readonly id: TransactionId; readonly before: ReportContent }
  /** The switch's id belongs to another transaction. */
  | { readonly outcome: "id_taken" };

export interface ReportedOriginal {
  readonly id: TransactionId;
  readonly chainId: ChainId;
  readonly command: Command;
  /** In lower case; null: none was reported. */
  readonly reqId: string | null;
  /** The switch's batch; null: none was named. */
  readonly batchId: string | null;
}
