import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Sample, sampleIpn, sampleKeys } from "../testing.ts";
import { chainOf, knownFrom, orderOf } from "./order.ts";

const hourMs = 3_600_000;
const startMs = Date.UTC(2026, 0, 1);
const at = (ms: number) => ({ ...sampleKeys, clock: { nowMs: () => startMs + ms } });
const facts = (sample: Sample) => knownFrom(sample.received);
const orderAfter = (sample: Sample, ...seen: readonly Sample[]) => orderOf(facts(sample), seen.map(facts));

const sale = sampleIpn({ command: "SALE" }, at(0));
const declinedVoid = sampleIpn({ command: "VOID", of: sale, declined: "91" }, at(1_000));
const saleVoid = sampleIpn({ command: "VOID", of: sale }, at(2_000));
const preAuth = sampleIpn({ command: "PREAUTH", ipn: { invoiceNo: "000009" } }, at(0));
const complete = sampleIpn({ command: "PREAUTH_COMPLETE", of: preAuth }, at(1_000));
const completeVoid = sampleIpn({ command: "VOID", of: complete }, at(2_000));
const cancel = sampleIpn({ command: "VOID", of: preAuth }, at(1_000));

describe("a chain", () => {
  it("is the same for a Sale and its Void, for a PreAuth, its Complete and the Complete's Void", () => {
    expect(chainOf(saleVoid.received)).toBe(chainOf(sale.received));
    expect(new Set([preAuth, complete, completeVoid].map(({ received }) => chainOf(received))).size).toBe(1);
    expect(chainOf(preAuth.received)).not.toBe(chainOf(sale.received));
  });

  it("is the IPN's own without an invoiceNo, and for a settlement", () => {
    const none = { ipn: { invoiceNo: "" } };
    const settlements = [sampleIpn({ command: "SETTLEMENT" }), sampleIpn({ command: "SETTLEMENT" })];
    const all = [sampleIpn(none), sampleIpn(none), ...settlements].map(({ received }) => chainOf(received));
    expect(new Set(all).size).toBe(4);
  });

  it("is another one at another terminal of the merchant, whose invoice numbers are the same", () => {
    const one = sampleIpn({ ipn: { mid: "a", tid: "1" } });
    const other = sampleIpn({ ipn: { mid: "a", tid: "2" } });
    expect(one.received.ipn).toMatchObject({ invoiceNo: (other.received.ipn as { invoiceNo?: string }).invoiceNo });
    expect(chainOf(one.received)).not.toBe(chainOf(other.received));
  });

  it("does not confuse a merchant and a terminal whose concatenated names are equal", () => {
    const one = sampleIpn({ ipn: { mid: "a,b", tid: "c" } });
    const other = sampleIpn({ ipn: { mid: "a", tid: "b,c" } });
    expect(chainOf(one.received)).not.toBe(chainOf(other.received));
  });

  it("does not depend on any header, because none is signed", () => {
    const stripped = { ...saleVoid.received, command: undefined, originalTransactionId: undefined };
    expect(chainOf(stripped)).toBe(chainOf(saleVoid.received));
  });
});

describe("an IPN", () => {
  it("is known by facts of its own", () => {
    const { id, reqId } = sale.received.ipn;
    const shared = { command: "", status: "SUCCESS", amount: "150000", batchNo: "000001", preAuthId: undefined };
    expect(facts(sale)).toEqual({
      ...{ ...shared, id, reqId, transactionType: "SALE", isoResponseCode: "00", currency: "VND" },
      ...{ refId: "432198765432", merchantTransId: "order-1" },
    });
    const settled = sampleIpn({ command: "SETTLEMENT", ipn: { merchantTransId: "day-1" } });
    expect(facts(settled)).toEqual({
      ...{ ...shared, id: settled.received.ipn.id, reqId: settled.received.ipn.reqId, command: "SETTLEMENT" },
      ...{ transactionType: "SETTLE", isoResponseCode: "", currency: "", refId: "", merchantTransId: "day-1" },
    });
  });

  it("is the latest and not stale if it is the first of its chain", () => {
    expect(orderAfter(sale)).toEqual({ stale: false, latest: facts(sale), known: [] });
  });

  it("is stale if its Void arrived before", () => {
    expect(orderAfter(sale, saleVoid)).toEqual({ stale: true, latest: facts(saleVoid), known: [facts(saleVoid)] });
  });

  it("is not stale if a failed Void arrived before", () => {
    const order = orderAfter(sale, declinedVoid);
    expect(order).toEqual({ stale: false, latest: facts(sale), known: [facts(declinedVoid)] });
  });

  it("gets the IPNs that it follows: a Void is not stale after its Sale", () => {
    expect(orderAfter(saleVoid, sale)).toEqual({ stale: false, latest: facts(saleVoid), known: [facts(sale)] });
  });

  it("of a failed Void is stale after a later successful Void; otherwise the Sale remains the latest", () => {
    expect(orderAfter(declinedVoid, sale, saleVoid)).toMatchObject({ stale: true, latest: facts(saleVoid) });
    expect(orderAfter(declinedVoid, sale)).toMatchObject({ stale: false, latest: facts(sale) });
  });

  it.each([
    ["PreAuth", preAuth, [complete], complete],
    ["PreAuth", preAuth, [completeVoid], completeVoid],
    ["PreAuth", preAuth, [cancel], cancel],
    ["Complete", complete, [completeVoid, preAuth], completeVoid],
  ])("of a %s is stale when what follows came before it", (_, late, seen, latest) => {
    expect(orderAfter(late, ...seen)).toMatchObject({ stale: true, latest: facts(latest) });
  });

  it("belongs to another invoice when the terminal's numbers have wrapped around", () => {
    const again = sampleIpn({ command: "SALE" }, at(48 * hourMs));
    const againVoid = sampleIpn({ command: "VOID", of: again }, at(48 * hourMs + 1_000));
    expect(orderAfter(again, sale, saleVoid)).toEqual({ stale: false, latest: facts(again), known: [] });
    expect(orderAfter(againVoid, sale, saleVoid, again).known).toEqual([facts(again)]);
    // The old Sale arrives last: the new one's Void does not belong to it.
    expect(orderAfter(sale, again, againVoid)).toEqual({ stale: false, latest: facts(sale), known: [] });
  });

  it("and its Void are one chain, although the clock of the Void's instance is an hour behind", () => {
    const early = sampleIpn({ command: "VOID", of: sale }, at(-3_500_000));
    expect(orderAfter(sale, early)).toMatchObject({ stale: true, latest: facts(early) });
  });

  it("of another Sale is not of its chain, although a switch gave both one number", () => {
    const another = sampleIpn({ command: "SALE", declined: "51" }, at(1_000));
    expect(orderAfter(another, sale)).toEqual({ stale: false, latest: facts(another), known: [] });
  });

  it("of a Complete follows its PreAuth for days, and not one of that number that was voided", () => {
    const options = { ...at(48 * hourMs), fields: "extended" } as const;
    const late = sampleIpn({ command: "PREAUTH_COMPLETE", of: preAuth }, options);
    const refused = sampleIpn({ command: "VOID", of: preAuth, declined: "91" }, at(1_000));
    expect(orderAfter(late, preAuth, refused).known).toEqual([facts(preAuth), facts(refused)]);
    expect(orderAfter(late, preAuth, cancel)).toEqual({ stale: false, latest: facts(late), known: [] });
  });

  it("gets the others in the order of their steps, also from records that are older than batchNo", () => {
    const { batchNo: _, ...older } = facts(preAuth);
    const order = orderOf(facts(completeVoid), [facts(complete), older]);
    expect(order.known).toEqual([older, facts(complete)]);
    expect(orderOf(facts(complete), [older]).known).toEqual([older]);
  });

  it("goes by its command, where that is signed, and not by the transaction_type that was agreed on for it", () => {
    const typed = { ...facts(saleVoid), transactionType: "SALE" };
    const refund = { ...facts(saleVoid), command: "REFUND", transactionType: "VOID" } as const;
    expect(orderOf(facts(sale), [{ ...typed, command: "VOID" }])).toMatchObject({ stale: true });
    expect(orderOf(facts(sale), [refund])).toMatchObject({ stale: false });
  });

  it("with a switch's own id is ordered by its invoiceNo only", () => {
    const own = sampleIpn({ ipn: { id: "sale-1" } });
    const ownVoid = sampleIpn({ command: "VOID", of: own, ipn: { id: "void-1" } });
    expect(orderAfter(own, ownVoid)).toMatchObject({ stale: true, latest: { id: "void-1" } });
  });
});

describe("in whatever order a chain's IPNs come", () => {
  it.each([
    ["a Sale with two Voids", [sale, declinedVoid, saleVoid], saleVoid],
    ["a completed and voided PreAuth", [preAuth, complete, completeVoid], completeVoid],
    ["a voided PreAuth", [preAuth, cancel], cancel],
  ])("%s ends in the same state, and nothing before the last state is acted on after it", (_, chain, last) => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...chain], { minLength: chain.length }), (arrival) => {
        const orders = arrival.map((sample, index) => orderAfter(sample, ...arrival.slice(0, index)));
        expect(orders.at(-1)?.latest).toEqual(facts(last));
        const lastAt = arrival.indexOf(last);
        expect(orders.map(({ stale }) => stale).slice(lastAt + 1)).toEqual(arrival.slice(lastAt + 1).map(() => true));
        expect(orders[lastAt]?.stale).toBe(false);
      }),
    );
  });
});
