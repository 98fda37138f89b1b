import { describe, expect, test } from "vitest";
import { field, LedgerBench, LedgerTill } from "./ledger.fixture.ts";

const dayMs = 86_400_000;

const { bench, instance, partner } = await LedgerBench.ofFile();
/** Answers may be held for as long as a test needs. */
const patient = await LedgerBench.ofFile({ acquirerTimeoutMs: 600_000 });
const { instance: unhurried, partner: other } = patient;

const sixDigits = /^\d{6}$/;

describe("a Void", () => {
  test("of a Sale inherits missing fields; its own are id, reqId, numbers, time, status and code", async () => {
    const till = new LedgerTill();
    const request = { ...till.sale(), billId: "bill-1", extraData: "{}", deviceId: "SN-1", appName: "Till 1" };
    const sale = await instance.ended(partner, request);
    const asked = till.void(sale);
    const voiding = await instance.ended(partner, asked);
    expect(voiding).toMatchObject({ command: "VOID", state: "SUCCESS", originalId: sale.id, chainId: sale.chainId });
    const { id, reqId, traceNo, transDateTime, refId, approveCode, ...inherited } = voiding.facts.fields;
    expect(sale.facts.fields).toMatchObject(inherited);
    expect({ id, reqId }).toEqual({ id: voiding.id, reqId: asked.reqId });
    expect(Number(traceNo)).toBe(Number(field(sale, "traceNo")) + 1);
    expect(transDateTime).not.toBe(field(sale, "transDateTime"));
    expect(await bench.ipnsOf(voiding.id)).toEqual([voiding.facts]);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "voided" });
  });

  test("uses its own fields if given, and never its original's callBackUrl", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, { ...till.sale(), callBackUrl: "https://127.0.0.1/sale" });
    const own = { merchantTransId: "void-1", billId: "bill-2", extraData: "x", deviceId: "SN-2", appName: "Till 2" };
    const voiding = await instance.ended(partner, { ...till.void(sale), ...own });
    expect(voiding.facts.fields).toMatchObject(own);
    expect(sale.callBackUrl).toBe("https://127.0.0.1/sale");
    expect(voiding.callBackUrl).toBeNull();
  });

  test("of a Sale or a PreAuth-Complete is a VOID in their batch, of a PreAuth a CANCEL in none", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const first = await instance.ended(partner, till.preAuth());
    const complete = await instance.ended(partner, till.complete(first));
    const second = await instance.ended(partner, till.preAuth());
    const facts: unknown[] = [];
    for (const original of [sale, complete, second]) {
      facts.push((await instance.ended(partner, till.void(original))).facts);
    }
    expect(facts).toMatchObject([
      { command: "VOID", fields: { batchNo: "000001", status: "SUCCESS" } },
      { command: "VOID", fields: { batchNo: "000001", status: "SUCCESS" } },
      { command: "VOID", voidsPreAuth: true, fields: { batchNo: "", status: "SUCCESS" } },
    ]);
    expect(facts.slice(0, 2).filter((one) => Object.hasOwn(Object(one), "voidsPreAuth"))).toEqual([]);
  });

  test("that was declined may be tried again; one that succeeded excludes another", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale("tok_then_decline_51"));
    for (const _ of [1, 2]) {
      const declined = await instance.ended(partner, till.void(sale));
      expect(declined).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "51" } } });
      expect(await bench.ipnsOf(declined.id)).toEqual([declined.facts]);
    }
    const other = await instance.ended(partner, till.sale());
    await instance.ended(partner, till.void(other));
    await expect(instance.run(partner, till.void(other))).rejects.toMatchObject({
      status: 409,
      code: "already_voided",
    });
  });

  test("that is in flight excludes another one, a Complete and a Reversal", async () => {
    const till = new LedgerTill();
    const preAuth = await unhurried.ended(other, till.preAuth());
    const answer = patient.bench.holdLink("the answer to a VOID arrives");
    const voiding = await unhurried.begun(other, till.void(preAuth));
    await answer.reached;
    for (const request of [till.void(preAuth), till.complete(preAuth), till.reversal(preAuth)]) {
      await expect(unhurried.run(other, request)).rejects.toMatchObject({ status: 409, code: "in_flight" });
    }
    answer.go();
    expect(await unhurried.endOf(voiding)).toMatchObject({ state: "SUCCESS" });
  });

  test("succeeds once, however many are requested concurrently", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const asked = await Promise.allSettled(Array.from({ length: 10 }, () => instance.ended(partner, till.void(sale))));
    expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const refused = asked.flatMap((one) => (one.status === "rejected" ? [one.reason.code] : []));
    expect(new Set([...refused, "in_flight", "already_voided"])).toEqual(new Set(["in_flight", "already_voided"]));
  });

  test("of a command without an outcome waits for it, and inherits nothing that is missing", async () => {
    const till = new LedgerTill();
    const answer = patient.bench.holdLink("the answer to a SALE arrives");
    const sale = await unhurried.begun(other, till.sale());
    await answer.reached;
    await expect(unhurried.ended(other, till.void(sale))).rejects.toMatchObject({ code: "in_flight" });
    answer.go();
    await unhurried.endOf(sale);
    const voiding = await unhurried.ended(other, till.void(sale));
    const { facts } = await unhurried.find(other, sale.id);
    const { approveCode = "", invoiceNo = "" } = facts.fields;
    expect(approveCode).not.toBe("");
    expect(voiding).toMatchObject({ state: "SUCCESS", facts: { fields: { approveCode, invoiceNo } } });
  });

  test("of a command that ends after it was read waits, too: what was read has no approval code to inherit", async () => {
    const till = new LedgerTill();
    const answer = patient.bench.holdLink("the answer to a SALE arrives");
    const sale = await unhurried.begun(other, till.sale());
    await answer.reached;
    const read = unhurried.life.holdsAnswerOf("find");
    const voiding = unhurried.run(other, till.void(sale));
    await read.reached;
    answer.go();
    await unhurried.endOf(sale);
    read.release();
    await expect(voiding).rejects.toMatchObject({ code: "in_flight" });
  });

  test("is refused for a declined or voided one, a Void, an unknown one, or another partner's", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const voiding = await instance.ended(partner, till.void(sale));
    const declined = await instance.ended(partner, till.sale("tok_decline_05"));
    const stranger = await bench.partner();
    await expect(instance.run(partner, till.void(voiding))).rejects.toMatchObject({ code: "not_voidable" });
    await expect(instance.run(partner, till.void(declined))).rejects.toMatchObject({ code: "not_successful" });
    const unknown = { ...till.void(sale), transactionId: "01980000-0000-7000-8000-000000000000" };
    await expect(instance.run(partner, unknown)).rejects.toMatchObject({ status: 404, code: "not_found" });
    await expect(instance.run(stranger, till.void(sale))).rejects.toMatchObject({ status: 404, code: "not_found" });
    const malformed = { ...till.void(sale), transactionId: "order-1" };
    await expect(instance.run(partner, malformed)).rejects.toMatchObject({ status: 404, code: "not_found" });
  });

  test("of a settled transaction is refused; of a PreAuth it is not, whatever was settled since", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const preAuth = await instance.ended(partner, till.preAuth());
    for (const _ of [1, 2]) await instance.ended(partner, till.settlement());
    await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ status: 409, code: "batch_settled" });
    expect(await instance.ended(partner, till.void(preAuth))).toMatchObject({ state: "SUCCESS" });
  });
});

describe("a PreAuth", () => {
  test("belongs to no batch, takes an invoiceNo, and is completed in the batch that is open then", async () => {
    const till = new LedgerTill();
    const preAuth = await instance.ended(partner, till.preAuth());
    expect(preAuth.facts.fields).toMatchObject({ batchNo: "", invoiceNo: "000001", isoResponseCode: "00" });
    for (const quantity of ["0", "0"]) {
      const settled = await instance.ended(partner, till.settlement());
      expect(settled.facts).toMatchObject({ fields: { quantity, saleTotalAmount: "0" }, settlementList: [] });
    }
    const complete = await instance.ended(partner, till.complete(preAuth, "100000"));
    expect(complete.facts.fields).toMatchObject({
      amount: "100000",
      batchNo: "000003",
      invoiceNo: "000001",
      refId: expect.stringMatching(/^\d{12}$/),
      traceNo: expect.stringMatching(sixDigits),
    });
    expect(bench.bank.find(complete.id)).toMatchObject({ state: "stands", amountMinor: 100_000n });
    const settled = await instance.ended(partner, till.settlement());
    expect(settled.facts).toMatchObject({
      fields: { batchNo: "000003", saleQuantity: "1", saleTotalAmount: "100000" },
      settlementList: [{ reqId: field(complete, "reqId"), refNo: field(complete, "refId") }],
    });
  });

  test("in another currency than the open batch is voided at once, and completed only after that is settled", async () => {
    const till = new LedgerTill();
    const preAuth = () => instance.ended(partner, till.preAuth("tok_approve", "12.50", "USD"));
    const [voided, completed] = [await preAuth(), await preAuth()];
    await instance.ended(partner, till.sale());
    expect(await instance.ended(partner, till.void(voided))).toMatchObject({ state: "SUCCESS" });
    const complete = till.complete(completed, "12.50");
    await expect(instance.run(partner, complete)).rejects.toMatchObject({ status: 409, code: "batch_currency" });
    await instance.ended(partner, till.settlement());
    expect(await instance.ended(partner, complete)).toMatchObject({ state: "SUCCESS", amountMinor: 1_250n });
  });

  test("is completed at most for its amount, and once", async () => {
    const till = new LedgerTill();
    const preAuth = await instance.ended(partner, till.preAuth("tok_approve", "12.50", "USD"));
    const above = till.complete(preAuth, "12.51");
    await expect(instance.run(partner, above)).rejects.toMatchObject({ status: 409, code: "amount_above_authorised" });
    const decimals = till.complete(preAuth, "12.505");
    await expect(instance.run(partner, decimals)).rejects.toMatchObject({ status: 400, code: "invalid_amount" });
    expect(await instance.ended(partner, till.complete(preAuth, "12.5"))).toMatchObject({ state: "SUCCESS" });
    const twice = till.complete(preAuth, "0.01");
    await expect(instance.run(partner, twice)).rejects.toMatchObject({ status: 409, code: "already_completed" });
  });

  test("is completed at another terminal of its merchant, with that one's numbers, device and batch", async () => {
    const [till, other] = [new LedgerTill(), new LedgerTill()];
    const preAuth = await instance.ended(partner, { ...till.preAuth(), deviceId: "SN-1" });
    for (const _ of [1, 2]) await instance.ended(partner, other.sale());
    const complete = await instance.ended(partner, { ...till.complete(preAuth, "90000"), tid: other.tid });
    const { fields } = complete.facts;
    expect(fields).toMatchObject({ status: "SUCCESS", tid: other.tid, mid: till.mid, deviceId: "" });
    expect(fields).toMatchObject({ traceNo: "000003", invoiceNo: "000003", batchNo: "000001" });
    expect(bench.bank.find(complete.id)).toMatchObject({ tid: other.tid, state: "stands" });
    const there = await instance.ended(partner, other.settlement());
    expect(there.facts.fields).toMatchObject({ status: "SUCCESS", saleQuantity: "3", saleTotalAmount: "390000" });
    const here = await instance.ended(partner, till.settlement());
    expect(here.facts.fields).toMatchObject({ status: "SUCCESS", saleQuantity: "0" });
  });

  test("is not completed at another merchant's terminal, and voided where its Complete was", async () => {
    const [till, other] = [new LedgerTill(), new LedgerTill()];
    const preAuth = await instance.ended(partner, till.preAuth());
    const foreign = { ...other.sale(), mid: "M00000000000002" };
    await instance.ended(partner, foreign);
    const complete = { ...till.complete(preAuth), tid: other.tid };
    await expect(instance.run(partner, complete)).rejects.toMatchObject({ code: "terminal_mid_mismatch" });
    const third = new LedgerTill();
    const completed = await instance.ended(partner, { ...till.complete(preAuth), tid: third.tid });
    const voiding = await instance.ended(partner, third.void(completed));
    expect(voiding.facts.fields).toMatchObject({ status: "SUCCESS", tid: third.tid });
  });

  test("that was completed elsewhere without an answer: the Complete is reversed where it was sent", async () => {
    const [till, other] = [new LedgerTill(), new LedgerTill()];
    const preAuth = await instance.ended(partner, till.preAuth());
    instance.nextFares("PREAUTH_COMPLETE", { answers: "never" });
    const complete = await instance.ended(partner, { ...till.complete(preAuth), tid: other.tid });
    expect(field(complete, "isoResponseCode")).toBe("68");
    await bench.reversed(complete.id);
    expect(await instance.ended(partner, till.complete(preAuth))).toMatchObject({ state: "SUCCESS" });
  });

  test("that was completed is not voided; its Complete is, which does not reopen it", async () => {
    const till = new LedgerTill();
    const preAuth = await instance.ended(partner, till.preAuth());
    const complete = await instance.ended(partner, till.complete(preAuth));
    await expect(instance.run(partner, till.void(preAuth))).rejects.toMatchObject({ code: "already_completed" });
    expect(await instance.ended(partner, till.void(complete))).toMatchObject({ state: "SUCCESS" });
    await expect(instance.run(partner, till.complete(preAuth))).rejects.toMatchObject({ code: "already_completed" });
    await expect(instance.run(partner, till.complete(complete))).rejects.toMatchObject({ code: "not_completable" });
  });

  test("whose Complete was declined may be completed again", async () => {
    const till = new LedgerTill();
    const preAuth = await instance.ended(partner, till.preAuth());
    instance.nextFares("PREAUTH_COMPLETE", { declines: "51" });
    expect(await instance.ended(partner, till.complete(preAuth))).toMatchObject({ state: "ERROR" });
    expect(await instance.ended(partner, till.complete(preAuth))).toMatchObject({ state: "SUCCESS" });
  });

  test("can be completed for 30 days and not longer, and voided at any time", async () => {
    const till = new LedgerTill();
    const [kept, expired] = await Promise.all([1, 2].map(() => instance.ended(partner, till.preAuth())));
    if (kept === undefined || expired === undefined) throw new Error("two were begun");
    try {
      bench.aheadMs = 30 * dayMs + kept.createdAtMs - Date.now() - 60_000;
      expect(await instance.ended(partner, till.complete(kept))).toMatchObject({ state: "SUCCESS" });
      bench.aheadMs = 30 * dayMs + 60_000;
      const late = instance.run(partner, till.complete(expired));
      await expect(late).rejects.toMatchObject({ status: 409, code: "preauth_expired" });
      expect(await instance.ended(partner, till.void(expired))).toMatchObject({ state: "SUCCESS" });
      expect(bench.bank.find(expired.id)).toMatchObject({ state: "voided" });
    } finally {
      bench.aheadMs = 0;
    }
  });
});
