import type { BatchTotals, BatchUploadMessage } from "../acquirer.ts";

type Totals = { -readonly [Name in keyof Omit<BatchTotals, "currency">]: BatchTotals[Name] };

interface Counted {
  readonly amountMinor: bigint;
  readonly currency: string;
}

/** How a terminal's own count stands to another: `short` when the other counts anything that it does not. */
export type Comparison = "equal" | "short" | "different";

/** A terminal's batch as the bank counts it. Sums are kept as they run, so that no booking need be kept for them. */
export class Batch {
  readonly batchNo: string;
  closed = false;
  /** Something in it was only heard of: its beginning was booked elsewhere. */
  seenInPart = false;
  /** What the terminal had to upload, each whether it was voided: by this it was settled, and nothing else is in it. */
  uploaded: ReadonlyMap<string, boolean> | undefined;
  readonly #totals = new Map<string, Totals>();

  constructor(batchNo: string) {
    this.batchNo = batchNo;
  }

  /** One more, or with `times` −1 one less, on the side of the sales or of the voids. */
  count(side: "sale" | "void", { amountMinor, currency }: Counted, times: 1 | -1): void {
    const totals = this.#of(currency);
    totals[`${side}Quantity`] += times;
    totals[`${side}TotalMinor`] += BigInt(times) * amountMinor;
  }

  isEmpty(): boolean {
    return [...this.#totals.values()].every(({ saleQuantity }) => saleQuantity === 0);
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
    return [...this.#totals].some(([other, { saleQuantity }]) => other !== currency && saleQuantity > 0);
  }

  #of(currency: string): Totals {
    const known = this.#totals.get(currency);
    if (known !== undefined) return known;
    const totals = { ...nothing };
    this.#totals.set(currency, totals);
    return totals;
  }
}

const nothing: Readonly<Totals> = { saleQuantity: 0, saleTotalMinor: 0n, voidQuantity: 0, voidTotalMinor: 0n };
const names = ["saleQuantity", "saleTotalMinor", "voidQuantity", "voidTotalMinor"] as const;

/** The batch that a terminal's uploads describe. A voided one counts on both sides. */
export function uploadedBatch(batchNo: string, uploads: Iterable<BatchUploadMessage>): Batch {
  const batch = new Batch(batchNo);
  const uploaded = new Map<string, boolean>();
  for (const upload of uploads) {
    uploaded.set(upload.uploaded.transactionId, upload.voided);
    batch.count("sale", upload, 1);
    if (upload.voided) batch.count("void", upload, 1);
  }
  batch.uploaded = uploaded;
  return batch;
}
