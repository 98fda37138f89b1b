import { currencyDecimals } from "@paybell/contract";
import type { BatchTotals } from "../acquirer/acquirer.ts";
import { acquirerNameRule, isAcquirerName, settingsName } from "../acquirer/registered/registry.ts";
import { minorOf } from "../commands/amount.ts";
import { refusalError, settlementInProgress } from "../commands/original.ts";
import { cardNumberProblem } from "../commands/requests/rules.ts";
import { badFields, ServiceError } from "../errors.ts";
import type { PartnerId, TransactionId } from "../ids.ts";
import { pageOf } from "../page.ts";
import type { EventSink } from "../telemetry/events.ts";
import type { ReversalStore, Reverser } from "./reversals/reverser.ts";
import type { Settler } from "./settlements/settler.ts";
import type { SettlementStore } from "./settlements/store.ts";

export const moneyKinds = ["transactions", "batches", "settlements", "reversals", "events"] as const;
export type MoneyKind = (typeof moneyKinds)[number];

export interface MoneySearch {
  readonly partner?: string | undefined;
  readonly batch?: string | undefined;
  /** Finds the transactions that went to this acquirer. That of the settings: `default`, and empty in the store. */
  readonly acquirer?: string | undefined;
  /** Finds the events about this notification, transaction or endpoint. */
  readonly subject?: string | undefined;
  /** A state, or an event's kind. */
  readonly state?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** As it is shown: ids, states, amounts and times, never a card's number or token. */
export type MoneyItem = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly partnerId: PartnerId | null;
};

/** A merchant's totals of one currency in a period, in the currency's smallest unit. */
export interface MerchantTotals {
  readonly partnerId: PartnerId;
  readonly mid: string;
  readonly merchantName: string;
  readonly currency: string;
  /** Sales and Completes that were approved, also those that were voided since. */
  readonly saleQuantity: number;
  readonly saleTotalMinor: string;
  readonly voidQuantity: number;
  readonly voidTotalMinor: string;
  readonly refundQuantity: number;
  readonly refundTotalMinor: string;
  /** Undone at the acquirer, or by a Reversal that a switch reported, and in none of the totals. */
  readonly reversedQuantity: number;
  readonly declinedQuantity: number;
}

/** With sums in decimals, as they are stored. */
export type MerchantSums = Omit<MerchantTotals, `${string}Minor`> &
  Readonly<Record<"saleTotal" | "voidTotal" | "refundTotal", string>>;

export interface MerchantSearch {
  readonly partner?: string | undefined;
  /** Created then or later. */
  readonly fromMs: number;
  /** Created earlier. */
  readonly toMs: number;
}

export interface MoneyStore {
  /** The newest first. */
  search(kind: MoneyKind, search: MoneySearch): Promise<readonly MoneyItem[]>;
  find(kind: MoneyKind, id: string): Promise<MoneyItem | undefined>;
  /** A Settlement or Batch Upload, under way or ended. */
  settlement(id: string): Promise<StoredSettlement | undefined>;
  /** By partner, merchant and currency. */
  merchants(search: MerchantSearch): Promise<readonly MerchantSums[]>;
  /** The transactions that belong together with it, in their order. */
  chain(partnerId: PartnerId, id: string): Promise<readonly MoneyItem[]>;
}

export interface MoneyOperationsParts {
  readonly store: MoneyStore;
  readonly reversals: Pick<ReversalStore, "retry" | "resolve" | "letStand">;
  readonly reverser: Pick<Reverser, "wake">;
  readonly settler: Pick<Settler, "abort">;
  readonly settlements: Pick<SettlementStore, "totals" | "resolveLate">;
  readonly events: EventSink;
}

/** The number of events read of a settlement: few happen to one. */
const eventsRead = 50;
const merchantSpanMsMax = 31 * 86_400_000;

/** The operator's view of money, and what the operator decides where the acquirer leaves a doubt. */
export class MoneyOperations {
  readonly #parts: MoneyOperationsParts;

  constructor(parts: MoneyOperationsParts) {
    this.#parts = parts;
  }

  /** @throws ServiceError `invalid_value` of what cannot be an acquirer's name */
  async search(kind: MoneyKind, search: MoneySearch) {
    const { acquirer: name } = search;
    if (name !== undefined && !isAcquirerName(name)) {
      const message = `acquirer must be ${acquirerNameRule}.`;
      throw badFields([{ field: "acquirer", code: "invalid_value", message }]);
    }
    const acquirer = name === settingsName ? "" : name;
    const items = await this.#parts.store.search(kind, { ...search, acquirer, limit: search.limit + 1 });
    // The id of a batch has no time.
    return pageOf(items, search.limit, (one) => (kind === "batches" ? String(one["settlementId"]) : one.id));
  }

  /** @throws ServiceError `invalid_value` of a period that is longer than a month, or ends before it begins */
  async merchants(search: MerchantSearch): Promise<readonly MerchantTotals[]> {
    const spanMs = search.toMs - search.fromMs;
    if (spanMs > 0 && spanMs <= merchantSpanMsMax) {
      return (await this.#parts.store.merchants(search)).map(inMinor);
    }
    const message = "to must be after from, by 31 days at most.";
    throw badFields([{ field: "to", code: "invalid_value", message }]);
  }

  /** @throws ServiceError `not_found` */
  async find(kind: MoneyKind, id: string): Promise<MoneyItem> {
    const found = await this.#parts.store.find(kind, id);
    if (found === undefined) throw new ServiceError("not_found");
    return found;
  }

  /**
   * A settlement, under way or ended, with its totals and the acquirer's.
   *
   * @throws ServiceError `not_found`
   */
  async settlement(id: string): Promise<SettlementDetail> {
    const { store, settlements } = this.#parts;
    const stored = await store.settlement(id);
    if (stored === undefined) throw new ServiceError("not_found");
    const { partnerId, batchId, closed } = stored;
    const events = await store.search("events", { partner: partnerId, subject: id, limit: eventsRead });
    const details = events.map(({ detail }) => detail as Readonly<Record<string, unknown>>);
    const isRunning = batchId !== null && closed === null;
    return settlementDetail(stored, details, isRunning ? await settlements.totals(partnerId, batchId) : closed);
  }

  /**
   * A transaction with those that it changes, and those that change it, in their order.
   *
   * @throws ServiceError `not_found`
   */
  async chain(id: string): Promise<readonly MoneyItem[]> {
    const { partnerId } = await this.find("transactions", id);
    return partnerId === null ? [] : await this.#parts.store.chain(partnerId, id);
  }

  /**
   * Sends a Reversal again that is parked, or done: the acquirer has the transaction in its books all the same. For one
   * that is done a reason is required.
   */
  async retryReversal(id: string, reason: string | undefined): Promise<MoneyItem> {
    if (reason !== undefined) requireNoCardNumber(reason);
    const { partnerId, state } = await this.find("reversals", id);
    if (state === "DONE" && reason === undefined) {
      const message = "reason must say why a Reversal that is done is sent again.";
      throw badFields([{ field: "reason", code: "missing_field", message }]);
    }
    const from = state === "DONE" ? "DONE" : "PARKED";
    const sent = await this.#parts.reversals.retry(partnerId as PartnerId, id as TransactionId, from);
    if (sent === "no_acquirer") throw new ServiceError(sent, "Its acquirer was removed: register it again first.");
    if (!sent) throw await this.#refusal(id, from);
    this.#record("reversal_retried", partnerId, id, { from, ...(reason !== undefined && { reason }) });
    this.#parts.reverser.wake();
    return await this.find("reversals", id);
  }

  /** Ends a parked Reversal manually: the acquirer confirmed to the operator that nothing is charged. */
  async resolveReversal(id: string, reason: string): Promise<MoneyItem> {
    requireNoCardNumber(reason);
    const { partnerId } = await this.find("reversals", id);
    if (!(await this.#parts.reversals.resolve(partnerId as PartnerId, id as TransactionId)))
      throw await this.#refusal(id);
    this.#record("reversal_resolved", partnerId, id, { reason });
    return await this.find("reversals", id);
  }

  /**
   * Ends a parked Reversal manually: the acquirer has the transaction in its books, and refuses for good to undo it. No
   * IPN says so; its partner's statement of this day does. Again, it changes nothing.
   */
  async letStand(id: string, reason: string): Promise<MoneyItem> {
    requireNoCardNumber(reason);
    const { partnerId, state } = await this.find("reversals", id);
    const stood = await this.#parts.reversals.letStand(partnerId as PartnerId, id as TransactionId);
    if (stood === true) {
      this.#record("reversal_resolved", partnerId, id, { reason, stands: true });
    } else if (state !== "STANDS") throw await this.#refusal(id, "PARKED", stood);
    return await this.find("reversals", id);
  }

  /** Why a decision about a Reversal changed nothing. */
  async #refusal(
    id: string,
    from: "PARKED" | "DONE" = "PARKED",
    why: boolean | "other_currency" | "moved" = false,
  ): Promise<ServiceError> {
    const { state } = await this.find("reversals", id);
    if (state === from && why === "other_currency") return new ServiceError("batch_currency");
    if (state === from && why === "moved") {
      const message =
        "Its terminal has another merchant or acquirer by now: decide once the terminal's batch is settled.";
      return new ServiceError("other_acquirer", message);
    }
    if (state === from) return refusalError(settlementInProgress(`The batch of ${id}`));
    const message = "The Reversal is not parked: it is under way, or has ended meanwhile.";
    return new ServiceError("reversal_not_parked", message);
  }

  /** Ends a settlement that the acquirer does not answer as an ERROR 96: its batch is open again. */
  async abortSettlement(id: string, reason: string): Promise<MoneyItem> {
    requireNoCardNumber(reason);
    const { partnerId } = await this.find("settlements", id);
    if (!(await this.#parts.settler.abort(partnerId as PartnerId, id as TransactionId))) {
      throw new ServiceError("settlement_ended", "The settlement has ended meanwhile.");
    }
    this.#record("settlement_aborted", partnerId, id, { reason });
    return await this.find("transactions", id);
  }

  /**
   * The acquirer accepted an aborted settlement late, and its batch has changed since. It stays open: the operator
   * agreed with the acquirer on what it has settled.
   */
  async resolveSettlement(id: string, reason: string): Promise<MoneyItem> {
    requireNoCardNumber(reason);
    const { partnerId } = await this.find("transactions", id);
    const { settlements } = this.#parts;
    if (!(await settlements.resolveLate(partnerId as PartnerId, id as TransactionId))) {
      throw new ServiceError("settlement_not_in_doubt");
    }
    this.#record("settlement_resolved", partnerId, id, { reason });
    return await this.find("transactions", id);
  }

  #record(
    kind: "reversal_retried" | "reversal_resolved" | "settlement_aborted" | "settlement_resolved",
    partnerId: string | null,
    subjectId: string,
    detail: Readonly<Record<string, unknown>>,
  ): void {
    this.#parts.events.record({
      kind,
      partnerId: partnerId as PartnerId,
      subjectId,
      detail: { ...detail, by: "operator" },
    });
  }
}

/** The reason is kept in an event and in the audit. @throws ServiceError `card_number_in_clear` */
function requireNoCardNumber(reason: string): void {
  const problem = cardNumberProblem("reason", reason);
  if (problem !== undefined) throw badFields([problem]);
}

export interface StoredSettlement {
  readonly id: string;
  readonly partnerId: PartnerId;
  readonly command: "SETTLEMENT" | "BATCH_UPLOAD";
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  /** The batch that it closes, or has closed; null if it was refused, or reported by a switch. */
  readonly batchId: string | null;
  /** The totals with which the batch was closed: what is decided about its transactions afterwards changes none. */
  readonly closed: (ShownTotals & { readonly currency: string }) | null;
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
function settlementDetail(
  { facts, step, closed: _, ...stored }: StoredSettlement,
  details: readonly Readonly<Record<string, unknown>>[],
  counted: BatchTotals | StoredSettlement["closed"],
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
  const minor = (text = "") => minorOf(text, decimals)?.toString() ?? null;
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

function inMinor({ saleTotal, voidTotal, refundTotal, ...row }: MerchantSums): MerchantTotals {
  const minor = (sum: string) => String(minorOf(sum, currencyDecimals(row.currency) ?? 0) ?? 0n);
  const totals = { saleTotalMinor: minor(saleTotal), voidTotalMinor: minor(voidTotal) };
  return { ...row, ...totals, refundTotalMinor: minor(refundTotal) };
}
