import type { PartnerId, TransactionId } from "../ids.ts";
import type { ClearingCandidate, ClearingDifference } from "./match.ts";
import type { ClearingLine, LineKind } from "./read-file.ts";

export const exceptionKinds = ["missing_here", "missing_there", "different", "chargeback"] as const;
type ExceptionKind = (typeof exceptionKinds)[number];
export const exceptionStates = ["open", "resolved"] as const;
export type ExceptionState = (typeof exceptionStates)[number];

/** The lines and the sum of one kind and currency. */
export interface KindTotal {
  readonly kind: LineKind;
  readonly currency: string;
  readonly lines: number;
  readonly totalMinor: string;
}

/** A file that was read whole. */
export interface NewClearingFile {
  readonly id: string;
  readonly acquirer: string;
  /** SHA-256 of its bytes. */
  readonly sha256: Buffer;
  readonly name: string;
  readonly lines: number;
  readonly chunks: number;
  readonly totals: readonly KindTotal[];
  readonly firstDay: string;
}

/** A file that an instance matches now. */
export interface ClaimedFile {
  readonly id: string;
  readonly acquirer: string;
  readonly firstDay: string;
  readonly nextChunk: number;
  readonly chunks: number;
}

export interface ClearingFile {
  readonly id: string;
  readonly acquirer: string;
  readonly name: string;
  readonly state: "matching" | "done";
  readonly receivedAt: Date;
  readonly doneAt: Date | null;
  readonly lines: number;
  readonly totals: readonly KindTotal[];
  readonly matched: number;
  /** Lines without a transaction that are not due yet. */
  readonly waiting: number;
  readonly missingHere: number;
  readonly missingThere: number;
  readonly different: number;
  readonly fees: number;
  readonly chargebacks: number;
}

/** Something that a person works off, or, as `waiting` and `kept`, that only counts. */
export interface NewEntry {
  readonly kind: ExceptionKind | "fee";
  readonly state: "waiting" | "open" | "kept";
  readonly partnerId: PartnerId | null;
  readonly transactionId: TransactionId | null;
  readonly acquirer: string;
  readonly fileId: string;
  /** Null: of a transaction that no file has. */
  readonly line: ClearingLine | null;
  readonly differences: readonly ClearingDifference[];
  readonly proof: unknown;
  /** A line that waits becomes an exception then. */
  readonly dueAtMs: number | null;
}

export interface ClearingException {
  readonly id: string;
  readonly kind: ExceptionKind;
  readonly state: ExceptionState;
  readonly acquirer: string;
  readonly partnerId: PartnerId | null;
  readonly transactionId: TransactionId | null;
  readonly notificationId: string | null;
  /** Of the transaction, as its IPN has them. */
  readonly here: Readonly<Record<"refId" | "traceNo" | "tid" | "amount" | "currency", string>> | null;
  readonly fileId: string;
  readonly line: ClearingLine | null;
  readonly differences: readonly ClearingDifference[];
  readonly proof: unknown;
  readonly reason: string | null;
  readonly createdAt: Date;
  readonly resolvedAt: Date | null;
}

/** A line without a transaction, as it waits. */
export interface WaitingLine {
  readonly id: string;
  readonly fileId: string;
  readonly line: ClearingLine;
  readonly dueAtMs: number;
}

export interface MatchedLine {
  readonly line: number;
  readonly with: Pick<ClearingCandidate, "partnerId" | "id">;
}

/** The result of some lines of one file. */
export interface Outcome {
  readonly matched: readonly MatchedLine[];
  readonly entries: readonly NewEntry[];
}

export interface ExceptionSearch {
  readonly state?: ExceptionState | undefined;
  readonly acquirer?: string | undefined;
  readonly transaction?: string | undefined;
  readonly file?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Clearing files, the ledger as they are compared with it, and the exceptions. `store` implements it. */
export interface ClearingStore {
  /** Keeps lines of a file that is still being read. Nothing sees them until it is whole. */
  addChunk(fileId: string, chunkNo: number, lines: readonly ClearingLine[]): Promise<void>;
  /** Forgets a file that could not be read. */
  discard(fileId: string): Promise<void>;
  /** @returns the id of the file; another one, if the same bytes came before: then nothing is changed */
  add(file: NewClearingFile): Promise<string>;
  /** Takes a file that no other instance matches. */
  claim(heldForMs: number): Promise<ClaimedFile | undefined>;
  chunk(fileId: string, chunkNo: number): Promise<readonly ClearingLine[]>;
  /** @returns false if another instance took the file over */
  advance(fileId: string, from: number, matched: number, heldForMs: number): Promise<boolean>;
  /** Ends a file whose chunks are matched. */
  end(fileId: string): Promise<void>;

  /** Copies what was completed in the span into the books that lines are compared with. Safe to repeat. */
  copyBooks(acquirer: string, fromMs: number, beforeMs: number): Promise<void>;
  /** The transactions that each line may mean, in the order of the lines. */
  candidates(acquirer: string, lines: readonly ClearingLine[]): Promise<readonly (readonly ClearingCandidate[])[]>;
  /**
   * Records matches, exceptions and their events, each once, also if it is called again.
   *
   * @returns the matches that another line had before
   */
  record(acquirer: string, fileId: string, outcome: Outcome): Promise<readonly MatchedLine[]>;

  /** Resolves the exceptions of transactions that no file had, and that one has now, as they are or otherwise. */
  resolveFound(acquirer: string): Promise<void>;

  /** The acquirers that have had a file, the last of each, and how far the books were copied and judged. */
  watched(): Promise<readonly WatchedAcquirer[]>;
  watch(acquirer: string, change: Partial<Omit<WatchedAcquirer, "acquirer" | "lastFileId">>): Promise<void>;
  /**
   * Standing charges and Refunds that no file has, and that are no exception yet: completed, or let stand by an operator, in
   * the span; the earliest first.
   */
  missing(acquirer: string, fromMs: number, beforeMs: number, rowsMax: number): Promise<readonly ClearingCandidate[]>;
  /** By id. */
  waiting(acquirer: string, after: string | undefined, rowsMax: number): Promise<readonly WaitingLine[]>;
  /** Its transaction was found, and what follows is recorded. @param matched 1 if the line is its match */
  endWaiting(entry: WaitingLine, matched: number): Promise<void>;
  openWaiting(acquirer: string, entries: readonly WaitingLine[]): Promise<void>;

  file(id: string): Promise<ClearingFile | undefined>;
  /** The newest first. */
  files(search: {
    acquirer?: string | undefined;
    after?: string | undefined;
    limit: number;
  }): Promise<readonly ClearingFile[]>;
  /** The newest first. */
  exceptions(search: ExceptionSearch): Promise<readonly ClearingException[]>;
  exception(id: string): Promise<ClearingException | undefined>;
  /** @returns false if it is not open */
  resolve(id: string, reason: string): Promise<boolean>;
  /** Drops what was read of files that never became whole, and files and exceptions that are over. */
  dropOld(beforeMs: number): Promise<void>;
}

export interface WatchedAcquirer {
  readonly acquirer: string;
  readonly lastFileId: string;
  /** The books have everything completed from then on … */
  readonly copiedFromMs: number;
  /** … until then. */
  readonly copiedToMs: number;
  /** Everything completed before is matched, an exception, or expected in no file. */
  readonly judgedToMs: number;
}
