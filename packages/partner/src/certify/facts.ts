import { randomInt, randomUUID } from "node:crypto";
import {
  type CardIpn,
  type SettlementEntry,
  type SettlementIpn,
  sampleSale,
  type UnsignedIpn,
} from "@paybell/contract";

type CardFacts = Partial<UnsignedIpn<CardIpn>>;
export type SampleSettlementFacts = Partial<UnsignedIpn<SettlementIpn>>;

/** A partner's program recognises certify's IPNs by these, and discards them. */
export const marks = {
  /** merchantTransId begins with it, in both bodies. */
  merchantTransId: "CERTIFY-",
  tid: "CERTIFY1",
  mid: "CERTIFY00000001",
} as const;

/** The IPNs of one run: plausible facts that are recognisable as test data. */
export class Facts {
  /** Distinguishes one run's notifications from another's. */
  readonly run: string;
  readonly #nowMs: () => number;
  #traceNo = 0;
  /** Six digits, as a batch number has; another run's are most likely others. */
  #batchNo = randomInt(900_000);

  constructor(run: string, nowMs: () => number) {
    this.run = run;
    this.#nowMs = nowMs;
  }

  /** An approved card command of 1 VND. */
  card(code: string, changes: CardFacts = {}): Required<Pick<CardFacts, "id" | "reqId" | "refId">> & CardFacts {
    const traceNo = this.#nextTraceNo();
    return {
      ...sampleSale,
      ...this.#both(code),
      amount: "1",
      appName: "Paybell certify",
      approveCode: "000000",
      billId: "CERTIFY",
      cardHolder: "TEST CARD",
      invoiceNo: traceNo,
      merchantId: marks.mid,
      merchantName: "Paybell certify",
      refId: `000000${traceNo}`,
      traceNo,
      transDateTime: this.#time(),
      transaction_type: "SALE",
      ...changes,
    };
  }

  /** The number of the batch that card commands are in from now on. */
  newBatch(): string {
    this.#batchNo += 1;
    return this.batchNo;
  }

  get batchNo(): string {
    return String(this.#batchNo).padStart(6, "0");
  }

  /** A Void, or a PreAuth-Complete: it has an id and a reqId of its own, and the rest of what it follows. */
  following(original: CardFacts, changes: CardFacts): CardFacts & { readonly id: string; readonly reqId: string } {
    const own = { id: randomUUID(), reqId: randomUUID(), traceNo: this.#nextTraceNo(), transDateTime: this.#time() };
    return { ...original, ...own, ...changes };
  }

  /** The settlement of the newest batch, of Sales of 1 VND each. */
  settlement(
    code: string,
    settlementList: SettlementEntry[],
    changes: SampleSettlementFacts = {},
  ): SampleSettlementFacts {
    const count = String(settlementList.length);
    return {
      ...this.#both(code),
      quantity: count,
      saleQuantity: count,
      saleTotalAmount: count,
      settlementList,
      totalAmount: count,
      transaction_time: this.#time(),
      transaction_type: "SETTLE",
      voidQuantity: "0",
      voidTotalAmount: "0",
      ...changes,
    };
  }

  #both(code: string) {
    return {
      batchNo: this.batchNo,
      deviceId: "CERTIFY",
      extraData: JSON.stringify({ test: true, note: "Made up by paybell certify: no card was charged." }),
      id: randomUUID(),
      merchantTransId: `${marks.merchantTransId}${this.run}-${code}`,
      mid: marks.mid,
      reqId: randomUUID(),
      status: "SUCCESS",
      tid: marks.tid,
    };
  }

  #nextTraceNo(): string {
    this.#traceNo += 1;
    return String(this.#traceNo).padStart(6, "0");
  }

  /** yyyymmddhhmmss, UTC. */
  #time(): string {
    return new Date(this.#nowMs()).toISOString().slice(0, 19).replaceAll(/[-:T]/g, "");
  }
}
