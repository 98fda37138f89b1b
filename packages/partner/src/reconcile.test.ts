import { randomUUID } from "node:crypto";
import type { CardIpn, SettlementIpn } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Misused } from "./errors/misused.ts";
import { reconcile } from "./reconcile.ts";
import { sampleIpn } from "./testing.ts";

interface Plan {
  /** In hundredths. */
  readonly amount: number;
  readonly what: "sold" | "completed" | "voided" | "declined" | "preauthorised" | "void declined" | "cancelled";
  readonly refId: string;
}

const plans = fc.array(
  fc.record<Plan>({
    amount: fc.integer({ min: 1, max: 1_000_000 }),
    what: fc.constantFrom("sold", "completed", "voided", "declined", "preauthorised", "void declined", "cancelled"),
    // A refNo may repeat.
    refId: fc.constantFrom("100000000001", "100000000002", "100000000003"),
  }),
  { maxLength: 12 },
);

const card = (what: Parameters<typeof sampleIpn>[0]) => sampleIpn(what).received.ipn as CardIpn;
const asAmount = (hundredths: bigint) => `${hundredths / 100n}.${String(hundredths % 100n).padStart(2, "0")}`;

/** The IPNs of one batch, and the settlement that follows. */
function batchOf(all: readonly Plan[], settlementTotal: "sum" | "net" = "sum") {
  const transactions: CardIpn[] = [];
  const standing: CardIpn[] = [];
  const totals = { sale: 0n, void: 0n, saleQuantity: 0, voidQuantity: 0 };
  for (const [index, { amount, what, refId }] of all.entries()) {
    const own = { invoiceNo: String(index + 1).padStart(6, "0"), amount: asAmount(BigInt(amount)), refId };
    if (what === "declined") {
      transactions.push(card({ declined: "51", ipn: { ...own, refId: "" } }));
      continue;
    }
    const preAuthorises = what === "preauthorised" || what === "completed" || what === "cancelled";
    const first = sampleIpn({ command: preAuthorises ? "PREAUTH" : "SALE", ipn: own });
    transactions.push(first.received.ipn);
    if (what === "cancelled") transactions.push(card({ command: "VOID", of: first }));
    if (what === "cancelled" || what === "preauthorised") continue;
    const complete = preAuthorises ? card({ command: "PREAUTH_COMPLETE", of: first, ipn: own }) : undefined;
    if (complete) transactions.push(complete);
    totals.sale += BigInt(amount);
    totals.saleQuantity += 1;
    if (what === "void declined") transactions.push(card({ command: "VOID", of: first, declined: "91" }));
    if (what !== "voided") {
      standing.push(complete ?? first.received.ipn);
      continue;
    }
    transactions.push(card({ command: "VOID", of: first }));
    totals.void += BigInt(amount);
    totals.voidQuantity += 1;
  }
  const settlement = sampleIpn({
    command: "SETTLEMENT",
    ipn: {
      quantity: String(totals.saleQuantity - totals.voidQuantity),
      saleQuantity: String(totals.saleQuantity),
      saleTotalAmount: asAmount(totals.sale),
      voidQuantity: String(totals.voidQuantity),
      voidTotalAmount: asAmount(totals.void),
      totalAmount: asAmount(settlementTotal === "sum" ? totals.sale + totals.void : totals.sale - totals.void),
      settlementList: standing.map(({ reqId, refId }) => ({ reqId, refNo: refId })),
    },
  }).received.ipn;
  return { transactions, settlement, standing };
}

const isStanding = (one: CardIpn | undefined, { settlementList }: SettlementIpn) =>
  settlementList.some(({ reqId }) => reqId === one?.reqId);
const sold = (count: number): Plan[] =>
  Array.from({ length: count }, (_, index) => ({ amount: 1_000 + index, what: "sold", refId: "100000000001" }));
const inCapitals = (settlement: SettlementIpn): SettlementIpn => {
  const settlementList = settlement.settlementList.map((entry) => ({ ...entry, reqId: entry.reqId.toUpperCase() }));
  return { ...settlement, settlementList };
};
const codesOf = ({ findings }: ReturnType<typeof reconcile>) => findings.map(({ code }) => code);

describe("a correct settlement", () => {
  it("is balanced, whatever is in the batch, in whatever order and however often it is passed", () => {
    fc.assert(
      fc.property(plans, fc.constantFrom("sum", "net"), fc.infiniteStream(fc.nat()), (all, settlementTotal, order) => {
        const { transactions, settlement } = batchOf(all, settlementTotal);
        const given = [...transactions, ...transactions.slice(0, 2)].sort(() => (order.next().value % 3) - 1);
        const result = reconcile(settlement, given, { settlementTotal });
        expect(result).toEqual({ balanced: true, settled: true, findings: [] });
      }),
    );
  });

  it("is balanced although other batches, terminals and merchants are passed too, and reqIds in capitals", () => {
    const { transactions, settlement } = batchOf(sold(3));
    const others = [{ batchNo: "000002" }, { tid: "T2" }, { mid: "M2" }].map((ipn) => card({ ipn }));
    const capitals = transactions.map((one) => ({ ...one, reqId: one.reqId.toUpperCase() }));
    expect(reconcile(settlement, [...others, ...capitals]).balanced).toBe(true);
    expect(reconcile(inCapitals(settlement), [...others, ...transactions]).balanced).toBe(true);
  });

  it("does not count a PreAuth that a switch gave the batch's number, nor its Void, if their command is known", () => {
    const { transactions, settlement } = batchOf(sold(2));
    const { batchNo } = settlement;
    const preAuth = { ...card({ command: "PREAUTH", ipn: { batchNo } }), command: "PREAUTH" };
    const ofPreAuth = { batchNo, transaction_type: "CANCEL" as const };
    const cancelled = {
      ...card({ command: "VOID" }),
      ...ofPreAuth,
      command: "VOID",
      originalTransactionId: preAuth.id,
    };
    expect(reconcile(settlement, [...transactions, preAuth, cancelled])).toMatchObject({ findings: [] });
    expect(reconcile(settlement, [...transactions, { ...preAuth, command: undefined }]).balanced).toBe(false);
  });

  it("is balanced for an empty batch", () => {
    expect(reconcile(batchOf([]).settlement, []).balanced).toBe(true);
  });

  it("is balanced without any reqId or invoiceNo, as a switch may report it", () => {
    const { transactions, settlement } = batchOf([
      ...sold(3),
      { amount: 1_000, what: "voided", refId: "100000000009" },
    ]);
    const bare = transactions.map((one) => ({ ...one, reqId: "", invoiceNo: "" }));
    const settlementList = settlement.settlementList.map((entry) => ({ ...entry, reqId: "" }));
    const [, , , sale, saleVoid] = bare;
    const linked = [...bare.slice(0, 3), sale, { ...saleVoid, originalTransactionId: sale?.id }];
    expect(reconcile({ ...settlement, settlementList }, linked as typeof bare)).toMatchObject({ findings: [] });
    // Nor the original. An amount may be written with fewer decimals than its currency has.
    const short = bare.map((one) => (one === saleVoid ? { ...one, amount: "10" } : one));
    expect(reconcile({ ...settlement, settlementList }, short)).toMatchObject({ findings: [] });
  });

  it("is balanced if only equal amounts and repeated references identify the voided transactions", () => {
    const [sale, voided] = ["sold", "voided"].map((what) => ({ amount: 1_000, what, refId: "100000000001" }) as Plan);
    const { transactions, settlement } = batchOf([voided, voided, sale, voided, sale] as Plan[]);
    const bare = transactions.map((one) => ({ ...one, invoiceNo: "" }));
    const capitals = bare.map((one) => ({ ...one, reqId: one.reqId.toUpperCase() }));
    for (const given of [bare, capitals]) expect(reconcile(settlement, given).findings).toEqual([]);
    expect(reconcile(inCapitals(settlement), bare).findings).toEqual([]);
    // Another batch, passed first, has some with the same references.
    const others = bare.map((one) => ({ ...one, id: `other ${one.id}`, batchNo: "000002", reqId: "" }));
    const settlementList = settlement.settlementList.map((entry) => ({ ...entry, reqId: "" }));
    const linked = transactions.map((one) => ({ ...one, reqId: "" }));
    const standing = linked.filter((_, index) => isStanding(transactions[index], settlement));
    const found = reconcile({ ...settlement, settlementList }, [...others, ...standing]).findings;
    expect(found.filter(({ code }) => !/^(total|settlement_)/.test(code))).toEqual([]);
  });

  it("of 50,000 transactions is reconciled in one pass", () => {
    const [sale] = batchOf(sold(1)).transactions;
    const many = Array.from({ length: 50_000 }, (_, index) => {
      return { ...sale, id: `t${index}`, reqId: randomUUID(), invoiceNo: String(index), amount: "1.00" } as CardIpn;
    });
    const settlement = {
      ...batchOf([]).settlement,
      quantity: "50000",
      saleQuantity: "50000",
      saleTotalAmount: "50000.00",
      totalAmount: "50000.00",
      settlementList: many.map(({ reqId, refId }) => ({ reqId, refNo: refId })),
    };
    expect(reconcile(settlement, many).balanced).toBe(true);
  });
});

describe("a finding", () => {
  it("names any one IPN that was never received, and nothing else", () => {
    fc.assert(
      fc.property(plans, fc.nat(), (all, at) => {
        const { transactions, settlement, standing } = batchOf(all);
        const missing = transactions[at % Math.max(1, transactions.length)];
        const result = reconcile(
          settlement,
          transactions.filter((one) => one !== missing),
        );
        const isStanding = missing !== undefined && standing.includes(missing);
        const entries = result.findings.filter(({ code }) => code === "settled_not_notified");
        const expected = isStanding
          ? [{ code: "settled_not_notified", entry: { reqId: missing.reqId, refNo: missing.refId } }]
          : [];
        expect(entries).toEqual(expected);
        expect(codesOf(result)).not.toContain("settled_though_voided");
        // If a Void is missing, its Sale seems to lack in the settlement.
        const isVoid = missing?.transaction_type === "VOID" && missing.status === "SUCCESS";
        expect(codesOf(result).includes("notified_not_settled")).toBe(isVoid);
      }),
    );
  });

  it("names any one entry that the settlement lacks", () => {
    fc.assert(
      fc.property(plans, fc.nat(), (all, at) => {
        const { transactions, settlement, standing } = batchOf(all);
        fc.pre(standing.length > 0);
        const lacking = standing[at % standing.length];
        const settlementList = settlement.settlementList.filter(({ reqId }) => reqId !== lacking?.reqId);
        const result = reconcile({ ...settlement, settlementList }, transactions);
        expect(result.findings).toEqual([
          { code: "notified_not_settled", transaction: lacking },
          {
            code: "settlement_inconsistent",
            field: "quantity",
            stated: String(standing.length),
            expected: String(standing.length - 1),
          },
        ]);
      }),
    );
  });

  it("is not reported for a Refund, which a settlement neither counts nor lists", () => {
    const { transactions, settlement } = batchOf(sold(2));
    const [sale] = transactions as [CardIpn];
    const refund = { ...sale, id: "r", reqId: randomUUID(), transaction_type: "REFUND", invoiceNo: "000777" };
    expect(reconcile(settlement, [...transactions, refund])).toEqual(reconcile(settlement, transactions));
  });

  it("goes by a known command, whatever transaction_type was agreed on for it", () => {
    const { transactions, settlement } = batchOf([...sold(1), { amount: 500, what: "voided", refId: "1" }]);
    const [sale] = transactions as [CardIpn];
    const typed = { SALE: "SETTLE", VOID: "CANCEL" } as Readonly<Record<string, string>>;
    const known = transactions.map(({ transaction_type: command, ...one }) => {
      return { ...one, command, transaction_type: typed[command] ?? "" };
    });
    const refund = { ...sale, id: "r", reqId: randomUUID(), command: "REFUND", transaction_type: "VOID" };
    expect(reconcile(settlement, [...known, refund])).toMatchObject({ balanced: true, findings: [] });
  });

  it("is reported once for a voided transaction whose Sale's IPN is missing", () => {
    const { transactions, settlement } = batchOf([{ amount: 500, what: "voided", refId: "1" }]);
    const saleVoid = transactions.filter(({ transaction_type }) => transaction_type === "VOID");
    const result = reconcile(settlement, saleVoid);
    expect(result.findings).toEqual([{ code: "voided_not_notified", transaction: saleVoid[0] }]);
  });

  it("names an entry that was voided, failed, is of another batch, is a duplicate, or has another refNo", () => {
    const { transactions, settlement } = batchOf(sold(5));
    const [voided, failed, elsewhere, twice, other] = transactions as [CardIpn, CardIpn, CardIpn, CardIpn, CardIpn];
    const saleVoid = { ...voided, id: "v", reqId: randomUUID(), transaction_type: "VOID" };
    const given = [
      voided,
      saleVoid,
      { ...failed, status: "ERROR" },
      { ...elsewhere, batchNo: "000007" },
      twice,
      { ...other, refId: "another" },
    ];
    const settlementList = [...settlement.settlementList, { reqId: twice.reqId, refNo: twice.refId }];
    const found = reconcile({ ...settlement, settlementList }, given).findings.filter(
      ({ code }) => !/^(total|settlement_)/.test(code),
    );
    expect(found).toEqual([
      { code: "settled_though_voided", entry: settlementList[0], transaction: voided },
      { code: "settled_though_failed", entry: settlementList[1], transaction: given[2] },
      { code: "settled_in_another_batch", entry: settlementList[2], transaction: given[3] },
      { code: "ref_no_differs", entry: settlementList[4], transaction: given[5] },
      { code: "listed_twice", entry: settlementList[5] },
    ]);
  });

  it.each([
    ["a Void", { transaction_type: "VOID" }],
    ["a Refund", { transaction_type: "REFUND" }],
    ["a PreAuth", { command: "PREAUTH" }],
  ])("is an entry that names %s: none is ever settled", (_, is) => {
    const { transactions, settlement } = batchOf(sold(1));
    const [sale] = transactions as [CardIpn];
    const other = { ...sale, ...is, id: "o", reqId: randomUUID(), batchNo: "000007" };
    const entry = { reqId: other.reqId, refNo: other.refId };
    const { findings } = reconcile({ ...settlement, settlementList: [entry] }, [other]);
    expect(findings).toContainEqual({ code: "settled_not_notified", entry });
  });

  it("trusts a Void that names its original more than its invoiceNo, which may have come twice", () => {
    const { transactions, settlement } = batchOf(sold(2));
    const [sale, voided] = transactions.map((one) => ({ ...one, invoiceNo: "000001", amount: "1.00" })) as CardIpn[];
    const saleVoid = { ...voided, id: "v", transaction_type: "VOID", originalTransactionId: voided?.id };
    const settlementList = settlement.settlementList.filter(({ reqId }) => reqId === sale?.reqId);
    // Without that, by what the settlement does not list.
    for (const one of [saleVoid, { ...saleVoid, originalTransactionId: undefined }]) {
      const { findings } = reconcile({ ...settlement, settlementList }, [sale, voided, one] as CardIpn[]);
      expect(findings.filter(({ code }) => !/^(total|settlement_)/.test(code))).toEqual([]);
    }
  });

  it.each([
    ["quantity", "settlement_inconsistent"],
    ["totalAmount", "settlement_inconsistent"],
    ["saleQuantity", "total_differs"],
    ["saleTotalAmount", "total_differs"],
    ["voidQuantity", "total_differs"],
    ["voidTotalAmount", "total_differs"],
  ] as const)("is a %s that is off, empty or no number", (field, code) => {
    const { transactions, settlement } = batchOf([...sold(2), { amount: 500, what: "voided", refId: "1" }]);
    for (const stated of [`${settlement[field]}1`, "", "many"]) {
      const { findings, balanced } = reconcile({ ...settlement, [field]: stated }, transactions);
      expect(balanced).toBe(false);
      expect(findings).toContainEqual({ code, field, stated, expected: settlement[field] });
    }
  });

  it("states the total by the other setting exactly", () => {
    const { transactions, settlement } = batchOf([{ amount: 1_001, what: "voided", refId: "1" }], "net");
    expect(reconcile(settlement, transactions, { settlementTotal: "net" }).balanced).toBe(true);
    expect(reconcile(settlement, transactions).findings).toEqual([
      { code: "settlement_inconsistent", field: "totalAmount", stated: "0.00", expected: "20.02" },
    ]);
    // Voids of Sales that an earlier batch had.
    const more = { saleTotalAmount: "0.50", voidTotalAmount: "0.75" };
    const totals = (totalAmount: string) =>
      reconcile({ ...settlement, ...more, totalAmount }, [], { settlementTotal: "net" }).findings.filter(
        (one) => "field" in one && one.field === "totalAmount",
      );
    expect(totals("-0.25")).toEqual([]);
    expect(totals("0.25")).toMatchObject([{ expected: "-0.25" }]);
  });

  it("is not searched for in the list of a failed settlement: its batch is open again", () => {
    const { transactions, settlement } = batchOf(sold(2));
    const failed = { ...settlement, status: "ERROR", settlementList: [] };
    expect(reconcile(failed, transactions)).toEqual({ balanced: false, settled: false, findings: [] });
  });

  it("is not reported if one of your amounts is not a number: that is refused", () => {
    const { transactions, settlement } = batchOf(sold(1));
    expect(() =>
      reconcile(
        settlement,
        transactions.map((one) => ({ ...one, amount: "12,50" })),
      ),
    ).toThrow(Misused);
  });
});

describe("an invalid settlement or transaction is refused by its name", () => {
  const { transactions, settlement } = batchOf(sold(2));
  const [one, other] = transactions;
  const whole = sampleIpn({ command: "SETTLEMENT" }).received;
  it.each<[what: string, given: unknown[], reason: string, says: RegExp]>([
    ["a settlement that is still a Promise", [Promise.resolve(settlement), []], "missing_await", /^The first.*await/],
    ["a card Sale as the settlement", [one, transactions], "wrong_option", /^The first.*Give a settlement's IPN/],
    ["a whole received settlement", [whole, transactions], "wrong_option", /^The first.*received\.ipn/],
    ["a settlement without a total", [{ ...settlement, totalAmount: 5 }, []], "wrong_option", /^The first/],
    ["a settlement whose list has none", [{ ...settlement, settlementList: [{}] }, []], "wrong_option", /^The first/],
    ["nothing", [], "wrong_option", /^The first.*cannot be undefined/],
    ["transactions that are still a Promise", [settlement, Promise.resolve([])], "missing_await", /^The second.*await/],
    ["one transaction without its list", [settlement, one], "wrong_option", /^The second.*Give a list/],
    [
      "whole received transactions",
      [settlement, [one, sampleIpn().received]],
      "wrong_option",
      /^Transaction 1.*received\.ipn/,
    ],
    ["a transaction that is still a Promise", [settlement, [Promise.resolve(one)]], "missing_await", /^Transaction 0/],
    [
      "a record without its reqId",
      [settlement, [one, { ...other, reqId: null }]],
      "wrong_option",
      /^Transaction 1.*reqId/,
    ],
    ["no transaction", [settlement, [undefined]], "wrong_option", /^Transaction 0.*cannot be undefined/],
    ["a word in place of the options", [settlement, [], "net"], "wrong_option", /^The third.*"net"/],
    ["an option that is none", [settlement, [], { total: "net" }], "unknown_option", /^total is no.*settlementTotal/],
    [
      "a setting that is none",
      [settlement, [], { settlementTotal: "gross" }],
      "wrong_option",
      /"gross"\. Give sum or net/,
    ],
  ])("%s", (_what, given, reason, says) => {
    let error: unknown;
    try {
      reconcile(...(given as unknown as Parameters<typeof reconcile>));
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(Misused);
    expect(error).toMatchObject({ reason, message: expect.stringMatching(says) });
  });
});
