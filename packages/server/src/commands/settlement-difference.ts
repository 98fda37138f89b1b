import type { Command, SettlementEntry } from "@paybell/contract";
import { formatAmount } from "./amount.ts";
import { type BatchRow, isCounted, type SettlementTotals, settlementTotals } from "./totals.ts";

/** A successful transaction that the ledger holds of a batch, as far as its settlement is compared with it. */
export interface HeldTransaction {
  readonly id: string;
  /** The switch's; null for a command of our own. */
  readonly externalId: string | null;
  readonly originalId: string | null;
  readonly originalExternalId: string | null;
  readonly command: Command;
  /** In lower case; null where the switch gave none. */
  readonly reqId: string | null;
  readonly refId: string;
  /** As given, in the major unit; empty where none was. */
  readonly amount: string;
}

/** One value of a settlement that is not what the ledger comes to. */
export interface DifferentValue {
  readonly reported: string;
  readonly ledger: string;
}

/** Transactions that stand on one side alone. */
export interface OneSided {
  readonly count: number;
  /** The first 20: their reqId; where there is none, the acquirer's reference, and at last the transaction's id. */
  readonly reqIds: readonly string[];
}

export interface SettlementDifference {
  /** By the names of section 2.3; under settlementList, how many it has. */
  readonly values: Readonly<Record<string, DifferentValue>>;
  /** In the settlementList, and not among what stands in the ledger. */
  readonly notInLedger: OneSided;
  /** Standing in the ledger, and not in the settlementList. */
  readonly notListed: OneSided;
}

const shownMax = 20;
/** Of a text that a switch gave. */
const shownCharactersMax = 64;
/** The most decimals that a currency of ISO 4217 has: all amounts are counted in that unit. */
const decimals = 4;
const amountPattern = /^(-?)([0-9]+)(?:\.([0-9]{1,4}))?$/;
const countPattern = /^-?[0-9]+$/;

/** A Sale or PreAuth-Complete, with what became of it. */
interface HeldSale extends BatchRow {
  readonly transaction: HeldTransaction;
  /** What an entry of the list names it by; undefined: nothing does. */
  readonly name: string | undefined;
  voided: boolean;
  reversed: boolean;
}

/**
 * Compares a Settlement that a switch reported with what the ledger holds of its batch. It is given the transactions
 * one by one, in any order, then the entries of the list: a batch may have 50,000, and no step takes long.
 */
export class SettlementComparison {
  readonly #sales = new Map<string, HeldSale>();
  /** Voids and Reversals. */
  readonly #following: HeldTransaction[] = [];
  /** How many that stand have this name. */
  readonly #standing = new Map<string, number>();
  readonly #listed = new Set<string>();
  readonly #unknown = new Sample();
  #entries = 0;
  #isJoined = false;
  #fraction = 0;

  hold(transaction: HeldTransaction): void {
    const { id, command, amount } = transaction;
    if (command !== "SALE" && command !== "PREAUTH_COMPLETE") {
      this.#following.push(transaction);
      return;
    }
    this.#fraction = Math.max(this.#fraction, amountPattern.exec(amount)?.[3]?.length ?? 0);
    const name = nameOf(transaction);
    const amountMinor = unitsOf(amount) ?? 0n;
    const undone = { voided: false, reversed: false };
    this.#sales.set(id, { transaction, name, command, state: "SUCCESS", amountMinor, ...undone });
    count(this.#standing, name, 1);
  }

  /** After all transactions. */
  list({ reqId, refNo }: SettlementEntry): void {
    this.#join();
    const names = [byReqId(reqId.toLowerCase()), byRefId(refNo)];
    if (!names.some((name) => (this.#standing.get(name) ?? 0) > 0)) this.#unknown.add(reqId || refNo);
    for (const name of names) this.#listed.add(name);
    this.#entries += 1;
  }

  /**
   * @param fields the Settlement's, as reported: what it does not give is not compared. The list of one that failed is
   * not, either: it settled nothing.
   * @param total how the partner's totalAmount is made
   * @returns undefined where nothing differs
   */
  difference(fields: Readonly<Record<string, string>>, total: "sum" | "net"): SettlementDifference | undefined {
    this.#join();
    const values = differentValues(fields, settlementTotals(this.#sales.values(), ""), total, this.#fraction);
    const settles = fields["status"] === "SUCCESS";
    const unlisted = settles ? this.#compareList(values) : new Sample();
    const unknown = settles ? this.#unknown : new Sample();
    const isSame = Object.keys(values).length === 0 && unknown.count === 0 && unlisted.count === 0;
    return isSame ? undefined : { values, notInLedger: unknown.shown(), notListed: unlisted.shown() };
  }

  /** @returns those that stand and are not listed; a list of another length is among the `values` */
  #compareList(values: Record<string, DifferentValue>): Sample {
    const unlisted = new Sample();
    let standing = 0;
    for (const sale of this.#sales.values()) {
      if (!isCounted(sale)) continue;
      standing += 1;
      const { transaction, name } = sale;
      if (name !== undefined && this.#listed.has(name)) continue;
      unlisted.add(transaction.reqId ?? (transaction.refId || transaction.id));
    }
    if (this.#entries !== standing) {
      values["settlementList"] = { reported: String(this.#entries), ledger: String(standing) };
    }
    return unlisted;
  }

  /** What became of each: a Void of it counts unless that was reversed. */
  #join(): void {
    if (this.#isJoined) return;
    this.#isJoined = true;
    const ids = new Map<string, string>();
    if (this.#following.some(({ originalId }) => originalId === null)) {
      for (const { transaction } of this.#sales.values()) nameExternally(ids, transaction);
      for (const transaction of this.#following) nameExternally(ids, transaction);
    }
    const originalsOf = (command: Command) =>
      this.#following
        .filter((one) => one.command === command)
        .map(({ id, originalId, originalExternalId }) => ({
          id,
          original: originalId ?? ids.get(originalExternalId ?? "") ?? "",
        }));
    const reversed = new Set(originalsOf("REVERSAL").map(({ original }) => original));
    const voids = originalsOf("VOID").filter(({ id }) => !reversed.has(id));
    for (const id of reversed) this.#end(id, "reversed");
    for (const { original } of voids) this.#end(original, "voided");
  }

  #end(id: string, how: "reversed" | "voided"): void {
    const sale = this.#sales.get(id);
    if (sale === undefined) return;
    if (isCounted(sale)) count(this.#standing, sale.name, -1);
    sale[how] = true;
  }
}

/** A count, and the first few of what was counted. */
class Sample {
  count = 0;
  readonly #first: string[] = [];

  add(name: string): void {
    this.count += 1;
    if (this.#first.length < shownMax) this.#first.push(shown(name));
  }

  shown(): OneSided {
    return { count: this.count, reqIds: this.#first };
  }
}

function nameOf({ reqId, refId }: HeldTransaction): string | undefined {
  if (reqId !== null) return byReqId(reqId);
  return refId === "" ? undefined : byRefId(refId);
}

function byReqId(reqId: string): string {
  return `reqId ${reqId}`;
}

function byRefId(refId: string): string {
  return `refId ${refId}`;
}

function count(counts: Map<string, number>, name: string | undefined, change: number): void {
  if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + change);
}

function nameExternally(ids: Map<string, string>, { externalId, id }: HeldTransaction): void {
  if (externalId !== null) ids.set(externalId, id);
}

/** @param fraction decimals to write the ledger's amounts with */
function differentValues(
  fields: Readonly<Record<string, string>>,
  totals: SettlementTotals,
  total: "sum" | "net",
  fraction: number,
): Record<string, DifferentValue> {
  const { saleQuantity, saleTotalMinor, voidQuantity, voidTotalMinor } = totals;
  const counts = { quantity: saleQuantity - voidQuantity, saleQuantity, voidQuantity };
  const sums = {
    saleTotalAmount: saleTotalMinor,
    voidTotalAmount: voidTotalMinor,
    totalAmount: total === "sum" ? saleTotalMinor + voidTotalMinor : saleTotalMinor - voidTotalMinor,
  };
  const values: Record<string, DifferentValue> = {};
  for (const [name, ours] of Object.entries(counts)) {
    const { [name]: text = "" } = fields;
    if (text === "" || (countPattern.test(text) && BigInt(text) === BigInt(ours))) continue;
    values[name] = { reported: shown(text), ledger: String(ours) };
  }
  for (const [name, ours] of Object.entries(sums)) {
    const { [name]: text = "" } = fields;
    if (text === "" || unitsOf(text) === ours) continue;
    values[name] = { reported: shown(text), ledger: formatAmount(ours / 10n ** BigInt(decimals - fraction), fraction) };
  }
  return values;
}

/** Exactly; undefined for what is no amount. */
function unitsOf(text: string): bigint | undefined {
  const [, sign, whole, fraction = ""] = amountPattern.exec(text) ?? [];
  return whole === undefined ? undefined : BigInt(sign + whole + fraction.padEnd(decimals, "0"));
}

function shown(text: string): string {
  return text.slice(0, shownCharactersMax);
}
