import { ServiceError } from "../errors.ts";
import type { EventSink } from "../events.ts";
import type { PartnerId, TransactionId } from "../ids.ts";
import type { ReversalStore, Reverser } from "./reverser.ts";
import type { Settler } from "./settler.ts";

export const moneyKinds = ["transactions", "batches", "settlements", "reversals", "events"] as const;
export type MoneyKind = (typeof moneyKinds)[number];

export interface MoneySearch {
  readonly partner?: string | undefined;
  /** Of its state, or an event's kind. */
  readonly state?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** As it is shown: ids, states, amounts and times, never a card's number or token. */
export type MoneyItem = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly partnerId: PartnerId | null;
};

/** The operator's reads and decisions about the ledger. */
export interface MoneyStore {
  /** The newest first. */
  search(kind: MoneyKind, search: MoneySearch): Promise<readonly MoneyItem[]>;
  find(kind: MoneyKind, id: string): Promise<MoneyItem | undefined>;
  /** The transactions that belong together with it, in their order. */
  chain(partnerId: PartnerId, id: string): Promise<readonly MoneyItem[]>;
}

export interface MoneyOperationsParts {
  readonly store: MoneyStore;
  readonly reversals: Pick<ReversalStore, "retry" | "resolve">;
  readonly reverser: Pick<Reverser, "wake">;
  readonly settler: Pick<Settler, "abort">;
  readonly events: EventSink;
}

/** The operator's view of money, and what the operator decides where the acquirer leaves a doubt. */
export class MoneyOperations {
  readonly #parts: MoneyOperationsParts;

  constructor(parts: MoneyOperationsParts) {
    this.#parts = parts;
  }

  async search(kind: MoneyKind, search: MoneySearch) {
    const items = await this.#parts.store.search(kind, { ...search, limit: search.limit + 1 });
    const page = items.slice(0, search.limit);
    return { items: page, next: items.length > page.length ? (page.at(-1)?.id ?? null) : null };
  }

  /** @throws ServiceError `not_found` */
  async find(kind: MoneyKind, id: string): Promise<MoneyItem> {
    const found = await this.#parts.store.find(kind, id);
    if (found === undefined) throw new ServiceError("not_found");
    return found;
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

  /** Sends a parked Reversal again. */
  async retryReversal(id: string): Promise<MoneyItem> {
    const { partnerId } = await this.find("reversals", id);
    if (!(await this.#parts.reversals.retry(partnerId as PartnerId, id as TransactionId))) throw notParked();
    this.#record("reversal_retried", partnerId, id, {});
    this.#parts.reverser.wake();
    return await this.find("reversals", id);
  }

  /** Ends a parked Reversal by hand: the operator knows from the acquirer that nothing of the transaction stands. */
  async resolveReversal(id: string, reason: string): Promise<MoneyItem> {
    const { partnerId } = await this.find("reversals", id);
    if (!(await this.#parts.reversals.resolve(partnerId as PartnerId, id as TransactionId))) throw notParked();
    this.#record("reversal_resolved", partnerId, id, { reason });
    return await this.find("reversals", id);
  }

  /** Ends a settlement that the acquirer does not answer as an ERROR 96: its batch is open again. */
  async abortSettlement(id: string, reason: string): Promise<MoneyItem> {
    const { partnerId } = await this.find("settlements", id);
    if (!(await this.#parts.settler.abort(partnerId as PartnerId, id as TransactionId))) {
      throw new ServiceError("settlement_ended", "The settlement has ended meanwhile.");
    }
    this.#record("settlement_aborted", partnerId, id, { reason });
    return await this.find("transactions", id);
  }

  #record(
    kind: "reversal_retried" | "reversal_resolved" | "settlement_aborted",
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

function notParked(): ServiceError {
  return new ServiceError("reversal_not_parked", "The Reversal is not parked: it is under way, or has ended.");
}
