import { type Command, isCharging, type SettlementEntry } from "@paybell/contract";
import { formatAmount } from "../amount.ts";
import { type BatchRow, isCounted, type SettlementTotals, settlementTotals } from "../settlement.ts";

/** A successful transaction of a batch in the ledger, with the fields that are compared. */
export interface HeldTransaction {
  readonly id: string;
  /** The switch's id; null for a command of our own. */
  readonly externalId: string | null;
  readonly originalId: string | null;
  readonly originalExternalId: string | null;
  readonly command: Command;
  /** In lower case; null if the switch reported none. */
  readonly reqId: string | null;
  readonly refId: string;
  /** As given, in the major unit; empty if none was. */
  readonly amount: string;
}

export interface DifferentValue {
  readonly reported: string;
  readonly ledger: string;
}

export interface OneSided {
  readonly count: number;
  /** The first 20: their reqId, otherwise the acquirer's reference, otherwise the transaction's id. */
  readonly reqIds: readonly string[];
}

export interface SettlementDifference {
  /** By the names of section 2.3; under settlementList, its length. */
  readonly values: Readonly<Record<string, DifferentValue>>;
  /** In the settlementList, but not counted in the ledger. */
  readonly notInLedger: OneSided;
  /** Counted in the ledger, but not in the settlementList. */
  readonly notListed: OneSided;
}

const shownMax = 20;
/** The maximum length of a switch's text. */
const shownCharactersMax = 64;
/** The maximum decimals of all currencies in ISO 4217: all amounts are compared in that unit. */
const decimals = 4;
const amountPattern = /^(-?)([0-9]+)(?:\.([0-9]{1,4}))?$/;
const countPattern = /^-?[0-9]+$/;

/** A Sale or PreAuth-Complete, with its state. */
interface HeldSale extends BatchRow {
  readonly transaction: HeldTransaction;
  /** The name by which an entry of the list refers to it; undefined: none. */
  readonly name: string | undefined;
  voided: boolean;
  reversed: boolean;
}

/**
 * Compares a Settlement reported by a switch with the ledger's transactions of its batch. Transactions are passed one
 * by one, in any order, then the entries of the list: a batch may have 50,000, and no step takes long.
 */
export class SettlementComparison {
  readonly #sales = new Map<string, HeldSale>();
  /** Voids and Reversals. */
  readonly #following: HeldTransaction[] = [];
  /** The number of counted transactions with this name. */
  readonly #counted = new Map<string, number>();
  readonly #listed = new Set<string>();
  readonly #unknown = new Sample();
  #entries = 0;
  #isJoined = false;
  #fraction = 0;

  addTransaction(transaction: HeldTransaction): void {
    const { id, command, amount } = transaction;
    if (!isCharging(command)) {
      this.#following.push(transaction);
      return;
    }
    this.#fraction = Math.max(this.#fraction, amountPattern.exec(amount)?.[3]?.length ?? 0);
    const name = nameOf(transaction);
    const amountMinor = unitsOf(amount) ?? 0n;
    const undone = { voided: false, reversed: false };
    this.#sales.set(id, { transaction, name, command, state: "SUCCESS", amountMinor, ...undone });
    count(this.#counted, name, 1);
  }

  /** Called after all transactions. */
  addEntry({ reqId, refNo }: SettlementEntry): void {
    this.#join();
    const names = [byReqId(reqId.toLowerCase()), byRefId(refNo)];
    if (!names.some((name) => (this.#counted.get(name) ?? 0) > 0)) this.#unknown.add(reqId || refNo);
    for (const name of names) this.#listed.add(name);
    this.#entries += 1;
  }

  /**
   * @param fields the Settlement's, as reported: missing ones are not compared, nor is the list of a failed one, which
   * settled nothing
   * @param total how the partner's totalAmount is computed
   * @returns undefined without a difference
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

  /** @returns counted transactions that are not listed; a list of another length is among the `values` */
  #compareList(values: Record<string, DifferentValue>): Sample {
    const unlisted = new Sample();
    let counted = 0;
    for (const sale of this.#sales.values()) {
      if (!isCounted(sale)) continue;
      counted += 1;
      const { transaction, name } = sale;
      if (name !== undefined && this.#listed.has(name)) continue;
      unlisted.add(transaction.reqId ?? (transaction.refId || transaction.id));
    }
    if (this.#entries !== counted) {
      values["settlementList"] = { reported: String(this.#entries), ledger: String(counted) };
    }
    return unlisted;
  }

  /** Determines the state of each: a Void counts unless it was reversed. */
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
    if (isCounted(sale)) count(this.#counted, sale.name, -1);
    sale[how] = true;
  }
}

/** A count, and the first few items. */
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

/** By its key, and a Sale by its number too, to which the key may add the command. */
function nameExternally(ids: Map<string, string>, { externalId, id, command }: HeldTransaction): void {
  if (externalId === null) return;
  ids.set(externalId, id);
  if (isCharging(command) && externalId.endsWith(` #${command}`)) ids.set(externalId.slice(0, -command.length - 2), id);
}

/** @param fraction decimals for the ledger's amounts */
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

/** Exact; undefined if it is not an amount. */
function unitsOf(text: string): bigint | undefined {
  const [, sign, whole, fraction = ""] = amountPattern.exec(text) ?? [];
  return whole === undefined ? undefined : BigInt(sign + whole + fraction.padEnd(decimals, "0"));
}

function shown(text: string): string {
  return text.slice(0, shownCharactersMax);
}
