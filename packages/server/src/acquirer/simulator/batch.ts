import { BoundedMap } from "../../bounded-map.ts";
import { approvedCode, totalsDifferCode } from "../../response-codes.ts";
import type { AcquirerAnswer, BatchTotals, BatchUploadMessage, SettlementMessage } from "../acquirer.ts";

type Totals = { -readonly [Name in keyof Omit<BatchTotals, "currency">]: BatchTotals[Name] };

/** The total of its batch in which a booking counts. */
export type Side = "sale" | "void" | "refund";

interface Counted {
  readonly amountMinor: bigint;
  readonly currency: string;
}

/** The comparison of a terminal's own count with another: `short` if the other counts anything that it does not. */
type Comparison = "equal" | "short" | "different";

/** A terminal's batch as the bank counts it. Sums are kept as they run, so that no booking need be kept for them. */
export class Batch {
  readonly batchNo: string;
  closed = false;
  /** A part of it was booked by another process's bank. */
  seenInPart = false;
  /** The uploaded transactions, with whether each was voided: the batch was settled by these only. */
  uploaded: ReadonlyMap<string, boolean> | undefined;
  readonly #totals = new Map<string, Totals>();

  constructor(batchNo: string) {
    this.batchNo = batchNo;
  }

  /** Adds one to its side, or with `times` −1 subtracts one. */
  count(side: Side, { amountMinor, currency }: Counted, times: 1 | -1): void {
    const totals = this.#of(currency);
    totals[`${side}Quantity`] += times;
    totals[`${side}TotalMinor`] += BigInt(times) * amountMinor;
  }

  isEmpty(): boolean {
    return [...this.#totals.values()].every(isNothing);
  }

  totals(currency: string): BatchTotals {
    return { currency, ...(this.#totals.get(currency) ?? nothing) };
  }

  compare(claimed: BatchTotals): Comparison {
    const own = this.totals(claimed.currency);
    if (names.some((name) => claimed[name] > own[name])) return "short";
    const holdsMore = names.some((name) => claimed[name] < own[name]);
    return holdsMore || this.#holdsOther(claimed.currency) ? "different" : "equal";
  }

  #holdsOther(currency: string): boolean {
    return [...this.#totals].some(([other, totals]) => other !== currency && !isNothing(totals));
  }

  #of(currency: string): Totals {
    const known = this.#totals.get(currency);
    if (known !== undefined) return known;
    const totals = { ...nothing };
    this.#totals.set(currency, totals);
    return totals;
  }
}

const nothing: Readonly<Totals> = {
  saleQuantity: 0,
  saleTotalMinor: 0n,
  voidQuantity: 0,
  voidTotalMinor: 0n,
  refundQuantity: 0,
  refundTotalMinor: 0n,
};
const names = Object.keys(nothing) as readonly (keyof Totals)[];

/** Voids only occur together with the sales that they void. */
function isNothing({ saleQuantity, refundQuantity }: Totals): boolean {
  return saleQuantity === 0 && refundQuantity === 0;
}

/** The batch that a terminal's uploads describe. A voided one counts on both sides. */
function uploadedBatch(batchNo: string, uploads: Iterable<BatchUploadMessage>): Batch {
  const batch = new Batch(batchNo);
  const uploaded = new Map<string, boolean>();
  for (const upload of uploads) {
    uploaded.set(upload.uploaded.transactionId, upload.voided);
    batch.count(upload.uploaded.command === "REFUND" ? "refund" : "sale", upload, 1);
    if (upload.voided) batch.count("void", upload, 1);
  }
  batch.uploaded = uploaded;
  return batch;
}

/** The number of a terminal's last Settlements that are answered again as the first time. */
const settlementsKept = 8;

/** A terminal as the bank knows it: its open batch, what it uploaded, and how its last Settlements ended. */
export class BankTerminal {
  readonly key: string;
  readonly #strict: boolean;
  #open: Batch | undefined;
  #settled: Batch | undefined;
  readonly #uploadNumbers = new Map<string, string>();
  readonly #uploads = new Map<string, BatchUploadMessage>();
  readonly #answers = new BoundedMap<string, AcquirerAnswer>(settlementsKept);

  constructor(key: string, strict: boolean) {
    this.key = key;
    this.#strict = strict;
  }

  get open(): Batch | undefined {
    return this.#open;
  }

  get settled(): Batch | undefined {
    return this.#settled;
  }

  /** The batch that takes a message with this number; undefined when it was settled, or another one is not yet. */
  batchFor(batchNo: string): Batch | undefined {
    if (this.#open?.batchNo === batchNo) return this.#open;
    // Otherwise the terminal has moved on, so another process's bank has settled what was open here.
    if (this.#strict && (this.#settled?.batchNo === batchNo || this.#open?.isEmpty() === false)) return undefined;
    this.#open = new Batch(batchNo);
    return this.#open;
  }

  /** False: a strict bank takes it for the repeat of another message, whose number and time it has. */
  upload(message: BatchUploadMessage): boolean {
    const [earlier = message] = this.#uploads.values();
    if (earlier.batchNo !== message.batchNo) this.#forgetUploads();
    const number = `${message.traceNo} ${message.atMs}`;
    const { transactionId } = message.uploaded;
    const first = this.#uploadNumbers.get(number);
    if (this.#strict && first !== undefined && first !== transactionId) return false;
    this.#uploadNumbers.set(number, transactionId);
    this.#uploads.set(transactionId, message);
    return true;
  }

  /** The same Settlement again gets the first answer again. `declines`: with that code, whatever the totals are. */
  settle(message: SettlementMessage, declines: string | undefined, refer: () => string): AcquirerAnswer {
    const key = `${message.transactionId}/${message.afterUpload}`;
    const earlier = this.#answers.get(key);
    if (earlier !== undefined) return earlier;
    const settledBy = declines === undefined ? this.#settlementOf(message) : undefined;
    const answer =
      settledBy === undefined ? this.#refused(message, declines) : { ...answered(approvedCode), refId: refer() };
    if (settledBy !== undefined) this.#close(message.batchNo, settledBy);
    // Uploads from here on describe this mismatch; earlier ones may be out of date.
    else if (!message.afterUpload) this.#forgetUploads();
    this.#answers.set(key, answer);
    return answer;
  }

  /** Refuses totals that differ, with the bank's own: on a test terminal it has seen nothing. */
  #refused({ batchNo, totals }: SettlementMessage, declines: string | undefined): AcquirerAnswer {
    if (declines !== undefined && declines !== totalsDifferCode) return answered(declines);
    const own = declines === undefined ? this.#batchOf(batchNo) : new Batch(batchNo);
    const { currency: _, ...ownFigures } = own.totals(totals.currency);
    return { ...answered(totalsDifferCode), ownFigures };
  }

  /** The batch as it can be closed, or undefined when the totals do not agree. */
  #settlementOf({ batchNo, totals, afterUpload }: SettlementMessage): Batch | undefined {
    const own = afterUpload ? uploadedBatch(batchNo, this.#uploadsOf(batchNo)) : this.#batchOf(batchNo);
    const comparison = own.compare(totals);
    if (comparison === "equal") return own;
    if (this.#strict) return undefined;
    return afterUpload || own.seenInPart || comparison === "short" ? own : undefined;
  }

  #batchOf(batchNo: string): Batch {
    return this.#open?.batchNo === batchNo ? this.#open : new Batch(batchNo);
  }

  #uploadsOf(batchNo: string): BatchUploadMessage[] {
    return [...this.#uploads.values()].filter((upload) => upload.batchNo === batchNo);
  }

  #close(batchNo: string, settledBy: Batch): void {
    if (this.#open?.batchNo === batchNo) {
      this.#open.closed = true;
      this.#open.uploaded = settledBy.uploaded;
      this.#open = undefined;
    }
    settledBy.closed = true;
    this.#settled = settledBy;
    this.#forgetUploads();
  }

  #forgetUploads(): void {
    this.#uploads.clear();
    this.#uploadNumbers.clear();
  }
}

/** An answer with only a code: a decline has no approval, and a system command has no reference. */
export function answered(responseCode: string): AcquirerAnswer {
  return { responseCode, approveCode: "", refId: "", tc: "" };
}
