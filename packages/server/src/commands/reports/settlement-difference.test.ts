import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type HeldTransaction, SettlementComparison, type SettlementDifference } from "./settlement-difference.ts";

type Fields = Readonly<Record<string, string>>;
type Entry = { readonly reqId: string; readonly refNo: string };

function held(command: HeldTransaction["command"], change: Partial<HeldTransaction> = {}): HeldTransaction {
  const id = randomUUID();
  const reqId = randomUUID();
  const none = { originalId: null, originalExternalId: null };
  return { id, externalId: `X-${id}`, ...none, command, reqId, refId: `ref-${id}`, amount: "12.50", ...change };
}

const following = (command: HeldTransaction["command"], original: HeldTransaction) =>
  held(command, { originalId: original.id });

const entryOf = ({ reqId, refId }: HeldTransaction): Entry => ({ reqId: reqId ?? "", refNo: refId });

function compared(
  transactions: readonly HeldTransaction[],
  list: readonly Entry[],
  fields: Fields,
  total: "sum" | "net" = "sum",
): SettlementDifference | undefined {
  const comparison = new SettlementComparison();
  for (const transaction of transactions) comparison.addTransaction(transaction);
  for (const entry of list) comparison.addEntry(entry);
  return comparison.difference({ status: "SUCCESS", ...fields }, total);
}

const nothing = { values: {}, notInLedger: { count: 0, reqIds: [] }, notListed: { count: 0, reqIds: [] } };
const [one, two] = [held("SALE"), held("PREAUTH_COMPLETE")];
const totalsOfBoth = { quantity: "2", saleQuantity: "2", saleTotalAmount: "25.00", voidQuantity: "0" };

describe("a reported settlement", () => {
  test("that says what the ledger holds differs in nothing, however its amounts are written", () => {
    const list = [entryOf(one), { ...entryOf(two), reqId: String(two.reqId).toUpperCase() }];
    expect(compared([one, two], list, totalsOfBoth)).toBeUndefined();
    expect(compared([one, two], list, { ...totalsOfBoth, saleTotalAmount: "25", totalAmount: "25.0" })).toBeUndefined();
    expect(compared([], [], { saleTotalAmount: "0", quantity: "0" })).toBeUndefined();
  });

  test("has its differing values listed, with both sides of each", () => {
    const wrong = { quantity: "3", saleQuantity: "many", saleTotalAmount: "37.51", voidTotalAmount: "none" };
    expect(compared([one, two], [entryOf(one), entryOf(two)], wrong)).toEqual({
      ...nothing,
      values: {
        quantity: { reported: "3", ledger: "2" },
        saleQuantity: { reported: "many", ledger: "2" },
        saleTotalAmount: { reported: "37.51", ledger: "25.00" },
        voidTotalAmount: { reported: "none", ledger: "0.00" },
      },
    });
  });

  test("has the transactions listed that only one side has", () => {
    const stranger = { reqId: randomUUID(), refNo: "1" };
    expect(compared([one, two], [entryOf(one), stranger], {})).toEqual({
      values: {},
      notInLedger: { count: 1, reqIds: [stranger.reqId] },
      notListed: { count: 1, reqIds: [two.reqId] },
    });
    expect(compared([one, two], [entryOf(one)], {})?.values).toEqual({
      settlementList: { reported: "1", ledger: "2" },
    });
  });

  test("has at most 20 of each side listed, with their number", () => {
    const sales = Array.from({ length: 30 }, () => held("SALE"));
    const list = Array.from({ length: 25 }, (_, nth) => ({ reqId: `${nth}`.padEnd(100, "x"), refNo: "" }));
    const { notInLedger, notListed } = compared(sales, list, {}) ?? nothing;
    expect([notInLedger.count, notListed.count]).toEqual([25, 30]);
    expect([notInLedger.reqIds.length, notListed.reqIds.length]).toEqual([20, 20]);
    expect(notInLedger.reqIds[0]).toHaveLength(64);
  });

  test("counts a voided Sale on both sides, and lists it on none", () => {
    const fields = { quantity: "1", saleQuantity: "2", voidQuantity: "1", voidTotalAmount: "12.50" };
    expect(compared([one, two, following("VOID", one)], [entryOf(two)], fields)).toBeUndefined();
  });

  test.each(["VOID", "REVERSAL"] as const)("does not count a transaction that a %s undid", (ending) => {
    expect(compared([one, two, following(ending, one)], [entryOf(one), entryOf(two)], {})).toEqual({
      values: { settlementList: { reported: "2", ledger: "1" } },
      notInLedger: { count: 1, reqIds: [one.reqId] },
      notListed: { count: 0, reqIds: [] },
    });
  });

  test.each(["", " #SALE"])("finds what a Void or Reversal undoes by the switch's id%s, whichever was first", (key) => {
    const sale = { ...one, externalId: `7${key}` };
    const voiding = held("VOID", { originalExternalId: "7", externalId: "7 #VOID" });
    expect(compared([voiding, sale, two], [entryOf(two)], { voidQuantity: "1" })).toBeUndefined();
    const reversing = held("REVERSAL", { originalExternalId: "7", externalId: "7 #REVERSAL" });
    expect(compared([sale, reversing, two], [entryOf(two)], { saleQuantity: "1" })).toBeUndefined();
  });

  test("counts what was reversed nowhere, and a Void that was reversed not at all", () => {
    const voiding = following("VOID", two);
    const rows = [one, following("REVERSAL", one), two, voiding, following("REVERSAL", voiding)];
    expect(compared(rows, [entryOf(two)], { saleQuantity: "1", voidQuantity: "0" })).toBeUndefined();
  });

  test("counts no Void whose Sale the ledger does not hold", () => {
    expect(compared([held("VOID", { originalId: randomUUID() })], [], { voidQuantity: "0" })).toBeUndefined();
  });

  test.each([
    ["sum", "31.25"],
    ["net", "18.75"],
  ] as const)("has the total that the partner agreed on: %s", (total, amount) => {
    const small = held("SALE", { amount: "6.25" });
    const rows = [small, held("SALE", { amount: "18.75" }), following("VOID", small)];
    const list = rows.slice(1, 2).map(entryOf);
    expect(compared(rows, list, { totalAmount: amount }, total)).toBeUndefined();
    const other = total === "sum" ? "net" : "sum";
    expect(compared(rows, list, { totalAmount: amount }, other)?.values).toHaveProperty("totalAmount");
  });

  test("knows what has no reqId by the acquirer's reference, and what has neither by its id", () => {
    const unnamed = held("SALE", { reqId: null });
    const bare = held("SALE", { reqId: null, refId: "" });
    expect(compared([unnamed], [{ reqId: "", refNo: unnamed.refId }], {})).toBeUndefined();
    expect(compared([unnamed, bare], [{ reqId: "", refNo: "" }], {})).toMatchObject({
      notInLedger: { count: 1 },
      notListed: { count: 2, reqIds: [unnamed.refId, bare.id] },
    });
  });

  test("that failed has its totals compared, and not its list: it settled nothing", () => {
    const failed = { status: "ERROR", saleQuantity: "2" };
    expect(compared([one, two], [], failed)).toBeUndefined();
    expect(compared([one, two], [], { ...failed, saleQuantity: "1" })).toEqual({
      ...nothing,
      values: { saleQuantity: { reported: "1", ledger: "2" } },
    });
  });
});

const batch = fc.array(
  fc.record({
    minor: fc.bigInt(1n, 10n ** 12n - 1n),
    command: fc.constantFrom("SALE", "PREAUTH_COMPLETE"),
    fate: fc.constantFrom("stands", "stands", "voided", "reversed", "voided, and the Void reversed"),
  } as const),
  { maxLength: 12 },
);
const changes = ["quantity", "saleQuantity", "voidQuantity", "saleTotalAmount", "voidTotalAmount", "totalAmount"];

test("a batch's own totals and list never differ from it, and any one change is the only difference", () => {
  fc.assert(
    fc.property(batch, fc.constantFrom(...changes), fc.nat(), (sales, changed, nth) => {
      const rows: HeldTransaction[] = [];
      const list: Entry[] = [];
      const sums = { sale: 0n, saleCount: 0, void: 0n, voidCount: 0 };
      for (const { minor, command, fate } of sales) {
        const sale = held(command, { amount: `${minor / 100n}.${String(minor % 100n).padStart(2, "0")}` });
        rows.push(sale);
        if (fate === "reversed") {
          rows.push(following("REVERSAL", sale));
          continue;
        }
        sums.sale += minor;
        sums.saleCount += 1;
        const voiding = fate.startsWith("voided") ? following("VOID", sale) : undefined;
        if (voiding) rows.unshift(voiding);
        if (voiding && fate !== "voided") rows.push(following("REVERSAL", voiding));
        if (fate === "voided") {
          sums.void += minor;
          sums.voidCount += 1;
        } else list.push(entryOf(sale));
      }
      const text = (minor: bigint) => `${minor / 100n}.${String(minor % 100n).padStart(2, "0")}`;
      const fields: Record<string, string> = {
        quantity: String(sums.saleCount - sums.voidCount),
        saleQuantity: String(sums.saleCount),
        voidQuantity: String(sums.voidCount),
        saleTotalAmount: text(sums.sale),
        voidTotalAmount: text(sums.void),
        totalAmount: text(sums.sale + sums.void),
      };
      expect(compared(rows, list, fields)).toBeUndefined();
      const ledger = fields[changed] ?? "";
      const reported = changed.endsWith("Amount") ? `1${ledger}` : String(Number(ledger) + 1);
      const difference = compared(rows, list, { ...fields, [changed]: reported });
      expect(Object.keys(difference?.values ?? {})).toEqual([changed]);
      expect(difference).toMatchObject({ notInLedger: { count: 0 }, notListed: { count: 0 } });
      if (list.length === 0) return;
      const [missing] = list.splice(nth % list.length, 1);
      expect(compared(rows, list, fields)).toMatchObject({ notListed: { count: 1, reqIds: [missing?.reqId] } });
    }),
  );
});
