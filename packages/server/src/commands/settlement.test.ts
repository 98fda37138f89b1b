import { commands, currencies, settlementIpnFields } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseAmount } from "./amount.ts";
import { reqId, start } from "./original.fixture.ts";
import type { SettlementRequest } from "./requests/request.ts";
import {
  type BatchRow,
  beginSettlement,
  completeSettlement,
  freezeSettlement,
  isCounted,
  type SettlementTotals,
  settlementTotals,
} from "./settlement.ts";

const request: SettlementRequest = {
  command: "SETTLEMENT",
  reqId,
  tid: "T1",
  mid: "M1",
  merchantTransId: "MT-1",
  extraData: "{}",
  deviceId: "D-request",
};
const terminal = { batchNo: "000007", deviceId: "D-registered" };
const begun = beginSettlement(request, terminal, start);
const totals: SettlementTotals = {
  currency: "USD",
  saleQuantity: 3,
  saleTotalMinor: 13_705n,
  voidQuantity: 1,
  voidTotalMinor: 3_000n,
};
const list = [
  { reqId: "a", refNo: "1" },
  { reqId: "b", refNo: "1" },
];
const frozen = freezeSettlement(begun, totals, list);

describe("a Settlement at INIT", () => {
  test("has every field of its table that is known before anything is counted", () => {
    expect(begun).toEqual({
      kind: "settlement",
      command: "SETTLEMENT",
      fields: {
        batchNo: "000007",
        deviceId: "D-request",
        extraData: "{}",
        id: start.id,
        merchantTransId: "MT-1",
        mid: "M1",
        reqId,
        status: "INIT",
        tid: "T1",
        transaction_time: "2026-11-21T01:02:03.456Z",
      },
      settlementList: [],
    });
  });

  test("has the terminal's device where the request names none", () => {
    for (const deviceId of [undefined, ""]) {
      expect(beginSettlement({ ...request, deviceId }, terminal, start).fields["deviceId"]).toBe("D-registered");
    }
  });
});

describe("a Settlement whose totals are frozen", () => {
  test("has the counts, the totals with exactly the currency's decimals, and the list of those that stand", () => {
    expect(frozen).toEqual({
      ...begun,
      fields: {
        ...begun.fields,
        quantity: "2",
        saleQuantity: "3",
        saleTotalAmount: "137.05",
        voidQuantity: "1",
        voidTotalAmount: "30.00",
      },
      settlementList: list,
      currency: "USD",
    });
  });

  test("holds nothing but its table's fields, and not those that settings, keys and the attempt make", () => {
    const made = new Set(["totalAmount", "transaction_type", "callbackUrl", "signature", "settlementList"]);
    const names = settlementIpnFields.map(({ name }) => name as string).filter((name) => !made.has(name));
    expect(Object.keys(frozen.fields).sort()).toEqual(names.sort());
  });

  test("of an empty batch has zeros, and no currency", () => {
    const none = { currency: "", saleQuantity: 0, saleTotalMinor: 0n, voidQuantity: 0, voidTotalMinor: 0n };
    const empty = freezeSettlement(begun, none, []);
    expect(empty.fields).toMatchObject({
      quantity: "0",
      saleQuantity: "0",
      saleTotalAmount: "0",
      voidQuantity: "0",
      voidTotalAmount: "0",
    });
    expect(empty).not.toHaveProperty("currency");
  });

  test("writes its totals exactly, in every currency", () => {
    const minors = fc.bigInt({ min: 1n, max: 10n ** 12n - 1n });
    fc.assert(
      fc.property(fc.constantFrom(...currencies), minors, minors, ([currency, decimals], sales, voids) => {
        const sums = { saleTotalMinor: sales, voidTotalMinor: voids };
        const { fields } = freezeSettlement(begun, { ...totals, ...sums, currency }, list);
        expect(parseAmount(fields["saleTotalAmount"] ?? "", decimals)).toBe(sales);
        expect(parseAmount(fields["voidTotalAmount"] ?? "", decimals)).toBe(voids);
        expect(fields["saleTotalAmount"]?.split(".")[1]?.length ?? 0).toBe(decimals);
      }),
    );
  });
});

describe("a Settlement that the acquirer answered", () => {
  test("accepted, is SUCCESS and keeps everything", () => {
    const completed = completeSettlement(frozen, { settled: true, refId: "123456789012", settlementDate: "0201" });
    expect(completed).toEqual({
      state: "SUCCESS",
      facts: {
        ...frozen,
        fields: {
          ...frozen.fields,
          status: "SUCCESS",
          isoResponseCode: "00",
          refId: "123456789012",
          settlementDate: "0201",
        },
      },
    });
    expect(completeSettlement(frozen, { settled: true }).facts.fields["refId"]).toBe("");
  });

  test("refused, is ERROR with the totals that were tried and an empty list", () => {
    expect(completeSettlement(frozen, { settled: false, code: "95" })).toEqual({
      state: "ERROR",
      facts: {
        ...frozen,
        fields: { ...frozen.fields, status: "ERROR", isoResponseCode: "95", refId: "", settlementDate: "" },
        settlementList: [],
      },
    });
  });
});

describe("totals", () => {
  const sale: BatchRow = { command: "SALE", state: "SUCCESS", amountMinor: 100n, voided: false, reversed: false };
  const rows = fc.array(
    fc.record({
      command: fc.constantFrom(...commands),
      state: fc.constantFrom("INIT", "SUCCESS", "ERROR"),
      // Far beyond what a number holds exactly.
      amountMinor: fc.bigInt({ min: 1n, max: 10n ** 30n }),
      voided: fc.boolean(),
      reversed: fc.boolean(),
    } satisfies Record<keyof BatchRow, unknown>),
  );
  const sum = (of: readonly BatchRow[]) => of.reduce((total, { amountMinor }) => total + amountMinor, 0n);

  describe("a batch's totals", () => {
    test("count a voided one on both sides, and a Void not by itself", () => {
      const batch: BatchRow[] = [
        sale,
        { ...sale, voided: true, amountMinor: 30n },
        { ...sale, command: "VOID", amountMinor: 30n },
        { ...sale, command: "PREAUTH_COMPLETE", amountMinor: 7n },
      ];
      expect(settlementTotals(batch, "USD")).toEqual({
        currency: "USD",
        saleQuantity: 3,
        saleTotalMinor: 137n,
        voidQuantity: 1,
        voidTotalMinor: 30n,
      });
    });

    test.each<[string, Partial<BatchRow>]>([
      ["declined", { state: "ERROR" }],
      ["in flight", { state: "INIT" }],
      ["reversed", { reversed: true }],
      ["reversed after it was voided", { reversed: true, voided: true }],
      ["a PreAuth that was not completed", { command: "PREAUTH" }],
    ])("do not count what is %s", (_, change) => {
      expect(settlementTotals([{ ...sale, ...change }], "USD")).toEqual({
        currency: "",
        saleQuantity: 0,
        saleTotalMinor: 0n,
        voidQuantity: 0,
        voidTotalMinor: 0n,
      });
    });

    test("are exact, whatever is in the batch and in whatever order", () => {
      fc.assert(
        fc.property(rows, (batch) => {
          const kinds = ["SALE", "PREAUTH_COMPLETE"];
          const counted = batch.filter(
            (row) => kinds.includes(row.command) && row.state === "SUCCESS" && !row.reversed,
          );
          const voids = counted.filter(({ voided }) => voided);
          const totals = settlementTotals(batch, "VND");
          expect(totals).toMatchObject({ saleQuantity: counted.length, voidQuantity: voids.length });
          expect(totals.saleTotalMinor).toBe(sum(counted));
          expect(totals.voidTotalMinor).toBe(sum(voids));
          expect(settlementTotals(batch.toReversed(), "VND")).toEqual(totals);
        }),
      );
    });

    test("less their Voids are what stands", () => {
      fc.assert(
        fc.property(rows, (batch) => {
          const { saleQuantity, voidQuantity, saleTotalMinor, voidTotalMinor } = settlementTotals(batch, "VND");
          const standing = batch.filter(isCounted);
          expect(saleQuantity - voidQuantity).toBe(standing.length);
          expect(saleTotalMinor - voidTotalMinor).toBe(sum(standing));
        }),
      );
    });
  });
});
