import { type Command, currencyDecimals, isCharging, type NotifiedCommand } from "@paybell/contract";
import { formatAmount, minorOf } from "../commands/amount.ts";
import { badFields, ServiceError } from "../errors.ts";
import { csvCell } from "../guards/safe-text.ts";
import type { PartnerId } from "../ids.ts";
import { pageOf } from "../page.ts";
import { dayIn } from "../time.ts";

type Fields = Readonly<Record<string, string | undefined>>;

/** An event of a partner's money, as the ledger stores it. */
export interface StatementRow {
  /**
   * `reversal`: the Reversal of a transaction that had succeeded was done. `stands`: an operator decided that a
   * transaction stands of which the partner knows that it failed, or was reversed.
   */
  readonly kind: "transaction" | "reversal" | "stands";
  /** The transaction's, also of the other kinds. */
  readonly id: string;
  readonly command: NotifiedCommand;
  /** As its partner was told. */
  readonly state: "SUCCESS" | "ERROR";
  readonly at: Date;
  readonly originalId: string | null;
  readonly originalCommand: Command | null;
  /** Of a Void: its original failed, or was undone before. */
  readonly voidsNothing: boolean;
  readonly notificationId: string | null;
  readonly reqId: string | null;
  /** As in its IPN, but of a Void without an amount or currency what it voids has. */
  readonly amount: string;
  readonly currency: string;
  readonly fields: Fields;
}

export interface OwnSearch {
  readonly tid?: string | undefined;
  /** Closed, or completed, then or later. */
  readonly fromMs?: number | undefined;
  /** Exclusive. */
  readonly toMs?: number | undefined;
  /** The last id of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface ClosedBatch {
  readonly id: string;
  readonly tid: string;
  readonly mid: string;
  readonly batchNo: string;
  readonly currency: string | null;
  readonly settlementId: string;
  /** The settlement's IPN. */
  readonly notificationId: string | null;
  readonly saleQuantity: number;
  readonly saleTotalMinor: string;
  readonly voidQuantity: number;
  readonly voidTotalMinor: string;
  readonly refundQuantity: number;
  readonly refundTotalMinor: string;
  readonly closedAt: Date;
}

export interface SettlementRow {
  readonly id: string;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  readonly reqId: string | null;
  readonly notificationId: string | null;
  readonly currency: string | null;
  readonly fields: Fields;
  readonly listed: number;
  readonly createdAt: Date;
  readonly completedAt: Date | null;
}

export interface StatementStore {
  /** Pages of what happened in the span: by id, first what was completed soon, then the rest. */
  lines(partnerId: PartnerId, fromMs: number, beforeMs: number): AsyncIterable<readonly StatementRow[]>;
  /** Closed batches, the latest settlement first. */
  batches(partnerId: PartnerId, search: OwnSearch): Promise<readonly ClosedBatch[]>;
  /** The newest first. */
  settlements(partnerId: PartnerId, search: OwnSearch): Promise<readonly SettlementRow[]>;
}

export interface StatementOwner {
  readonly id: PartnerId;
  readonly settings: { readonly timeZone: string };
}

export interface Statement {
  readonly date: string;
  readonly timeZone: string;
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  /** Whether the day is over, and everything that was completed on it is certainly stored. */
  readonly isComplete: boolean;
  readonly pages: AsyncIterable<readonly StatementLine[]>;
  /** The totals of all lines that were read so far. */
  totals(): readonly StatementTotals[];
}

export type StatementLine = ReturnType<typeof lineOf>;
export type StatementTotals = ReturnType<typeof totalsOf>;

/** A result is stored in a transaction that began shortly before it is visible. */
const commitDelayMs = 60_000;

export class Statements {
  readonly #store: StatementStore;
  readonly #nowMs: () => number;
  readonly #ledgerDays: number;

  constructor(store: StatementStore, nowMs: () => number, ledgerDays: number) {
    this.#store = store;
    this.#nowMs = nowMs;
    this.#ledgerDays = ledgerDays;
  }

  async batches(partnerId: PartnerId, search: OwnSearch) {
    const rows = await this.#store.batches(partnerId, { ...search, limit: search.limit + 1 });
    return pageOf(rows.map(batchView), search.limit, ({ settlementId }) => settlementId);
  }

  async settlements(partnerId: PartnerId, search: OwnSearch) {
    const rows = await this.#store.settlements(partnerId, { ...search, limit: search.limit + 1 });
    return pageOf(rows.map(settlementView), search.limit, ({ id }) => id);
  }

  /**
   * Reads the transactions that were completed on a day in the partner's zone. A later change is a line of its own day:
   * a Void, a Refund, a Reversal, or that it stands although its Reversal was refused.
   *
   * @param date such as 2026-11-21
   * @throws ServiceError `invalid_value` for a day that has not begun, `not_found` for one that the ledger has dropped
   */
  statement({ id, settings: { timeZone } }: StatementOwner, date: string): Statement {
    const [fromMs, toMs] = dayIn(timeZone, date);
    const nowMs = this.#nowMs();
    if (fromMs > nowMs) {
      throw badFields([
        { field: "date", code: "invalid_value", message: `date ${date} has not begun in ${timeZone}, your time zone.` },
      ]);
    }
    if (fromMs < nowMs - this.#ledgerDays * 86_400_000) {
      throw new ServiceError("not_found", `The ledger of ${date} was dropped, after ${this.#ledgerDays} days.`);
    }
    const totals = new Totals();
    const rows = this.#store.lines(id, fromMs, toMs);
    async function* pages() {
      for await (const page of rows) yield page.map((row) => totals.add(row));
    }
    const isComplete = nowMs >= toMs + commitDelayMs;
    return { date, timeZone, fromMs, toMs, isComplete, pages: pages(), totals: () => totals.all() };
  }
}

/** The total that a line counts in, and its sign. A PreAuth, its Void and what failed move nothing. */
function effectOf({ kind, ...row }: StatementRow): { readonly total: Total; readonly sign: 1n | -1n } | undefined {
  const effect = row.state === "SUCCESS" || kind === "stands" ? effectOfCommand(row) : undefined;
  if (effect === undefined || kind !== "reversal") return effect;
  return { total: "reversed", sign: effect.sign === 1n ? -1n : 1n };
}

function effectOfCommand({ command, originalCommand, voidsNothing }: Omit<StatementRow, "kind">) {
  if (isCharging(command)) return { total: "sale", sign: 1n } as const;
  if (command === "REFUND") return { total: "refund", sign: -1n } as const;
  const isEffective = command === "VOID" && originalCommand !== "PREAUTH" && !voidsNothing;
  return isEffective ? ({ total: "void", sign: -1n } as const) : undefined;
}

const totalNames = ["sale", "void", "refund", "reversed"] as const;
type Total = (typeof totalNames)[number];

/** Of one currency. */
interface Sum {
  /** The sum of all movements. */
  net: bigint;
  readonly quantity: Record<Total, number>;
  readonly minor: Record<Total, bigint>;
}

/** Adds up the lines of a statement, exactly, by currency. */
class Totals {
  readonly #sums = new Map<string, Sum>();

  add(row: StatementRow): StatementLine {
    const { currency, amount } = row;
    const decimals = currencyDecimals(currency);
    const effect = effectOf(row);
    // A switch reports some without an amount.
    const minor = decimals === undefined ? undefined : minorOf(amount, decimals);
    const movement = minor === undefined ? undefined : minor * (effect?.sign ?? 0n);
    if (effect !== undefined && minor !== undefined && movement !== undefined) {
      const sum = this.#sums.get(currency) ?? noSum();
      this.#sums.set(currency, sum);
      sum.net += movement;
      sum.quantity[effect.total] += 1;
      sum.minor[effect.total] += minor;
    }
    return lineOf(row, movement === undefined ? "" : formatAmount(movement, decimals ?? 0));
  }

  /** By currency. */
  all(): readonly StatementTotals[] {
    return [...this.#sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([currency, sum]) => totalsOf(currency, sum));
  }
}

function noSum(): Sum {
  const quantity = { sale: 0, void: 0, refund: 0, reversed: 0 };
  return { net: 0n, quantity, minor: { sale: 0n, void: 0n, refund: 0n, reversed: 0n } };
}

function totalsOf(currency: string, { quantity, minor, net }: Sum) {
  const written = (sum: bigint) => formatAmount(sum, currencyDecimals(currency) ?? 0);
  return {
    currency,
    saleQuantity: quantity.sale,
    saleTotalAmount: written(minor.sale),
    voidQuantity: quantity.void,
    voidTotalAmount: written(minor.void),
    refundQuantity: quantity.refund,
    refundTotalAmount: written(minor.refund),
    // Sales, Completes, Voids and Refunds that a Reversal undid on this day.
    reversedQuantity: quantity.reversed,
    reversedTotalAmount: written(minor.reversed),
    netAmount: written(net),
  };
}

/** @param movement the amount that it adds to the partner's balance, with its sign; empty if it has none */
function lineOf(row: StatementRow, movement: string) {
  const { kind, fields, command, state, currency } = row;
  const isSuccess = state === "SUCCESS";
  return {
    kind,
    at: row.at.toISOString(),
    id: row.id,
    notificationId: kind === "transaction" ? row.notificationId : null,
    command,
    status: state,
    isoResponseCode: fields["isoResponseCode"] ?? "",
    currency,
    amount: fields["amount"] ?? "",
    movement,
    reqId: fields["reqId"] || (row.reqId ?? ""),
    merchantTransId: fields["merchantTransId"] ?? "",
    tid: fields["tid"] ?? "",
    mid: fields["mid"] ?? "",
    batchNo: fields["batchNo"] ?? "",
    traceNo: fields["traceNo"] ?? "",
    // As in the IPN: empty on failures, refId also on a Void.
    refId: isSuccess && command !== "VOID" ? (fields["refId"] ?? "") : "",
    approveCode: isSuccess ? (fields["approveCode"] ?? "") : "",
    originalId: row.originalId ?? "",
  };
}

function batchView(row: ClosedBatch) {
  const { saleTotalMinor, voidTotalMinor, refundTotalMinor, closedAt, ...shown } = row;
  const decimals = currencyDecimals(row.currency ?? "") ?? 0;
  const written = (minor: string) => formatAmount(BigInt(minor), decimals);
  return {
    ...shown,
    saleTotalAmount: written(saleTotalMinor),
    voidTotalAmount: written(voidTotalMinor),
    refundTotalAmount: written(refundTotalMinor),
    netAmount: formatAmount(BigInt(saleTotalMinor) - BigInt(voidTotalMinor) - BigInt(refundTotalMinor), decimals),
    closedAt: closedAt.toISOString(),
  };
}

function settlementView({ fields, state, createdAt, completedAt, ...row }: SettlementRow) {
  const of = (name: string) => fields[name] ?? "";
  return {
    id: row.id,
    status: state,
    isoResponseCode: of("isoResponseCode"),
    reqId: of("reqId") || (row.reqId ?? ""),
    merchantTransId: of("merchantTransId"),
    tid: of("tid"),
    mid: of("mid"),
    batchNo: of("batchNo"),
    currency: row.currency,
    saleQuantity: of("saleQuantity"),
    saleTotalAmount: of("saleTotalAmount"),
    voidQuantity: of("voidQuantity"),
    voidTotalAmount: of("voidTotalAmount"),
    refId: of("refId"),
    settlementDate: of("settlementDate"),
    listed: row.listed,
    notificationId: row.notificationId,
    createdAt: createdAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
  };
}

/** A statement as one JSON object, written while it is read. */
export async function* statementJson({ date, timeZone, fromMs, toMs, isComplete, pages, totals }: Statement) {
  const head = { date, timeZone, from: isoOf(fromMs), to: isoOf(toMs), isComplete };
  yield `${JSON.stringify(head).slice(0, -1)},"lines":[`;
  let separator = "";
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield `${separator}${page.map((line) => JSON.stringify(line)).join(",")}`;
    separator = ",";
  }
  yield `],"totals":${JSON.stringify(totals())}}`;
}

const columns = [
  "kind",
  "at",
  "id",
  "notificationId",
  "command",
  "status",
  "isoResponseCode",
  "currency",
  "amount",
  "movement",
  "reqId",
  "merchantTransId",
  "tid",
  "mid",
  "batchNo",
  "traceNo",
  "refId",
  "approveCode",
  "originalId",
  "quantity",
] as const;

type Cells = Partial<Record<(typeof columns)[number], string | number | null>>;

/** A statement as CSV: a row for each line, then five for the totals of each currency. */
export async function* statementCsv({ pages, totals }: Statement) {
  yield `${columns.join(",")}\r\n`;
  for await (const page of pages) yield page.map((line) => csvLine({ ...line, quantity: 1 })).join("");
  for (const { currency, netAmount, ...sums } of totals()) {
    for (const name of totalNames) {
      const [quantity, amount] = [sums[`${name}Quantity`], sums[`${name}TotalAmount`]];
      const command = name === "reversed" ? "REVERSAL" : name.toUpperCase();
      yield csvLine({ kind: "total", command, currency, quantity, amount });
    }
    yield csvLine({ kind: "total", command: "NET", currency, movement: netAmount });
  }
}

function csvLine(cells: Cells): string {
  // A movement is our own digits: an apostrophe before its minus would make it a text.
  const written = columns.map((name) => (name === "movement" ? (cells.movement ?? "") : csvCell(cells[name])));
  return `${written.join(",")}\r\n`;
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
