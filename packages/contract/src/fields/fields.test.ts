import { describe, expect, expectTypeOf, test } from "vitest";
import type { CardIpn, SettlementIpn } from "./columns.ts";
import { cardIpnFields, ipnFields, ipnJsonSchema, settlementIpnFields } from "./fields.ts";
import { toWire } from "./wire.ts";

describe("the tables", () => {
  test("have the specification's numbers: card 1 to 31 and 33, settlement 1 to 20", () => {
    expect(cardIpnFields.map(({ no }) => no)).toEqual([...Array.from({ length: 31 }, (_, at) => at + 1), 33]);
    expect(settlementIpnFields.map(({ no }) => no)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1));
  });

  test("have no name twice, aliases included", () => {
    for (const fields of [ipnFields("card"), ipnFields("settlement")]) {
      const names = fields.flatMap((field) => (field.alias !== undefined ? [field.name, field.alias] : [field.name]));
      expect(new Set(names).size).toBe(names.length);
    }
  });

  test("of an extended IPN go on with its fields", () => {
    for (const kind of ["card", "settlement"] as const) {
      const extended = ipnFields(kind, "extended").slice(ipnFields(kind).length);
      const names = Object.keys(toWire(kind, {}, "table", "extended")).slice(-extended.length);
      expect(extended.map(({ name }) => name)).toEqual(names);
      expect(extended[0]).toMatchObject({ no: kind === "card" ? 34 : 21, name: "command" });
    }
  });

  test("define the types of the two bodies", () => {
    expectTypeOf<CardIpn>().toHaveProperty("transaction_type").toEqualTypeOf<string>();
    expectTypeOf<CardIpn>().not.toHaveProperty("settlementList");
    expectTypeOf<SettlementIpn>().toHaveProperty("settlementList").toEqualTypeOf<{ reqId: string; refNo: string }[]>();
  });
});

interface Schema {
  readonly type: string;
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required: readonly string[];
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly items: Schema;
}

describe("the JSON Schema", () => {
  const card = ipnJsonSchema("card") as Schema;
  const settlement = ipnJsonSchema("settlement") as Schema;

  function allows(schema: Schema | undefined, value: string): boolean {
    if (schema?.type !== "string") return false;
    return (schema.enum?.includes(value) ?? true) && new RegExp(schema.pattern ?? "", "u").test(value);
  }

  test("requires exactly the fields that are on the wire", () => {
    expect(card.required).toEqual(Object.keys(toWire("card", { signature: "" }, "table")));
    expect(settlement.required).toEqual(Object.keys(toWire("settlement", { signature: "" }, "table")));
    expect(settlement.properties["settlementList"]).toMatchObject({
      type: "array",
      items: { required: ["reqId", "refNo"] },
    });
    expect(Object.values(card.properties).every(({ type }) => type === "string")).toBe(true);
  });

  test.each([
    ["cardScheme", ["VISA", "UPI", ""], ["Visa", "DINERS"]],
    ["status", ["INIT", "SUCCESS", "ERROR"], ["", "DONE"]],
    ["swipeType", ["F", "C", "CTL", "M", "S", "CL", "CLS", ""], ["X"]],
    ["transDateTime", ["20240531143000", ""], ["2024-05-31T14:30:00Z", "2024"]],
    ["reqId", ["3b241101-e2bb-4255-8caf-4136c566a962", ""], ["3b241101-e2bb-1255-8caf-4136c566a962", "x"]],
    ["amount", ["150000", "12.50", "0.10", ""], ["012", "1,5", "1.", ".5", "1e3"]],
  ])("knows the values of %s", (name, good, bad) => {
    expect(good.filter((value) => !allows(card.properties[name], value))).toEqual([]);
    expect(bad.filter((value) => allows(card.properties[name], value))).toEqual([]);
  });

  test("lets a batch of more Voids than Sales have counts and totals below zero", () => {
    for (const [name, value] of [
      ["quantity", "-1"],
      ["totalAmount", "-0.25"],
    ] as const) {
      expect(allows(settlement.properties[name], value)).toBe(true);
    }
  });

  test("also accepts an ISO 8601 UTC timestamp as transaction_time", () => {
    for (const time of ["20240531143000", "2024-05-31T14:30:00Z"]) {
      expect(allows(settlement.properties["transaction_time"], time)).toBe(true);
    }
    for (const time of ["202405311430", "2024-05-31T14:30:00+07:00"]) {
      expect(allows(settlement.properties["transaction_time"], time)).toBe(false);
    }
  });
});
