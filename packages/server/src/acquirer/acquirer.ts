import type { CardCommand, ChargingCommand } from "@paybell/contract";
import type { AcquirerReply } from "../commands/outcome.ts";

/**
 * The link to the acquirer bank: what the ledger asks, and what may come back. An implementation owns its connection,
 * its message format and its repeats on the wire; the ledger owns what an answer, or its absence, means for the money.
 */
export interface Acquirer {
  /**
   * The response codes that are approvals. `00` always is; some hosts also approve with 08, 10, 11 or 16, which the
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
  /**
   * For so long after its time-out a message may still reach the books: until then "no such record" says nothing about
   * it. Absent: {@link reversalMarginMsDefault}.
   */
  readonly reversalMarginMs?: number | undefined;
  /** The host to which a message would go now; undefined while that is not known. */
  site?(): string | undefined;
  /**
   * Why no message can be sent, after waiting for a connection that has just ended; undefined, or resolves to
   * undefined, if one can. An acquirer without it always can be asked.
   */
  away?(): Promise<AcquirerAway | undefined> | undefined;
  /** Whether it can be asked now; an acquirer without it always can. */
  health?(): AcquirerHealth;
  /** From now on reports answers without a waiting caller: another process may have asked, and be gone. */
  onUnmatchedAnswer?(listener: (answer: UnmatchedAnswer) => void): void;
  /** Another instance may have stored a new key of the MACs, or that a host signed off. */
  reread?(): Promise<void>;
  close(): Promise<void>;
}

/** An answer to a Sale, PreAuth, PreAuth-Complete, Refund, Void or Settlement that nobody waits for. */
export interface UnmatchedAnswer extends AcquirerAnswer {
  /** Empty: it does not repeat the terminal of its message. */
  readonly tid: string;
  /** Empty: it does not repeat that of its message, so nothing tells which one it answers. */
  readonly traceNo: string;
  readonly isSettlement?: boolean;
  /** The message as the answer describes it, for the operator. It holds no card data. */
  readonly known: Readonly<Record<string, string>>;
  /** Whether it can be that of this message, of which card and original may be missing. */
  mayAnswer(message: AskedMessage): boolean;
}

/** The part of a sent message that the ledger still knows. */
export type AskedMessage =
  | (MessageHeader & Money & Pick<AuthorisationMessage, "command" | "invoiceNo" | "batchNo">)
  | SettlementMessage;

export interface AcquirerAway {
  readonly code: "acquirer_signed_off" | "acquirer_unreachable";
  /** In words, for the operator. */
  readonly detail: string;
}

export interface AcquirerHealth {
  readonly ok: boolean;
  /** Its host is connected and has signed off. */
  readonly isSignedOff?: boolean;
  /** In words, for the operator: which host, since when, or why not. */
  readonly detail: string;
  /** The time since the host last sent anything, such as the answer to an echo. Absent: not known to this instance. */
  readonly silentMs?: number;
}

export interface AskOptions {
  readonly timeoutMs: number;
  readonly onLateAnswer: (answer: AcquirerAnswer) => void;
  /**
   * The host that is noted for this message, durably; null: none is. If the message would go to another one, `ask`
   * rejects with {@link OtherSite} before any of it leaves. Undefined: it may go to any.
   */
  readonly site?: string | null | undefined;
  /** Called when the message has left, by acquirers that are reached over a link of this process. */
  readonly onSent?: ((sent: SentMessage) => void) | undefined;
}

export interface SentMessage {
  /** Name and port. */
  readonly host: string;
  /** The message type of ISO 8583. */
  readonly mti: string;
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
  | FollowUpMessage
  | ReversalMessage
  | SettlementMessage
  | BatchUploadMessage
  | LogonMessage;

interface Money {
  /** In the currency's smallest unit: field 4. */
  readonly amountMinor: bigint;
  /** Field 49. */
  readonly currency: string;
}

/** The card of its Sale or PreAuth. Never logged; stored only encrypted, if the acquirer wants it again. */
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

/** A Sale (MTI 0200) or a PreAuth (0100), unless the host's profile says otherwise; so for every MTI here. */
export interface AuthorisationMessage extends MessageHeader, Money, Card, Partial<Chip> {
  readonly command: "SALE" | "PREAUTH";
  /** An approval of a part of the amount is accepted. */
  readonly allowPartial?: boolean;
  readonly invoiceNo: string;
  /** Empty for a PreAuth, which belongs to no batch. */
  readonly batchNo: string;
}

/**
 * An earlier message of the same terminal. An acquirer finds it by its id if it keeps that, otherwise by the
 * elements that the message itself had (field 90), or by those of its answer.
 */
export interface OriginalReference {
  readonly transactionId: string;
  /** It gives the message type and the processing code (field 3). */
  readonly command: CardCommand;
  /** The terminal that sent it: a PreAuth-Complete and a Refund may come from another one of the same merchant. */
  readonly tid: string;
  readonly traceNo: string;
  /** Its transmission time. */
  readonly atMs: number;
  /** Field 38; empty where none was answered. */
  readonly approveCode: string;
  /** Field 37; empty where none was answered. */
  readonly refId: string;
}

/** A message about an earlier one. */
interface Following extends MessageHeader, Money, Partial<Card> {
  readonly invoiceNo: string;
  /** Empty for a PreAuth's Void. */
  readonly batchNo: string;
  readonly original: OriginalReference;
}

/**
 * PREAUTH_COMPLETE, MTI 0220: charges what a PreAuth holds, or less. REFUND, 0200: returns a part of a settled Sale or
 * PreAuth-Complete, or all, in the batch that is open then. VOID, 0200: cancels a Sale or PreAuth-Complete of the open
 * batch, or a PreAuth; its amount is the original's.
 */
export interface FollowUpMessage extends Following {
  readonly command: "PREAUTH_COMPLETE" | "REFUND" | "VOID";
}

/**
 * MTI 0400 or 0420: reverses one message whose outcome is unknown or invalid. Its invoiceNo and batchNo are the
 * original's. Answered 00 if that was reversed, 25 if the acquirer has not seen it. It may still see it then, and not
 * every host remembers the Reversal.
 */
export interface ReversalMessage extends Following {
  readonly command: "REVERSAL";
}

/** The totals of a terminal's batch by each side's own count: the acquirer answers 95 if its own differ. */
export interface BatchTotals {
  /** Empty for an empty batch. */
  readonly currency: string;
  readonly saleQuantity: number;
  readonly saleTotalMinor: bigint;
  readonly voidQuantity: number;
  readonly voidTotalMinor: bigint;
  /** Hosts count Refunds; the settlement IPN has no field for them. */
  readonly refundQuantity: number;
  readonly refundTotalMinor: bigint;
}

/** MTI 0500: closes a terminal's batch. */
export interface SettlementMessage extends MessageHeader {
  readonly command: "SETTLEMENT";
  readonly batchNo: string;
  readonly totals: BatchTotals;
  /** The batch was uploaded after a mismatch: the acquirer settles by what was uploaded. */
  readonly afterUpload: boolean;
}

/** MTI 0320: one transaction of a batch, as our ledger holds it. */
export interface BatchUploadMessage extends MessageHeader, Money, Partial<Card> {
  readonly command: "BATCH_UPLOAD";
  readonly batchNo: string;
  readonly invoiceNo: string;
  readonly uploaded: OriginalReference & { readonly command: ChargingCommand | "REFUND" };
  /** It was voided: it counts on both sides. */
  readonly voided: boolean;
}

/** MTI 0800: whether the host answers for this terminal. */
export interface LogonMessage extends MessageHeader {
  readonly command: "LOGON";
}

export interface AcquirerAnswer extends AcquirerReply {
  /** The host that answered. Absent: not known. */
  readonly site?: string;
  /** The day on which a Settlement's money moves, as given (field 15: MMDD). Absent: the acquirer does not say it. */
  readonly settlementDate?: string;
  /** The acquirer's own totals of a Settlement's batch, by field, as given. Absent: it sends none. */
  readonly ownTotals?: Readonly<Record<string, string>>;
  /** The totals that could be read as figures, in our own units. */
  readonly ownFigures?: Partial<Omit<BatchTotals, "currency">>;
}

/** The acquirer was asked, or may have been, and no answer is known: the command is in doubt. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** The message certainly did not leave: nothing can have been charged. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}

/** The message did not leave, because it would have gone to another host than the noted one. */
export class OtherSite extends NotSent {
  readonly site: string;

  constructor(site: string) {
    super(`The message would go to ${site}, which is not noted for it`);
    this.site = site;
  }
}

export const reversalMarginMsDefault = 15_000;

/** The acquirers that commands go to, by name. The one of the settings has the empty name. */
export interface Acquirers {
  /** Always returns one: for an unknown name, one that sends nothing. */
  of(name: string): Acquirer;
  has(name: string): boolean;
  names(): readonly string[];
}

/** The same acquirer, asked in another way: everything else of it stays, also what an implementation adds. */
export function askedBy(acquirer: Acquirer, ask: Acquirer["ask"]): Acquirer {
  return new Proxy(acquirer, {
    get(target, name) {
      if (name === "ask") return ask;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** No acquirer at all: nothing is sent. Work left open by an earlier one waits for the next one. */
export const noAcquirer: Acquirer = {
  approvals: new Set(["00"]),
  ask: () => Promise.reject(new NotSent("This service has no acquirer.")),
  refusesToken: () => undefined,
  close: () => Promise.resolve(),
};
