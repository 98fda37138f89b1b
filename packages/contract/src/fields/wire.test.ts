import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NotAuthentic } from "../errors.ts";
import { fromWire } from "../receiving/read-wire.ts";
import type { IpnKind } from "./columns.ts";
import { cardIpnFields, ipnFields, settlementIpnFields } from "./fields.ts";
import { toWire, wireNames } from "./wire.ts";

const kinds: readonly IpnKind[] = ["card", "settlement"];

function anyIpn(kind: IpnKind): fc.Arbitrary<Record<string, unknown>> {
  const text = fc.string({ unit: "binary", maxLength: 12 });
  const values = ipnFields(kind).map(({ name, type }) => [
    name,
    type === "list" ? fc.array(fc.record({ reqId: text, refNo: text }), { maxLength: 3 }) : text,
  ]);
  const settled = { transaction_type: fc.constant("SETTLE"), cardScheme: fc.constantFrom("", "VISA") };
  const card = { ...settled, transaction_type: fc.constantFrom("SALE", "VOID", "CANCEL", "SETTLE") };
  const known = Object.keys(Object.fromEntries(values));
  const fixed = Object.entries(kind === "card" ? card : settled).filter(([name]) => known.includes(name));
  return fc.record(Object.fromEntries([...values, ...fixed]));
}

describe("an IPN on the wire", () => {
  test("is read back as it was written, under either set of names", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds).chain((kind) => fc.tuple(fc.constant(kind), anyIpn(kind))),
        fc.constantFrom(...wireNames),
        ([kind, ipn], names) => {
          const wire = toWire(kind, ipn, names);
          const read = fromWire(JSON.stringify(wire));
          expect(read.kind).toBe(kind);
          expect(read.ipn).toEqual(ipn);
          expect(read.wire).toEqual(wire);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("has every field of its table in the table's order, unknown ones as empty strings", () => {
    expect(Object.keys(toWire("card", {}, "table"))).toEqual(cardIpnFields.map(({ name }) => name).slice(0, -1));
    expect(Object.keys(toWire("settlement", {}, "table"))).toEqual(
      settlementIpnFields.map(({ name }) => name).slice(0, -1),
    );
    expect(new Set(Object.values(toWire("card", {}, "table")))).toEqual(new Set([""]));
    expect(toWire("settlement", {}, "table")["settlementList"]).toEqual([]);
  });

  test("has its signature last, and only if one is given", () => {
    expect(toWire("card", {}, "table")).not.toHaveProperty("signature");
    expect(Object.keys(toWire("settlement", { signature: "ab" }, "sample")).at(-1)).toBe("signature");
  });

  test("has the sample's names if they are agreed", () => {
    const table = Object.keys(toWire("card", {}, "table"));
    const sample = Object.keys(toWire("card", {}, "sample"));
    expect(sample.filter((name) => !table.includes(name))).toEqual(["approve_code", "device_id", "payment_type"]);
    expect(sample).toHaveLength(table.length);
    const settled = toWire("settlement", { deviceId: "d", settlementList: [{ reqId: "a", refNo: "b" }] }, "sample");
    expect(settled).toMatchObject({ deviceID: "d", request_body: "", response: "" });
    expect(settled).not.toHaveProperty("deviceId");
    expect(settled["settlementList"]).toEqual([{ reqId: "a", refNo: "b" }]);
  });

  test("never has a key that is not in its table", () => {
    expect(toWire("card", { settlementList: [], command: "SALE" }, "table")).toEqual(toWire("card", {}, "table"));
  });

  test.each([{ amount: 12 }, { tid: ["a"] }, { aid: {} }])("is not written with a value that is no text: %j", (ipn) => {
    expect(() => toWire("card", ipn, "table")).toThrow(/must be a string/);
  });

  test("is refused if settlementList is not a list", () => {
    expect(() => toWire("settlement", { settlementList: "" }, "table")).toThrow("settlementList must be a list");
  });
});

describe("a received IPN", () => {
  test("is read under every name of a field", () => {
    const { ipn } = fromWire('{"approve_code":"1","device_id":"2","payment_type":"card"}');
    expect(ipn).toMatchObject({ approveCode: "1", deviceId: "2", paymentType: "card" });
    const text =
      '{"transaction_type":"SETTLE","deviceID":"3","settlementList":[{"reqID":"a","refNo":"b"},{"reqId":"c"}]}';
    const list = [
      { reqId: "a", refNo: "b" },
      { reqId: "c", refNo: "" },
    ];
    expect(fromWire(text).ipn).toMatchObject({ deviceId: "3", settlementList: list });
  });

  test("has its cardScheme in upper case, while `wire` keeps it as sent", () => {
    const read = fromWire('{"cardScheme":"Visa"}');
    expect(read.ipn).toMatchObject({ cardScheme: "VISA" });
    expect(read.wire).toEqual({ cardScheme: "Visa" });
  });

  test.each([
    ['{"transaction_type":"SETTLE","settlementList":[]}', "settlement"],
    ['{"transaction_type":"SETTLE","saleQuantity":"0"}', "settlement"],
    ['{"transaction_type":"SETTLE","amount":"1"}', "card"],
    ['{"transaction_type":"SALE","saleQuantity":"1"}', "settlement"],
    ['{"transaction_type":"VOID","saleQuantity":"1"}', "settlement"],
    ['{"transaction_type":"SALE","settlementList":[]}', "card"],
    ["{}", "card"],
  ])("%s is a %s IPN", (text, kind) => {
    expect(fromWire(text).kind).toBe(kind);
  });

  test("may have unknown keys: in `wire`, not in `ipn`", () => {
    const read = fromWire('{"id":"1","later":"x","__proto__":"y","nested":{"list":["z"]}}');
    expect(read.wire).toHaveProperty("later", "x");
    expect(Object.keys(read.ipn)).toEqual(cardIpnFields.map(({ name }) => name));
    expect(Object.getPrototypeOf(read.ipn)).toBe(Object.prototype);
  });

  test("with a field under two of its names is refused, even when they agree", () => {
    for (const kind of kinds) {
      for (const { name, alias } of ipnFields(kind)) {
        if (alias === undefined) continue;
        const text = JSON.stringify({ ...toWire(kind, { transaction_type: "SETTLE" }, "table"), [alias]: "" });
        expect(() => fromWire(text), `${name}, ${alias}`).toThrow(expect.objectContaining({ reason: "two_names" }));
      }
    }
    const entry = '{"transaction_type":"SETTLE","settlementList":[{"reqId":"a","reqID":"a"}]}';
    expect(() => fromWire(entry)).toThrow(expect.objectContaining({ reason: "two_names" }));
  });

  test.each([
    '{"amount":1}',
    '{"amount":null}',
    '{"amount":true}',
    '{"amount":["1"]}',
    '{"device_id":{}}',
    '{"later":1}',
    '{"later":{"a":[null]}}',
    '{"transaction_type":"SETTLE","settlementList":""}',
    '{"transaction_type":"SETTLE","settlementList":{}}',
    '{"transaction_type":"SETTLE","settlementList":["a"]}',
    '{"transaction_type":"SETTLE","settlementList":[[]]}',
    '{"transaction_type":"SETTLE","settlementList":[{"reqId":["a"]}]}',
  ])("is refused where a scalar is no string or a list no list: %s", (text) => {
    expect(() => fromWire(text)).toThrow(expect.objectContaining({ reason: "wrong_type" }));
  });

  test("is refused in the same way if it is anything else", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.anything() as fc.Arbitrary<string>), (text) => {
        fc.pre(typeof text !== "string" || !/^\s*\{/.test(text));
        expect(() => fromWire(text)).toThrow(NotAuthentic);
      }),
    );
  });
});
