import type { CardIpn, SettlementEntry, SettlementIpn } from "@paybell/contract";
import { addDecimals, type Decimal, readDecimal, writeDecimal } from "@paybell/contract/decimal";
import { checkNames, Misused } from "./errors/misused.ts";
import { anObject, checkOption, type OptionRule } from "./errors/option-checks.ts";

/** The fields of a transaction that reconciling needs. Its card IPN has them, and your own record may. */
export interface Reconcilable
  extends Pick<
    CardIpn,
    "id" | "amount" | "batchNo" | "invoiceNo" | "mid" | "refId" | "reqId" | "status" | "tid" | "transaction_type"
  > {
  /** The transaction that a Void voided, if you stored it. Otherwise the invoiceNo identifies it. */
  readonly originalTransactionId?: string | undefined;
  /**
   * Its command, if you know it: from your own request, or `GET /v1/transactions/<id>`. It decides, because the
   * transaction_type of each command can be agreed on. A switch may report a PreAuth with a batchNo, which only this
   * distinguishes from a Sale: no settlement counts it, or its Void.
   */
  readonly command?: string | undefined;
}

/** The counts and sums of a settlement. */
export type SettlementTotalField =
  | "quantity"
  | "saleQuantity"
  | "saleTotalAmount"
  | "voidQuantity"
  | "voidTotalAmount"
  | "totalAmount";

export type ReconciliationFinding<T extends Reconcilable> =
  | { readonly code: EntryFinding; readonly entry: SettlementEntry }
  | { readonly code: TransactionFinding; readonly transaction: T }
  | { readonly code: MatchFinding; readonly entry: SettlementEntry; readonly transaction: T }
  | TotalFinding;

type EntryFinding =
  /** In the settlement, but no successful transaction with its reqId is known: fetch the missed IPN. */
  | "settled_not_notified"
  /** The settlement lists the same reqId twice. */
  | "listed_twice";

type TransactionFinding =
  /** Successful in this batch and not voided, but not in the settlement: it was reversed, or ask the operator. */
  | "notified_not_settled"
  /** A Void of this batch is known, but not its original. */
  | "voided_not_notified";

/** Listed in the settlement, although … */
type MatchFinding =
  /** a Void of it succeeded. */
  | "settled_though_voided"
  /** it failed. */
  | "settled_though_failed"
  /** its IPN named another merchant, terminal or batch. */
  | "settled_in_another_batch"
  /** its reference is not the one that its IPN carried. */
  | "ref_no_differs";

/** `stated`: the value in the settlement. */
export type TotalFinding = {
  /** The settlement contradicts itself (its list, counts and sums), or differs from the transactions. */
  readonly code: "settlement_inconsistent" | "total_differs";
  readonly field: SettlementTotalField;
  readonly stated: string;
  readonly expected: string;
};

export interface Reconciliation<T extends Reconcilable> {
  /** Settled, without findings. */
  readonly balanced: boolean;
  /** False if the settlement failed: its batch is open again, and its list is empty. */
  readonly settled: boolean;
  readonly findings: readonly ReconciliationFinding<T>[];
}

/**
 * Compares a settlement with the transactions you know, by reqId in either case; a refNo may repeat. Entries without
 * reqId, as a switch may report them, are matched by refNo.
 *
 * @param transactions card IPNs in any order, also of other batches: mid, tid and batchNo select the relevant ones
 * @param options.settlementTotal as registered: totalAmount is Sales plus Voids (sum, the default) or minus Voids (net)
 * @throws Misused if one of your amounts is not a decimal number, or an argument is not what is described here
 */
export function reconcile<T extends Reconcilable>(
  settlement: SettlementIpn,
  transactions: Iterable<T>,
  options: { readonly settlementTotal?: "sum" | "net" } = {},
): Reconciliation<T> {
  checkOption("The first argument of reconcile()", settlement, aSettlement);
  checkOption("The second argument of reconcile()", transactions, severalTransactions);
  const given = [...transactions];
  for (const [index, one] of given.entries())
    checkOption(`Transaction ${index} given to reconcile()`, one, aTransaction);
  checkOption("The third argument of reconcile()", options, anObject);
  checkNames("", options, ["settlementTotal"]);
  if (options.settlementTotal !== undefined) checkOption("settlementTotal", options.settlementTotal, sumOrNet);
  const settled = settlement.status === "SUCCESS";
  const all = [...new Map(given.map((one) => [one.id, one])).values()];
  const batch = batchOf(settlement, all);
  const findings: ReconciliationFinding<T>[] = [
    ...(settled ? matchList(settlement, all, batch) : []),
    ...batch.orphans.map((transaction) => ({ code: "voided_not_notified", transaction }) as const),
    ...contradictions(settlement, options.settlementTotal ?? "sum", settled),
    ...differences(settlement, batch),
  ];
  return { balanced: settled && findings.length === 0, settled, findings };
}

const facts = ["batchNo", "mid", "status", "tid"];
const ofTransaction = [...facts, "id", "invoiceNo", "refId", "reqId", "transaction_type"];
const totals = ["quantity", "saleQuantity", "saleTotalAmount", "voidQuantity", "voidTotalAmount", "totalAmount"];

const aSettlement: OptionRule = {
  allows: (value) => {
    const list: unknown = Object(value).settlementList;
    const isList = Array.isArray(list) && list.every((entry) => hasTexts(entry, ["reqId", "refNo"]));
    return isList && hasTexts(value, [...facts, ...totals]);
  },
  remedy: "Give a settlement's IPN: received.ipn, where received.kind is settlement.",
};
const severalTransactions: OptionRule = {
  allows: (value) => typeof value === "object" && typeof Object(value)[Symbol.iterator] === "function",
  remedy: "Give a list of card IPNs.",
};
const aTransaction: OptionRule = {
  // Its amount is checked where it is counted.
  allows: (value) => hasTexts(value, ofTransaction),
  remedy: `Give a card IPN, received.ipn, or a record that has ${ofTransaction.join(", ")} as text, and amount.`,
};
const sumOrNet: OptionRule = { allows: (value) => value === "sum" || value === "net", remedy: "Give sum or net." };

function hasTexts(value: unknown, names: readonly string[]): boolean {
  return names.every((name) => typeof Object(value)[name] === "string");
}

interface Batch<T> {
  /** Successful Sales and PreAuth-Completes. */
  readonly sales: readonly T[];
  /** Successful Voids. */
  readonly voids: readonly T[];
  readonly voided: ReadonlySet<T>;
  /** Voids whose original is not known. */
  readonly orphans: readonly T[];
}

function batchOf<T extends Reconcilable>(settlement: SettlementIpn, all: readonly T[]): Batch<T> {
  const { mid, tid, batchNo, settlementList } = settlement;
  const isOfPreAuth = ofPreAuthsIn(all);
  const ofBatch = all.filter((one) => one.mid === mid && one.tid === tid && one.batchNo === batchNo);
  const own = ofBatch.filter((one) => !isRefund(one) && !isOfPreAuth(one));
  const succeeded = own.filter(({ status }) => status === "SUCCESS");
  const [sales, voids] = [succeeded.filter((one) => !isVoid(one)), succeeded.filter(isVoid)];
  const byId = grouped(sales, ({ id }) => id);
  const byInvoice = grouped(sales, ({ invoiceNo }) => invoiceNo);
  const listed = new Set(settlementList.map(nameOf));
  const isUnlisted = ({ reqId, refId }: T) => !listed.has(reqId.toLowerCase()) && !listed.has(` ${refId}`);
  const unlisted = grouped(sales.filter(isUnlisted), shortAmount);
  const voided = new Set<T>();
  const orphans: T[] = [];
  for (const one of voids) {
    const named = byId.get(one.originalTransactionId ?? "") ?? [];
    // If only the amount identifies the original, it was one that the settlement does not list. An invoiceNo may come twice.
    const candidates = (one.invoiceNo === "" ? unlisted.get(shortAmount(one)) : byInvoice.get(one.invoiceNo)) ?? [];
    const original = [...named, ...candidates.filter(isUnlisted), ...candidates].find((sale) => !voided.has(sale));
    if (original === undefined) orphans.push(one);
    else voided.add(original);
  }
  return { sales, voids, voided, orphans };
}

/** By its reqId in either case; without one by its refNo, which is no reqId. */
function nameOf({ reqId, refNo }: SettlementEntry): string {
  return reqId === "" ? ` ${refNo}` : reqId.toLowerCase();
}

/** Without the zeros at its end: 12.5 and 12.50 are the same. */
function shortAmount({ amount }: Reconcilable): string {
  return String(amount).replace(/(?:\.0*|(\.\d*[1-9])0+)$/, "$1");
}

function matchList<T extends Reconcilable>(
  { settlementList }: SettlementIpn,
  all: readonly T[],
  { sales, voided }: Batch<T>,
): ReconciliationFinding<T>[] {
  const findings: ReconciliationFinding<T>[] = [];
  const ofBatch = new Set(sales);
  const isOfPreAuth = ofPreAuthsIn(all);
  const others = all.filter((one) => !isVoid(one) && !isRefund(one) && !isOfPreAuth(one));
  const byReqId = grouped(others, ({ reqId }) => reqId.toLowerCase());
  const byRefId = grouped(others, ({ refId }) => refId);
  const matched = new Set<T>();
  const listed = new Set<string>();
  for (const entry of settlementList) {
    const reqId = entry.reqId.toLowerCase();
    if (reqId !== "" && listed.has(reqId)) {
      findings.push({ code: "listed_twice", entry });
      continue;
    }
    listed.add(reqId);
    const known = ((reqId === "" ? byRefId.get(entry.refNo) : byReqId.get(reqId)) ?? []).filter(
      (one) => !matched.has(one),
    );
    const transaction = known.find((one) => ofBatch.has(one)) ?? known.find(({ status }) => status === "SUCCESS");
    if (transaction === undefined) {
      const [failed] = known;
      findings.push(
        failed === undefined
          ? { code: "settled_not_notified", entry }
          : { code: "settled_though_failed", entry, transaction: failed },
      );
      continue;
    }
    matched.add(transaction);
    if (!ofBatch.has(transaction)) findings.push({ code: "settled_in_another_batch", entry, transaction });
    if (voided.has(transaction)) findings.push({ code: "settled_though_voided", entry, transaction });
    if (transaction.refId !== entry.refNo) findings.push({ code: "ref_no_differs", entry, transaction });
  }
  for (const transaction of sales) {
    if (matched.has(transaction) || voided.has(transaction)) continue;
    findings.push({ code: "notified_not_settled", transaction });
  }
  return findings;
}

function contradictions(settlement: SettlementIpn, settlementTotal: "sum" | "net", settled: boolean): TotalFinding[] {
  const { settlementList, quantity, totalAmount } = settlement;
  const [saleQuantity, voidQuantity] = [readDecimal(settlement.saleQuantity), readDecimal(settlement.voidQuantity)];
  const [sales, voids] = [readDecimal(settlement.saleTotalAmount), readDecimal(settlement.voidTotalAmount)];
  const code = "settlement_inconsistent";
  return [
    ...differing(
      code,
      "quantity",
      quantity,
      saleQuantity && voidQuantity && addDecimals(saleQuantity, voidQuantity, -1n),
    ),
    ...(settled ? differing(code, "quantity", quantity, readDecimal(String(settlementList.length))) : []),
    ...differing(
      code,
      "totalAmount",
      totalAmount,
      sales && voids && addDecimals(sales, voids, settlementTotal === "sum" ? 1n : -1n),
    ),
  ];
}

function differences(settlement: SettlementIpn, { sales, voids, orphans }: Batch<Reconcilable>): TotalFinding[] {
  // A voided transaction is counted as sold although its own IPN is missing: one cause, one finding.
  const sold = [...sales, ...orphans];
  const expected = {
    saleQuantity: readDecimal(String(sold.length)),
    saleTotalAmount: sum(sold),
    voidQuantity: readDecimal(String(voids.length)),
    voidTotalAmount: sum(voids),
  };
  return Object.entries(expected).flatMap(([name, total]) => {
    const field = name as keyof typeof expected;
    return differing("total_differs", field, settlement[field], total);
  });
}

function differing(
  code: TotalFinding["code"],
  field: SettlementTotalField,
  stated: string,
  expected: Decimal | undefined,
): TotalFinding[] {
  const read = readDecimal(stated);
  if (read !== undefined && expected !== undefined && addDecimals(read, expected, -1n).units === 0n) return [];
  return [{ code, field, stated, expected: expected === undefined ? "" : writeDecimal(expected) }];
}

function isVoid({ command, transaction_type: type }: Reconcilable): boolean {
  return command ? command === "VOID" : type === "VOID" || type === "CANCEL";
}

/** A settlement neither counts nor lists a Refund. */
function isRefund({ command, transaction_type: type }: Reconcilable): boolean {
  return (command || type) === "REFUND";
}

/** Whether one is a PreAuth, or the Void of one. */
function ofPreAuthsIn(all: readonly Reconcilable[]): (one: Reconcilable) => boolean {
  const preAuths = new Set(all.filter(({ command }) => command === "PREAUTH").map(({ id }) => id));
  return (one) => preAuths.has(one.id) || (isVoid(one) && preAuths.has(one.originalTransactionId ?? ""));
}

function grouped<T>(all: readonly T[], keyOf: (one: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group === undefined) groups.set(keyOf(one), [one]);
    else group.push(one);
  }
  return groups;
}

function sum(transactions: readonly Reconcilable[]): Decimal {
  return transactions.reduce<Decimal>(
    (total, { id, amount }) => {
      const read = readDecimal(amount);
      if (read === undefined) throw new Misused("no_amount", `The amount of transaction ${id}`);
      return addDecimals(total, read, 1n);
    },
    { units: 0n, scale: 0 },
  );
}
