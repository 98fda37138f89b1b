import { amountOf, externalIdOf, merchantTransIdOf, reqIdOf } from "./command-id.ts";
import { countRefusal, type LoadParts } from "./load-parts.ts";
import type { RegisteredPartner } from "./partner.ts";
import type { SeededRandom } from "./random.ts";

interface Item {
  readonly no: number;
  readonly completion: Readonly<Record<string, unknown>>;
}

interface Original {
  readonly no: number;
  readonly amount: number;
}

/** The state of an open batch on the switch. */
interface Day {
  readonly batchNo: string;
  readonly sales: Original[];
  readonly voids: Original[];
  readonly open: Original[];
  readonly preAuths: Original[];
  /** All whose IPNs come before that of the settlement. */
  readonly before: number[];
}

const mid = "M00000000000001";
/**
 * Beyond what is owed to its partner it waits: what a fault piles up is delivered before anything new, and counts as
 * recovery. Measured on two cores at a load of 20, where 90 IPNs a second arrived: with 600 owed to each of eight
 * partners a recovery took 60 s.
 */
const owedMax = 120;
const daySales = 60;
const waitMs = 20;

/** A partner's switch: it processes cards itself and reports in batches, each again until it is answered. */
export class Switch {
  readonly #partner: RegisteredPartner;
  readonly #parts: LoadParts;
  readonly #batchSize: number;
  readonly #random: SeededRandom;
  readonly #tid: string;
  #day: Day;
  #days = 1;

  constructor(partner: RegisteredPartner, parts: LoadParts, batchSize: number, random: SeededRandom) {
    this.#partner = partner;
    this.#parts = parts;
    this.#batchSize = batchSize;
    this.#random = random;
    this.#tid = `S${String(partner.index).padStart(7, "0")}`;
    this.#day = newDay(this.#days);
  }

  async work(): Promise<void> {
    const { journal, pace } = this.#parts;
    while (!this.#parts.isEnding()) {
      if (journal.owedTo(this.#partner.index) > owedMax) await new Promise((resolve) => setTimeout(resolve, waitMs));
      else {
        await pace.take(this.#batchSize);
        await this.#report(Array.from({ length: this.#batchSize }, () => this.#next()));
      }
    }
  }

  /** Until each is accepted or refused: a lost answer is settled by asking again. */
  async #report(items: readonly Item[]): Promise<void> {
    const { caller, operatorToken } = this.#parts;
    let left = items;
    while (left.length > 0 && !this.#parts.isOver()) {
      const completions = left.map(({ completion }) => completion);
      const { status, body } = await caller.call("POST", "/operator/v1/completions", operatorToken, { completions });
      const results = status === 200 ? (body["results"] as readonly Result[]) : [];
      left = left.filter((item, at) => !this.#isSettled(item, results[at]));
      if (left.length > 0) await caller.pause();
    }
  }

  #isSettled({ no, completion }: Item, result: Result | undefined): boolean {
    if (result === undefined) return false;
    const { journal } = this.#parts;
    if (result.result === "accepted" || result.result === "duplicate") {
      journal.accept(no, result.transactionId ?? "");
      return true;
    }
    const code = result.problem?.["code"];
    countRefusal(this.#parts, `report of ${completion["command"]}`, code);
    if (code === "unavailable") return false;
    journal.refuse(no);
    return true;
  }

  #next(): Item {
    const { open, preAuths, sales } = this.#day;
    if (sales.length >= daySales) return this.#settlement();
    const drawn = this.#random.next();
    if (drawn < 0.08 && open.length > 0) return this.#void(takeOne(open, this.#random));
    if (drawn < 0.12) return this.#begin("PREAUTH", []);
    if (drawn < 0.15 && preAuths.length > 0) return this.#complete(takeOne(preAuths, this.#random));
    if (drawn < 0.16 && preAuths.length > 0) return this.#cancel(takeOne(preAuths, this.#random));
    return this.#begin("SALE", []);
  }

  #begin(command: "SALE" | "PREAUTH", before: readonly number[]): Item {
    const { batchNo, sales, open, preAuths, before: all } = this.#day;
    const no = this.#parts.journal.begin(this.#partner.index, before);
    const original = { no, amount: amountOf(no) };
    if (command === "PREAUTH") preAuths.push(original);
    else {
      sales.push(original);
      open.push(original);
      all.push(no);
    }
    return this.#item(no, command, { amount: String(original.amount), ...(command === "SALE" && { batchNo }) });
  }

  #void(original: Original): Item {
    const no = this.#parts.journal.begin(this.#partner.index, [original.no]);
    this.#day.voids.push(original);
    this.#day.before.push(no);
    return this.#following(no, "VOID", original, { batchNo: this.#day.batchNo });
  }

  #complete(original: Original): Item {
    const no = this.#parts.journal.begin(this.#partner.index, [original.no]);
    const completed = { no, amount: original.amount };
    this.#day.sales.push(completed);
    this.#day.open.push(completed);
    this.#day.before.push(no);
    return this.#following(no, "PREAUTH_COMPLETE", original, { batchNo: this.#day.batchNo });
  }

  #cancel(original: Original): Item {
    const no = this.#parts.journal.begin(this.#partner.index, [original.no]);
    return this.#following(no, "VOID", original, {});
  }

  #settlement(): Item {
    const { batchNo, sales, voids, before } = this.#day;
    const no = this.#parts.journal.begin(this.#partner.index, before);
    const [saleTotal, voidTotal] = [total(sales), total(voids)];
    const voided = new Set(voids.map((original) => original.no));
    this.#days += 1;
    // A PreAuth belongs to no batch: it can be completed on a later day.
    this.#day = { ...newDay(this.#days), preAuths: this.#day.preAuths };
    return this.#item(no, "SETTLEMENT", {
      batchNo,
      saleQuantity: String(sales.length),
      saleTotalAmount: String(saleTotal),
      voidQuantity: String(voids.length),
      voidTotalAmount: String(voidTotal),
      quantity: String(sales.length - voids.length),
      totalAmount: String(saleTotal + voidTotal),
      settlementList: sales
        .filter((sale) => !voided.has(sale.no))
        .map((sale) => ({ reqId: reqIdOf(sale.no), refNo: `r${sale.no}` })),
    });
  }

  #following(no: number, command: string, original: Original, more: Readonly<Record<string, string>>): Item {
    const amount = String(original.amount);
    return this.#item(no, command, { ...more, amount, originalExternalId: externalIdOf(original.no) });
  }

  #item(no: number, command: string, more: Readonly<Record<string, unknown>>): Item {
    const completion = {
      partnerId: this.#partner.id,
      externalId: externalIdOf(no),
      command,
      status: "SUCCESS",
      reqId: reqIdOf(no),
      merchantTransId: merchantTransIdOf(no),
      tid: this.#tid,
      mid,
      ...(command !== "SETTLEMENT" && { isoResponseCode: "00", currency: "VND" }),
      ...more,
    };
    return { no, completion };
  }
}

interface Result {
  readonly result: "accepted" | "duplicate" | "conflict" | "refused";
  readonly transactionId?: string;
  readonly problem?: Readonly<Record<string, unknown>>;
}

function newDay(day: number): Day {
  const batchNo = String(day % 1_000_000).padStart(6, "0");
  return { batchNo, sales: [], voids: [], open: [], preAuths: [], before: [] };
}

function takeOne(from: Original[], random: SeededRandom): Original {
  const [taken] = from.splice(random.within(0, from.length - 1), 1);
  if (taken === undefined) throw new Error("There is none to take.");
  return taken;
}

function total(originals: readonly Original[]): number {
  return originals.reduce((sum, { amount }) => sum + amount, 0);
}
