/**
 * The link to the acquirer bank: what the ledger asks, and what may come back. An implementation owns its connection,
 * its message format and its repeats on the wire; the ledger owns what an answer, or its absence, means for the money.
 */
export interface Acquirer {
  /**
   * Which response codes are approvals. `00` always is; some hosts also approve with 08, 10, 11 or 16, which the
   * ledger reverses.
   */
  readonly approvals: ReadonlySet<string>;
  /**
   * Asks the acquirer and waits for its answer, for at most `timeoutMs`.
   * Rejects with {@link NoAnswer} when none came in time or the link broke after the message may have left;
   * with {@link NotSent} when the message certainly never left.
   * An answer that comes after the time-out goes to `onLateAnswer`, once.
   */
  ask(message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer>;
  /** Why `token` cannot be used with this acquirer, or undefined when it can: asked before anything is made durable. */
  refusesToken(token: string): string | undefined;
  /** Messages after a transaction's first want its card again: it is kept for them, sealed, while they may come. */
  readonly wantsCards?: boolean;
  /** Whether it can be asked now; an acquirer without it always can. */
  health?(): AcquirerHealth;
  /** Tells from now on of answers that nobody here waits for: another process may have asked, and be gone. */
  onUnmatchedAnswer?(listener: (answer: UnmatchedAnswer) => void): void;
  /** Another instance was sent a new key of the MACs, which is kept. */
  rereadKey?(): Promise<void>;
  close(): Promise<void>;
}

/** An answer to a Sale, PreAuth, PreAuth-Complete or Void, by what it repeats of its message. */
export interface UnmatchedAnswer {
  readonly tid: string;
  readonly mid: string;
  readonly traceNo: string;
  readonly responseCode: string;
  /** Whether it can be that of such a message of this time; `atMs` as in the message's header. */
  mayAnswer(command: string, atMs: number): boolean;
}

export interface AcquirerHealth {
  readonly ok: boolean;
  /** In words, for the operator: which host, since when, or why not. */
  readonly detail: string;
}

export interface AskOptions {
  readonly timeoutMs: number;
  readonly onLateAnswer: (answer: AcquirerAnswer) => void;
}

interface MessageHeader {
  /** The transaction this message belongs to. The same message again has the same one. */
  readonly transactionId: string;
  readonly tid: string;
  readonly mid: string;
  /** Six digits; a Reversal carries its original's. ISO 8583 field 11. */
  readonly traceNo: string;
  /**
   * The creation time of the message, in UTC milliseconds: its transmission time (fields 7, 12, 13). A repeat has the
   * same one, whichever process sends it.
   */
  readonly atMs: number;
  /** It was sent before and not answered: the acquirer must not act twice (ISO 8583: a repeat). */
  readonly repeat: boolean;
}

export type AcquirerMessage =
  | AuthorisationMessage
  | PreAuthCompleteMessage
  | RefundMessage
  | VoidMessage
  | ReversalMessage
  | SettlementMessage
  | BatchUploadMessage
  | LogonMessage;

interface Money {
  /** In the currency's smallest unit. */
  readonly amountMinor: bigint;
  readonly currency: string;
}

/** The card as its Sale or PreAuth brought it. Never logged; stored sealed alone, where the acquirer wants it again. */
export interface Card {
  /** Represents the card's number (field 2, or where the host expects the token). */
  readonly cardToken: string;
  /** As given: how the card was read (field 22). */
  readonly swipeType: string;
  /** As given, or empty (field 14). */
  readonly expDate: string;
}

/** Data that the POS read and encrypted for the acquirer; each is empty if missing. Never stored, never logged. */
interface Chip {
  /** Field 23. */
  readonly sequenceNumber: string;
  /** Field 35, in hexadecimal. */
  readonly track2: string;
  /** Field 52, in hexadecimal. */
  readonly pinBlock: string;
  /** Field 55, in hexadecimal. */
  readonly emv: string;
}

export interface AuthorisationMessage extends MessageHeader, Money, Card, Partial<Chip> {
  readonly command: "SALE" | "PREAUTH";
  readonly invoiceNo: string;
  /** Empty for a PreAuth, which belongs to no batch. */
  readonly batchNo: string;
}

/**
 * How an acquirer knows an earlier message of the same terminal again: by its id where it keeps that, else by the
 * elements that the message itself had (field 90), or by those of its answer.
 */
export interface OriginalReference {
  readonly transactionId: string;
  /** It gives the message type and the processing code (field 3). */
  readonly command: "SALE" | "PREAUTH" | "PREAUTH_COMPLETE" | "REFUND" | "VOID";
  /** Where it was sent: a PreAuth-Complete and a Refund may come from another terminal of the same merchant. */
  readonly tid: string;
  readonly traceNo: string;
  /** Its transmission time. */
  readonly atMs: number;
  /** Field 38; empty where none was answered. */
  readonly approveCode: string;
  /** Field 37; empty where none was answered. */
  readonly refId: string;
}

export interface PreAuthCompleteMessage extends MessageHeader, Money, Partial<Card> {
  readonly command: "PREAUTH_COMPLETE";
  readonly invoiceNo: string;
  readonly batchNo: string;
  readonly original: OriginalReference;
}

/** Gives back a part of a settled Sale or PreAuth-Complete, or all of it. It counts in the batch then open. */
export interface RefundMessage extends MessageHeader, Money, Partial<Card> {
  readonly command: "REFUND";
  readonly invoiceNo: string;
  readonly batchNo: string;
  readonly original: OriginalReference;
}

/** Takes back a Sale or a PreAuth-Complete of the open batch, or a PreAuth. The amount is the original's. */
export interface VoidMessage extends MessageHeader, Money, Partial<Card> {
  readonly command: "VOID";
  readonly invoiceNo: string;
  /** Empty for a PreAuth's. */
  readonly batchNo: string;
  readonly original: OriginalReference;
}

/**
 * Reverses one message whose outcome is unknown or invalid. Answered 00 if it was reversed, 25 if the acquirer never
 * saw it. In either case nothing is charged, also if the message itself arrives later.
 */
export interface ReversalMessage extends MessageHeader, Money, Partial<Card> {
  readonly command: "REVERSAL";
  /** Its original's. */
  readonly invoiceNo: string;
  /** Its original's; empty for what belongs to no batch. */
  readonly batchNo: string;
  readonly original: OriginalReference;
}

/** The totals of a terminal's batch by each side's own count: the acquirer answers 95 if its own differ. */
export interface BatchTotals {
  /** Empty where the batch is: nothing in it has one. */
  readonly currency: string;
  readonly saleQuantity: number;
  readonly saleTotalMinor: bigint;
  readonly voidQuantity: number;
  readonly voidTotalMinor: bigint;
  /** Hosts count Refunds; the settlement IPN has no field for them. */
  readonly refundQuantity: number;
  readonly refundTotalMinor: bigint;
}

export interface SettlementMessage extends MessageHeader {
  readonly command: "SETTLEMENT";
  readonly batchNo: string;
  readonly totals: BatchTotals;
  /** The batch was uploaded after a mismatch: the acquirer settles by what was uploaded. */
  readonly afterUpload: boolean;
}

/** One transaction of a batch, as our ledger holds it. */
export interface BatchUploadMessage extends MessageHeader, Money, Partial<Card> {
  readonly command: "BATCH_UPLOAD";
  readonly batchNo: string;
  readonly invoiceNo: string;
  readonly uploaded: OriginalReference & { readonly command: "SALE" | "PREAUTH_COMPLETE" | "REFUND" };
  /** It was voided: it counts on both sides. */
  readonly voided: boolean;
}

export interface LogonMessage extends MessageHeader {
  readonly command: "LOGON";
}

export interface AcquirerAnswer {
  /** ISO 8583 field 39. */
  readonly responseCode: string;
  readonly approveCode: string;
  readonly refId: string;
  /** TC of the chip, where the acquirer returns one. */
  readonly tc: string;
  /** The issuer's answer to the chip (field 55: ARPC, scripts), for the POS only: never stored. */
  readonly emv?: string;
  /** Of a Settlement, where the acquirer says it: the day on which the money moves, as given (field 15: MMDD). */
  readonly settlementDate?: string;
  /** Of a Settlement, where the acquirer says it: what the batch comes to by its own count, by field, as given. */
  readonly ownTotals?: Readonly<Record<string, string>>;
}

/** The acquirer was asked, or may have been, and no answer is known: the command is in doubt. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** The message certainly did not leave: nothing can have been charged. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}
