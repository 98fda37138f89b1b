import { describe, expect, test } from "vitest";
import type { AcquirerAnswer } from "../acquirer.ts";
import { again, emptyTotals, Till } from "../till.fixture.ts";
import { SimulatedBank } from "./bank.ts";

const elsewhere: AcquirerAnswer = { responseCode: "00", approveCode: "A1B2C3", refId: "000000000001", tc: "" };

describe("a bank's books", () => {
  test("hold every message once, what became of it, and no card", () => {
    const bank = new SimulatedBank({ strict: true });
    const till = new Till();
    const [sale, declined, preAuth] = [till.sale("t"), till.sale("t"), till.preAuth("t")];
    const voided = till.void(sale, bank.receive(sale));
    bank.receive(declined, { declines: "51" });
    bank.receive(till.complete(preAuth, bank.receive(preAuth), 1n));
    bank.receive(voided);
    bank.receive(again(voided));
    expect(bank.all().map(({ command, responseCode, state }) => [command, responseCode, state])).toEqual([
      ["PREAUTH", "00", "completed"],
      ["SALE", "00", "voided"],
      ["SALE", "51", "declined"],
      ["PREAUTH_COMPLETE", "00", "stands"],
      ["VOID", "00", "stands"],
    ]);
    expect(Object.keys(bank.find(sale.transactionId) ?? {})).not.toContain("cardToken");
    const totals = { saleQuantity: 2, saleTotalMinor: 150_001n, voidQuantity: 1, voidTotalMinor: 150_000n };
    expect(bank.openBatch(till.mid, till.tid, "VND")).toEqual({ batchNo: "000001", ...emptyTotals, ...totals });
  });

  test("follow the upload: an uploaded transaction is settled as it says, any other is removed", () => {
    const bank = new SimulatedBank({ strict: true });
    const till = new Till();
    const [dropped, kept] = [till.sale("t", 700n), till.sale("t", 40n)];
    const droppedAnswer = bank.receive(dropped);
    const keptAnswer = bank.receive(kept);
    const voidOfKept = till.void(kept, keptAnswer);
    bank.receive(voidOfKept);
    const settlement = till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: 40n });
    expect(bank.receive(settlement).responseCode).toBe("95");
    bank.receive(till.upload(kept, keptAnswer));
    expect(bank.receive({ ...settlement, afterUpload: true }).responseCode).toBe("00");
    expect(bank.all().map(({ transactionId, state }) => [transactionId, state])).toEqual([
      [kept.transactionId, "settled"],
    ]);
    expect(bank.settledBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: 1, saleTotalMinor: 40n });
    expect(bank.openBatch(till.mid, till.tid, "VND")).toBeUndefined();
    expect(bank.receive(again(dropped)).responseCode).toBe("12");
    expect(bank.receive(till.void(dropped, droppedAnswer)).responseCode).toBe("25");
  });

  test("do not settle by an upload that lacks something, in a strict bank", () => {
    const bank = new SimulatedBank({ strict: true });
    const till = new Till();
    const settlement = till.settlement({ ...emptyTotals, saleQuantity: 2, saleTotalMinor: 80n });
    expect(bank.receive(settlement).responseCode).toBe("95");
    bank.receive(till.upload(till.sale("t", 40n), elsewhere));
    expect(bank.receive({ ...settlement, afterUpload: true }).responseCode).toBe("95");
  });

  test("forget uploads that are older than the mismatch", () => {
    const bank = new SimulatedBank({ strict: true });
    const till = new Till();
    bank.receive(till.upload(till.sale("t", 5n), elsewhere));
    const settlement = till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: 40n });
    bank.receive(settlement);
    bank.receive(till.upload(till.sale("t", 40n), elsewhere));
    expect(bank.receive({ ...settlement, afterUpload: true }).responseCode).toBe("00");
  });

  test("take nothing into a settled batch, nor into another while one is open, in a strict bank", () => {
    const bank = new SimulatedBank({ strict: true });
    const till = new Till();
    bank.receive(till.settlement(emptyTotals));
    expect(bank.receive(till.sale("t")).responseCode).toBe("12");
    till.batchNo = "000002";
    expect(bank.receive(till.sale("t")).responseCode).toBe("00");
    till.batchNo = "000003";
    expect(bank.receive(till.sale("t")).responseCode).toBe("12");
  });

  test("keep what was settled and what was completed from being reversed", () => {
    const bank = new SimulatedBank({ strict: true });
    const till = new Till();
    const preAuth = till.preAuth("t", 9n);
    const complete = till.complete(preAuth, bank.receive(preAuth));
    bank.receive(complete);
    expect(bank.receive(till.reversal(preAuth)).responseCode).toBe("12");
    bank.receive(till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: 9n }));
    expect(bank.receive(till.reversal(complete)).responseCode).toBe("12");
    expect(bank.find(complete.transactionId)?.state).toBe("settled");
  });

  test("do not find an original by a wrong reference, nor a reversed message by another traceNo", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    const sale = till.sale("t");
    const answer = bank.receive(sale);
    expect(bank.receive(till.void(sale, { ...answer, refId: "1" })).responseCode).toBe("25");
    expect(bank.receive(till.void(sale, { ...answer, approveCode: "" })).responseCode).toBe("25");
    expect(bank.receive({ ...till.reversal(sale), traceNo: "000099" }).responseCode).toBe("25");
    expect(bank.receive({ ...till.void(sale, answer), amountMinor: 1n }).responseCode).toBe("64");
    expect(bank.receive({ ...till.void(sale, answer), transactionId: sale.transactionId }).responseCode).toBe("94");
    expect(bank.find(sale.transactionId)?.state).toBe("stands");
  });

  test("forget the oldest beyond their bound, PreAuths apart, without forgetting its amount", () => {
    const bank = new SimulatedBank({ strict: true, bookingsMax: 2 });
    const till = new Till();
    const preAuth = till.preAuth("t");
    const preAuthAnswer = bank.receive(preAuth);
    const sales = [1n, 2n, 3n, 4n].map((amountMinor) => till.sale("t", amountMinor));
    for (const sale of sales) bank.receive(sale);
    expect(bank.all().map(({ amountMinor }) => amountMinor)).toEqual([150_000n, 3n, 4n]);
    expect(bank.receive(till.void(preAuth, preAuthAnswer)).responseCode).toBe("00");
    const settlement = till.settlement({ ...emptyTotals, saleQuantity: 4, saleTotalMinor: 10n });
    expect(bank.receive(settlement).responseCode).toBe("00");
  });

  test("forget the terminal known longest beyond their bound", () => {
    const bank = new SimulatedBank({ terminalsMax: 1 });
    const [one, other] = [new Till(1), new Till(2)];
    bank.receive(one.sale("t"));
    bank.receive(other.sale("t"));
    expect(bank.openBatch(one.mid, one.tid, "VND")).toBeUndefined();
    expect(bank.openBatch(other.mid, other.tid, "VND")).toMatchObject({ saleQuantity: 1 });
  });
});

describe("a bank that is not strict", () => {
  test("takes an original over from the Void that describes it, once, and settles its batch", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    const sale = till.sale("t", 40n);
    const voided = till.void(sale, elsewhere);
    expect(bank.receive(voided).responseCode).toBe("00");
    expect(bank.receive(till.void(sale, elsewhere)).responseCode).toBe("12");
    expect(bank.receive(till.reversal(voided)).responseCode).toBe("00");
    expect(bank.find(sale.transactionId)).toMatchObject({ command: "SALE", state: "stands" });
    expect(bank.receive(till.settlement({ ...emptyTotals, saleQuantity: 9, saleTotalMinor: 9n })).responseCode).toBe(
      "00",
    );
  });

  test("takes a PreAuth over from its Void and from its PreAuth-Complete", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    const [voided, completed] = [till.preAuth("t"), till.preAuth("t")];
    expect(bank.receive(till.void(voided, elsewhere)).responseCode).toBe("00");
    expect(bank.receive(till.complete(completed, elsewhere, 5n)).responseCode).toBe("00");
    expect(bank.find(voided.transactionId)).toMatchObject({ command: "PREAUTH", state: "voided" });
    expect(bank.find(completed.transactionId)).toMatchObject({ command: "PREAUTH", state: "completed" });
    expect(bank.openBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: 1, saleTotalMinor: 5n });
  });

  test("takes nothing over that is not described, or was reversed before it came", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    const [vague, reversed] = [till.sale("t"), till.sale("t")];
    expect(bank.receive(till.void(vague, { ...elsewhere, refId: "" })).responseCode).toBe("25");
    bank.receive(till.reversal(reversed));
    expect(bank.receive(till.void(reversed, elsewhere)).responseCode).toBe("25");
  });

  test("believes a Settlement that counts more than it saw, and none that counts less", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    bank.receive(till.sale("t", 40n));
    expect(bank.receive(till.settlement(emptyTotals)).responseCode).toBe("95");
    const more = { ...emptyTotals, saleQuantity: 3, saleTotalMinor: 90n };
    expect(bank.receive(till.settlement(more)).responseCode).toBe("00");
  });

  test("settles by an upload that it saw in part", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    const sale = till.sale("t", 40n);
    bank.receive(till.upload(sale, bank.receive(sale)));
    const totals = { ...emptyTotals, saleQuantity: 2, saleTotalMinor: 50n };
    expect(bank.receive({ ...till.settlement(totals), afterUpload: true }).responseCode).toBe("00");
  });

  test("follows a terminal into its next batch, and still voids what it sold in the one before", () => {
    const bank = new SimulatedBank();
    const till = new Till();
    const sale = till.sale("t");
    const answer = bank.receive(sale);
    const voided = till.void(sale, answer);
    till.batchNo = "000002";
    bank.receive(till.sale("t", 2n));
    expect(bank.openBatch(till.mid, till.tid, "VND")).toMatchObject({ batchNo: "000002", saleTotalMinor: 2n });
    expect(bank.receive(voided).responseCode).toBe("00");
  });
});

test("a strict bank takes an upload for the repeat of another one that has its number and time", () => {
  const bank = new SimulatedBank({ strict: true });
  const till = new Till();
  const [one, other] = [till.sale("t", 1n), till.sale("t", 2n)];
  const first = till.upload(one, bank.receive(one));
  const second = till.upload(other, bank.receive(other));
  expect(bank.receive(first).responseCode).toBe("00");
  expect(bank.receive({ ...first, repeat: true }).responseCode).toBe("00");
  const { traceNo, atMs } = first;
  expect(bank.receive({ ...second, traceNo, atMs }).responseCode).toBe("94");
  expect(bank.receive(second).responseCode).toBe("00");
});
