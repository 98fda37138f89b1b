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
  close(): Promise<void>;
}

export interface AskOptions {
  readonly timeoutMs: number;
  readonly onLateAnswer: (answer: AcquirerAnswer) => void;
}

interface MessageHeader {
  /** The transaction this message belongs to: an acquirer never sees two messages of one kind with the same one. */
  readonly transactionId: string;
  readonly tid: string;
  readonly mid: string;
  /** Six digits; a Reversal carries its original's. */
  readonly traceNo: string;
}

export type AcquirerMessage = AuthorisationMessage | LogonMessage;

export interface AuthorisationMessage extends MessageHeader {
  readonly command: "SALE" | "PREAUTH";
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly invoiceNo: string;
  readonly batchNo: string;
  /** Stands for the card; never stored, never logged. */
  readonly cardToken: string;
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
}

/** The acquirer was asked, or may have been, and no answer is known: the command is in doubt. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** The message certainly did not leave: nothing can have been charged. */
export class NotSent extends Error {
  override readonly name = "NotSent";
}
