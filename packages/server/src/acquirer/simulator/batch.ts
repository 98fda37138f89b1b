import type { BatchTotals, BatchUploadMessage } from "../acquirer.ts";

type Totals = { -readonly [Name in keyof Omit<BatchTotals, "currency">]: BatchTotals[Name] };

/** The total of its batch in which a booking counts. */
export type Side = "sale" | "void" | "refund";

interface Counted {
  readonly amountMinor: bigint;
  readonly currency: string;
}

/** The comparison of a terminal's own count with another: `short` if the other counts anything that it does not. */
export type Comparison = "equal" | "short" | "different";

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
export function uploadedBatch(batchNo: string, uploads: Iterable<BatchUploadMessage>): Batch {
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
