import type { CardIpn, ReceivedIpn, SettlementIpn } from "@paybell/partner";
import { merchantTransIdOf, numberOf, numberOfReqId } from "./journal.ts";

interface Batch {
  /** Amounts of successful Sales and PreAuth-Completes, by the command's number. */
  readonly sales: Map<number, number>;
  /** The numbers of the transactions that were voided. */
  readonly voided: Set<number>;
  settlement: SettlementIpn | undefined;
}

/**
 * The partners' knowledge of each terminal's batches from their IPNs only, compared with the settlement's IPN: its
 * list, its counts and its sums.
 */
export class ExpectedTotals {
  readonly #batches = new Map<string, Batch>();
  /** Numbers of what was reversed: it counts nowhere. */
  readonly #reversed = new Set<number>();
  /** Settlements that succeeded. */
  settled = 0;

  /** @param original the number of what a Void voids */
  enter(partner: number, received: ReceivedIpn, original: number | undefined): void {
    const { ipn } = received;
    if (ipn.status !== "SUCCESS") return;
    if (received.kind === "settlement") {
      this.#batch(partner, ipn).settlement = received.ipn;
      this.settled += 1;
    } else if (received.headers.command === "SALE" || received.headers.command === "PREAUTH_COMPLETE") {
      this.#batch(partner, ipn).sales.set(numberOf(ipn.merchantTransId) ?? -1, Number(received.ipn.amount));
    } else if (
      received.headers.command === "VOID" &&
      received.ipn.transaction_type === "VOID" &&
      original !== undefined
    ) {
      this.#batch(partner, ipn).voided.add(original);
    }
  }

  /** The acquirer undid it, according to the service. */
  reverse(no: number): void {
    this.#reversed.add(no);
  }

  /** A sentence for each settlement that differs from the IPNs of its batch. */
  differences(): readonly string[] {
    return [...this.#batches].flatMap(([name, { settlement, sales, voided }]) => {
      if (settlement === undefined) return [];
      const counted = new Map([...sales].filter(([no]) => !this.#reversed.has(no)));
      return differencesOf(name, settlement, { sales: counted, voided });
    });
  }

  #batch(partner: number, { tid, batchNo }: CardIpn | SettlementIpn): Batch {
    const name = `partner ${partner} terminal ${tid} batch ${batchNo}`;
    const known = this.#batches.get(name);
    if (known !== undefined) return known;
    const batch: Batch = { sales: new Map(), voided: new Set(), settlement: undefined };
    this.#batches.set(name, batch);
    return batch;
  }
}

function differencesOf(name: string, settlement: SettlementIpn, { sales, voided }: Omit<Batch, "settlement">) {
  const saleTotal = sum(sales.values());
  const voidTotal = sum([...voided].map((no) => sales.get(no) ?? 0));
  const expected = {
    saleQuantity: sales.size,
    voidQuantity: voided.size,
    quantity: sales.size - voided.size,
    saleTotalAmount: saleTotal,
    voidTotalAmount: voidTotal,
    totalAmount: saleTotal + voidTotal,
  };
  const values = Object.entries(expected).flatMap(([field, value]) => {
    const stated = Number(settlement[field as keyof typeof expected]);
    return stated === value ? [] : [`${name}: ${field} is ${stated}, and its IPNs come to ${value}`];
  });
  const standing = new Set([...sales.keys()].filter((no) => !voided.has(no)));
  const listed = new Set(settlement.settlementList.map(({ reqId }) => numberOfReqId(reqId)));
  const missing = [...standing].find((no) => !listed.has(no));
  const extra = [...listed].find((no) => !standing.has(no));
  return [
    ...values,
    ...(missing === undefined ? [] : [`${name}: ${merchantTransIdOf(missing)} stands and is not listed`]),
    ...(extra === undefined ? [] : [`${name}: ${merchantTransIdOf(extra)} is listed and does not stand`]),
  ];
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
