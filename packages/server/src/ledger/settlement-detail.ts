import { currencyDecimals } from "@paybell/contract";
import type { BatchTotals } from "../acquirer/acquirer.ts";
import { amountShapeProblem } from "../commands/amount.ts";
import type { PartnerId } from "../ids.ts";

/** A Settlement or Batch Upload as it is stored, under way or ended. */
export interface StoredSettlement {
  readonly id: string;
  readonly partnerId: PartnerId;
  readonly command: "SETTLEMENT" | "BATCH_UPLOAD";
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** The batch that it closes, or has closed; null if it was refused, or reported by a switch. */
  readonly batchId: string | null;
  /** Null once it has ended. */
  readonly step: "waiting" | "sending" | "uploading" | null;
  readonly facts: {
    readonly fields?: Readonly<Record<string, string>>;
    readonly settlementList?: readonly unknown[];
    readonly currency?: string;
  };
  readonly [shown: string]: unknown;
}

type Figure = keyof Omit<BatchTotals, "currency">;

/** The figures of one side; null: not known. Amounts are in the currency's smallest unit. */
export type ShownTotals = Readonly<Record<Figure, number | string | null>>;

export interface SettlementDetail {
  readonly id: string;
  readonly state: "waiting" | "sending" | "uploading" | "settled" | "refused";
  readonly currency: string | null;
  /** As they were sent, or as they are counted so far. */
  readonly totals: ShownTotals;
  /** Null: it sent none that could be read. */
  readonly acquirerTotals: ShownTotals | null;
  /** The acquirer's own totals by field, as it sent them. */
  readonly acquirerFields: Readonly<Record<string, string>> | null;
  /** Transactions in its settlementList. */
  readonly listed: number;
  readonly [shown: string]: unknown;
}

const figures: readonly Figure[] = [
  "saleQuantity",
  "saleTotalMinor",
  "voidQuantity",
  "voidTotalMinor",
  "refundQuantity",
  "refundTotalMinor",
];

/**
 * @param details those of its events, the newest first
 * @param counted the totals of its batch by the ledger, if it has one
 */
export function settlementDetail(
  { facts, step, ...stored }: StoredSettlement,
  details: readonly Readonly<Record<string, unknown>>[],
  counted: BatchTotals | null,
): SettlementDetail {
  const newest = (name: string) => details.find((detail) => detail[name] !== undefined)?.[name];
  const theirs = newest("acquirerFigures");
  const fields = facts.fields ?? {};
  return {
    ...stored,
    kind: stored.command,
    state: step ?? (stored.state === "SUCCESS" ? "settled" : "refused"),
    currency: facts.currency ?? (counted?.currency || null),
    mid: fields["mid"] ?? null,
    batchNo: fields["batchNo"] ?? null,
    totals: totalsOf(counted ?? newest("totals")) ?? totalsOfFields(fields, facts.currency),
    acquirerTotals: totalsOf(theirs),
    acquirerFields: (newest("acquirerTotals") ?? null) as SettlementDetail["acquirerFields"],
    listed: facts.settlementList?.length ?? 0,
  };
}

function totalsOf(given: unknown): ShownTotals | null {
  if (typeof given !== "object" || given === null) return null;
  const values = given as Readonly<Record<string, bigint | number | string | undefined>>;
  const shown = figures.map((name) => [
    name,
    typeof values[name] === "bigint" ? `${values[name]}` : (values[name] ?? null),
  ]);
  return Object.fromEntries(shown) as ShownTotals;
}

/** The totals of the settlement IPN, which has none of Refunds. */
function totalsOfFields(fields: Readonly<Record<string, string>>, currency: string | undefined): ShownTotals {
  const decimals = currencyDecimals(currency ?? "") ?? 0;
  const minor = (text = "") => {
    if (text === "" || amountShapeProblem(text, decimals) !== undefined) return null;
    const [whole = "", fraction = ""] = text.split(".");
    return `${BigInt(whole + fraction.padEnd(decimals, "0"))}`;
  };
  const count = (text = "") => (/^\d{1,9}$/.test(text) ? Number(text) : null);
  return {
    saleQuantity: count(fields["saleQuantity"]),
    saleTotalMinor: minor(fields["saleTotalAmount"]),
    voidQuantity: count(fields["voidQuantity"]),
    voidTotalMinor: minor(fields["voidTotalAmount"]),
    refundQuantity: null,
    refundTotalMinor: null,
  };
}
