import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { seal } from "../cryptography/seal.ts";
import { defaultSealing, sealingKey } from "../cryptography/sealing.ts";
import { hmacKey, type Signing, sign, signedFields, signedString, signingProblems } from "../cryptography/signing.ts";
import { NotAuthentic } from "../errors.ts";
import type { FieldSet, IpnKind } from "../fields/columns.ts";
import { toWire, wireNames } from "../fields/wire.ts";
import { openAndVerify } from "./opening.ts";

const key = sealingKey("key", randomBytes(32));
const signer = hmacKey(randomBytes(32));
const fields: Signing = { mode: "fields" };
const whole: Signing = { mode: "whole" };
const kinds: readonly IpnKind[] = ["card", "settlement"];
const added = { card: ["command", "originalId", "originalReqId"], settlement: ["command", "currency"] };
const values = {
  id: "t-1",
  amount: "1",
  batchNo: "000001",
  command: "PREAUTH",
  originalId: "t-0",
  originalReqId: "r-0",
  currency: "VND",
};

function signed(kind: IpnKind, set: FieldSet, signing = fields): Record<string, unknown> {
  const wire = toWire(kind, values, "table", set);
  return { ...wire, signature: sign(signedString(kind, wire, signing, set), signer) };
}

function open(content: object, accepted: readonly FieldSet[], signing = fields) {
  const body = JSON.stringify({ data: seal(JSON.stringify(content), defaultSealing, key) });
  const how = { sealing: defaultSealing, encryptionKeys: [key], signingKeys: [signer] };
  return openAndVerify(body, { ...how, signing, fields: accepted });
}

describe.each(kinds)("an extended %s IPN", (kind) => {
  test("has its fields after those of the table, under either set of names; another has none of them", () => {
    for (const names of wireNames) {
      const usual = Object.keys(toWire(kind, values, names));
      expect(Object.keys(toWire(kind, values, names, "extended")).filter((name) => !usual.includes(name))).toEqual(
        kind === "card" ? added.card : added.settlement,
      );
      // Sale totals of a settlement and a card's currency are of the table.
      expect(usual).not.toContain("command");
    }
  });

  test("is signed over them after the specification's fields, or where an agreed list names them", () => {
    const usual = signedFields(kind, fields);
    expect(signedFields(kind, fields, "extended")).toEqual([...usual, ...added[kind]]);
    const list = ["id", "command", "transaction_type", "status", kind === "card" ? "amount" : "totalAmount"];
    const agreed: Signing = { mode: "fields", [kind]: list };
    expect(signedFields(kind, agreed, "extended")).toEqual([...list, ...added[kind].slice(1)]);
    expect(signingProblems(agreed, "extended")).toEqual([]);
    const usualOfList = signed(kind, "specification", { mode: "fields", [kind]: list.toSpliced(1, 1) });
    expect(open(usualOfList, ["specification", "extended"], agreed)).toMatchObject({ fields: "specification" });
    expect(signingProblems(agreed)).toEqual([
      `signing.${kind} holds command, which only an extended IPN has: set fields to extended, or leave it out`,
    ]);
  });

  test("is read as the receiver's setting says, and by no other setting", () => {
    const extended = signed(kind, "extended");
    const usual = signed(kind, "specification");
    expect(open(extended, ["extended"])).toMatchObject({ fields: "extended", ipn: { command: "PREAUTH" } });
    expect(open(usual, ["specification"]).ipn).toEqual(usual);
    expect(() => open(extended, ["specification"])).toThrow(NotAuthentic);
    expect(() => open(usual, ["extended"])).toThrow(NotAuthentic);
    for (const both of [["specification", "extended"] as const, ["extended", "specification"] as const]) {
      expect(open(extended, both)).toMatchObject({ fields: "extended", ipn: { command: "PREAUTH" } });
      expect(open(usual, both)).toMatchObject({ fields: "specification" });
      expect(open(usual, both).ipn).not.toHaveProperty("command");
    }
  });

  test("whose fields were changed, added or removed is not authentic, even if both kinds are accepted", () => {
    const both = ["specification", "extended"] as const;
    const { command: _, ...without } = signed(kind, "extended");
    const forged = [{ ...signed(kind, "extended"), command: "SALE" }, without];
    for (const wire of [...forged, { ...signed(kind, "specification"), command: "SALE" }]) {
      const opened = () => open(wire, both);
      // A field that is unknown to the specification is passed over, and its value is not shown.
      if (wire["signature"] === signed(kind, "specification")["signature"])
        expect(opened().ipn).not.toHaveProperty("command");
      else expect(opened).toThrow(NotAuthentic);
    }
  });

  test("is signed as a whole with the others, and one without its fields is refused by who expects them", () => {
    const extended = signed(kind, "extended", whole);
    const usual = signed(kind, "specification", whole);
    const both = ["specification", "extended"] as const;
    expect(open(extended, both, whole)).toMatchObject({ fields: "extended", ipn: { command: "PREAUTH" } });
    expect(open(usual, both, whole)).toMatchObject({ fields: "specification" });
    expect(() => open(usual, ["extended"], whole)).toThrow(NotAuthentic);
    expect(open(extended, ["specification"], whole).ipn).not.toHaveProperty("command");
  });
});
