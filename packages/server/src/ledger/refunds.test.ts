import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { bookUnmatched, field, LedgerBench, LedgerTill } from "./ledger.fixture.ts";
import type { Transaction } from "./store.ts";

let till: LedgerTill;
const { bench, instance, partner } = await LedgerBench.ofFile({}, { refunds: "notified" });
beforeEach(() => {
  till = new LedgerTill();
});

/** A Sale of 150,000 VND whose batch was settled. */
async function settledSale(token = "tok_approve", of = partner): Promise<Transaction> {
  const sale = await instance.ended(of, till.sale(token));
  await instance.ended(of, till.settlement());
  return sale;
}

describe("a Refund", () => {
  test("refunds a settled Sale in parts, each with its own numbers, approval and IPN", async () => {
    const sale = await settledSale();
    const request = { ...till.refund(sale, "60000"), merchantTransId: "back-1" };
    const first = await instance.ended(partner, request);
    expect(first).toMatchObject({ state: "SUCCESS", originalId: sale.id, chainId: sale.chainId });
    const { fields } = first.facts;
    expect(fields).toMatchObject({
      amount: "60000",
      batchNo: "000002",
      invoiceNo: "000002",
      merchantTransId: "back-1",
    });
    expect(fields["cardNumber"]).toBe(field(sale, "cardNumber"));
    expect(fields["approveCode"]).not.toBe(field(sale, "approveCode"));
    expect(fields["refId"]).toMatch(/^\d{12}$/);
    expect(await bench.ipnsOf(first.id)).toEqual([first.facts]);
    expect(await instance.ended(partner, till.refund(sale, "90000"))).toMatchObject({ state: "SUCCESS" });
    const more = instance.run(partner, till.refund(sale, "1"));
    await expect(more).rejects.toMatchObject({ status: 409, code: "amount_above_refundable" });
  });

  test("counts for the acquirer in the open batch, and in no total of the settlement's IPN", async () => {
    const sale = await settledSale();
    await instance.ended(partner, till.refund(sale, "60000"));
    await instance.ended(partner, till.sale("tok_approve", "5"));
    const settled = await instance.ended(partner, till.settlement());
    expect(settled.facts.fields).toMatchObject({ status: "SUCCESS", saleQuantity: "1", saleTotalAmount: "5" });
    expect(settled.facts).toMatchObject({ settlementList: [{ refNo: expect.stringMatching(/^\d{12}$/) }] });
    const refunds = { refundQuantity: 1, refundTotalMinor: 60_000n };
    expect(bench.bank.settledBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: 1, ...refunds });
    const [batch] = await bench.query(
      "SELECT refund_quantity, refund_total_minor::text FROM batches WHERE settlement_id = $1",
      [settled.id],
    );
    expect(batch).toEqual({ refund_quantity: 1, refund_total_minor: "60000" });
  });

  test("enters no batch of another currency", async () => {
    const sale = await settledSale();
    await instance.ended(partner, till.sale("tok_approve", "12.50", "USD"));
    const refund = till.refund(sale);
    await expect(instance.run(partner, refund)).rejects.toMatchObject({ status: 409, code: "batch_currency" });
    await instance.ended(partner, till.settlement());
    expect(await instance.ended(partner, refund)).toMatchObject({ state: "SUCCESS" });
  });

  test("is uploaded with the rest of its batch if the totals differ", async () => {
    const sale = await settledSale();
    await instance.ended(partner, till.refund(sale, "60000"));
    bookUnmatched(bench, till, "000002");
    expect(await instance.ended(partner, till.settlement())).toMatchObject({ state: "SUCCESS" });
    const refunds = { refundQuantity: 1, refundTotalMinor: 60_000n };
    expect(bench.bank.settledBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: 0, ...refunds });
  });

  test("may be sent from another terminal of the merchant", async () => {
    const sale = await settledSale();
    const other = new LedgerTill();
    const refund = await instance.ended(partner, { ...till.refund(sale), tid: other.tid });
    expect(refund.facts.fields).toMatchObject({ status: "SUCCESS", tid: other.tid, invoiceNo: "000001" });
    await instance.ended(partner, other.settlement());
    expect(bench.bank.settledBatch(till.mid, other.tid, "VND")).toMatchObject({ refundQuantity: 1 });
  });

  test("that is not answered is reversed, and reserves its amount until that is done", async () => {
    const sale = await settledSale("tok_then_timeout");
    instance.nextFares("REVERSAL", { declines: "91" });
    const refund = await instance.ended(partner, till.refund(sale));
    expect(field(refund, "isoResponseCode")).toBe("68");
    const blocked = instance.run(partner, till.refund(sale));
    await expect(blocked).rejects.toMatchObject({ code: "amount_above_refundable" });
    await expect.poll(() => bench.reversalOf(refund.id)).toMatchObject({ code: "91" });
    await bench.runDueNow();
    await bench.reversed(refund.id);
    instance.nextFares("REFUND", {});
    expect(await instance.ended(partner, till.refund(sale))).toMatchObject({ state: "SUCCESS" });
  });

  test("reserves its amount while it has no outcome", async () => {
    const sale = await settledSale();
    const answer = bench.holdLink("the answer to a REFUND arrives");
    onTestFinished(() => answer.go());
    const refund = await instance.begun(partner, till.refund(sale, "90000"));
    await answer.reached;
    const tooMuch = instance.run(partner, till.refund(sale, "60001"));
    await expect(tooMuch).rejects.toMatchObject({ code: "amount_above_refundable" });
    answer.go();
    expect(await instance.endOf(refund)).toMatchObject({ state: "SUCCESS" });
    expect(await instance.ended(partner, till.refund(sale, "60000"))).toMatchObject({ state: "SUCCESS" });
  });

  test("reserves its amount while its Reversal is parked: beside it, no others exceed the Sale", async () => {
    const sale = await settledSale();
    instance.nextFares("REFUND", { answers: "never" });
    instance.nextFares("REVERSAL", { declines: "12" });
    const doubtful = await instance.ended(partner, till.refund(sale, "60000"));
    await instance.eventOf("reversal_refused", doubtful.id);
    expect(await bench.reversalOf(doubtful.id)).toMatchObject({ state: "PARKED" });
    const tooMuch = instance.run(partner, till.refund(sale, "90001"));
    await expect(tooMuch).rejects.toMatchObject({ code: "amount_above_refundable" });
    expect(await instance.ended(partner, till.refund(sale, "90000"))).toMatchObject({ state: "SUCCESS" });
    await expect(instance.run(partner, till.refund(sale, "1"))).rejects.toMatchObject({
      code: "amount_above_refundable",
    });
  });

  test("that is declined reserves nothing", async () => {
    const sale = await settledSale();
    instance.nextFares("REFUND", { declines: "05" });
    expect(await instance.ended(partner, till.refund(sale))).toMatchObject({ state: "ERROR" });
    expect(await instance.ended(partner, till.refund(sale))).toMatchObject({ state: "SUCCESS" });
  });

  test("never exceeds its Sale, however many are requested concurrently, wherever", async () => {
    const sale = await settledSale();
    const second = await bench.start();
    const asked = Array.from({ length: 12 }, (_, nth) =>
      (nth % 2 === 0 ? instance : second).ended(partner, till.refund(sale, "40000")),
    );
    const ended = await Promise.allSettled(asked);
    expect(ended.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    const codes = ended.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
    expect(new Set(codes)).toEqual(new Set(["amount_above_refundable"]));
  });

  test("whose instance died ends in doubt, and is reversed", async () => {
    const sale = await settledSale();
    const gone = await bench.start();
    const crashed = gone.crashesAt({ at: "ask", phase: "after" });
    const refund = await gone.begun(partner, till.refund(sale));
    await crashed;
    await instance.takeOver(partner);
    expect(await instance.endOf(refund)).toMatchObject({ facts: { fields: { isoResponseCode: "96" } } });
    await bench.reversed(refund.id);
  });

  test("is refused before the settlement and for other commands, and is itself final", async () => {
    const open = await instance.ended(partner, till.sale());
    await expect(instance.run(partner, till.refund(open))).rejects.toMatchObject({ code: "not_settled" });
    const preAuth = await instance.ended(partner, till.preAuth());
    await expect(instance.run(partner, till.refund(preAuth))).rejects.toMatchObject({ code: "not_refundable" });
    const voided = await instance.ended(partner, till.sale());
    await instance.ended(partner, till.void(voided));
    await instance.ended(partner, till.settlement());
    await expect(instance.run(partner, till.refund(voided))).rejects.toMatchObject({ code: "already_voided" });
    const refund = await instance.ended(partner, till.refund(open));
    await expect(instance.run(partner, till.void(refund))).rejects.toMatchObject({ code: "not_voidable" });
    await expect(instance.run(partner, till.refund(refund))).rejects.toMatchObject({ code: "not_refundable" });
    await expect(instance.run(partner, till.reversal(refund))).rejects.toMatchObject({ code: "not_reversible" });
  });

  test("is off by default, and has no IPN without an agreement", async () => {
    const plain = await bench.partner();
    const sale = await settledSale("tok_approve", plain);
    await expect(instance.run(plain, till.refund(sale))).rejects.toMatchObject({ status: 409, code: "refunds_off" });
    const silent = { ...plain, settings: { ...plain.settings, refunds: "silent" as const, callBackUrl: null } };
    const request = till.refund(sale);
    const refund = await instance.ended(silent, request);
    expect(refund).toMatchObject({ state: "SUCCESS", notification: null });
    expect(await bench.ipnsOf(refund.id)).toEqual([]);
    // Its answer was lost, and Refunds are off by now: the money went back all the same.
    expect(await instance.run(plain, request)).toMatchObject({ transaction: { id: refund.id } });
    const other = { ...request, amount: "1" };
    await expect(instance.run(plain, other)).rejects.toMatchObject({ code: "refunds_off" });
    const found = instance.life.holdsAnswerOf("findBegun");
    const again = instance.run(plain, request);
    await found.reached;
    await bench.query("DELETE FROM transactions WHERE id = $1", [refund.id]);
    found.release();
    await expect(again, "nothing begins that is off").rejects.toMatchObject({ code: "unavailable" });
  });
});
