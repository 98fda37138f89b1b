import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type IpnKind, ipnColumns } from "../fields/columns.ts";
import { toWire } from "../fields/wire.ts";
import {
  cardSigningOrder,
  defaultSigning,
  hmacKey,
  type Signing,
  sign,
  signatureMatches,
  signedFields,
  signedString,
  signingProblems,
} from "./signing.ts";

const key = hmacKey(randomBytes(32));
const kinds: readonly IpnKind[] = ["card", "settlement"];
const agreed: Signing = {
  mode: "fields",
  card: ["status", "id", "transaction_type", "amount", "deviceId"],
  settlement: ["totalAmount", "status", "id", "transaction_type", "deviceId"],
};
const whole: Signing = { mode: "whole" };
const signings = [defaultSigning, agreed, whole];

/** Any IPN of a kind under the tables' names. */
function anyIpn(kind: IpnKind) {
  const text = fc.string({ unit: "binary", maxLength: 12 });
  const entry = fc.record({ reqId: text, refNo: text });
  const values = ipnColumns(kind)
    .filter(({ name }) => name !== "signature")
    .map(({ name, type }) => [name, type === "list" ? fc.array(entry, { maxLength: 3 }) : text]);
  return fc.record(Object.fromEntries(values)) as fc.Arbitrary<Record<string, unknown>>;
}

const anyCase = fc
  .tuple(fc.constantFrom(...kinds), fc.constantFrom(...signings))
  .chain(([kind, signing]) => fc.record({ kind: fc.constant(kind), signing: fc.constant(signing), ipn: anyIpn(kind) }));

describe("the signed string", () => {
  test("has the shape of section 5.1 for a card IPN, isoResponseCode twice", () => {
    const wire = Object.fromEntries(ipnColumns("card").map(({ name }) => [name, `<${name}>`]));
    expect(signedString("card", wire, defaultSigning)).toBe(
      "aid=<aid>&amount=<amount>&approveCode=<approveCode>&isoResponseCode=<isoResponseCode>" +
        "&merchantTransId=<merchantTransId>&isoResponseCode=<isoResponseCode>&cardScheme=<cardScheme>" +
        "&tid=<tid>&mid=<mid>&traceNo=<traceNo>&batchNo=<batchNo>",
    );
  });

  test("has the shape of section 5.1 for a settlement IPN", () => {
    const wire = Object.fromEntries(ipnColumns("settlement").map(({ name }) => [name, `<${name}>`]));
    expect(signedString("settlement", wire, defaultSigning)).toBe(
      "batchNo=<batchNo>&quantity=<quantity>&saleQuantity=<saleQuantity>&saleTotalAmount=<saleTotalAmount>" +
        "&voidQuantity=<voidQuantity>&voidTotalAmount=<voidTotalAmount>&totalAmount=<totalAmount>&tid=<tid>&mid=<mid>",
    );
  });

  test("keeps the key of empty, null and missing values", () => {
    const text = signedString("settlement", { batchNo: "1", tid: "", mid: null }, defaultSigning);
    expect(text).toBe(
      "batchNo=1&quantity=&saleQuantity=&saleTotalAmount=&voidQuantity=&voidTotalAmount=&totalAmount=&tid=&mid=",
    );
  });

  test("is the same under the tables' and the sample's names when fields are signed", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.constantFrom(defaultSigning, agreed),
        fc.string(),
        (kind, signing, v) => {
          const ipn = Object.fromEntries(
            ipnColumns(kind).map(({ name, type }) => [name, type === "list" ? [] : v + name]),
          );
          const [table, sample] = [toWire(kind, ipn, "table"), toWire(kind, ipn, "sample")];
          expect(signedString(kind, sample, signing)).toBe(signedString(kind, table, signing));
        },
      ),
    );
  });

  test("never depends on the order of the object's keys", () => {
    fc.assert(
      fc.property(anyCase, ({ kind, signing, ipn }) => {
        const reversed = Object.fromEntries(Object.entries(ipn).reverse());
        expect(signedString(kind, reversed, signing)).toBe(signedString(kind, ipn, signing));
      }),
    );
  });

  test("never contains the signature", () => {
    fc.assert(
      fc.property(anyCase, fc.string(), ({ kind, signing, ipn }, signature) => {
        expect(signedString(kind, { ...ipn, signature }, signing)).toBe(signedString(kind, ipn, signing));
      }),
    );
  });

  test("refuses to sign a value that is not a string", () => {
    expect(() => signedString("card", { amount: 12 }, defaultSigning)).toThrow("amount must be a string");
  });

  test("refuses an agreed list without fields", () => {
    expect(() => signedString("card", {}, { mode: "fields", card: ["price"] })).toThrow("price cannot be signed");
  });
});

describe("a signature", () => {
  test("fails when one character of any signed field changes", () => {
    fc.assert(
      fc.property(anyCase, fc.nat(), fc.nat(), ({ kind, signing, ipn }, which, where) => {
        const names = signedFields(kind, signing).filter((name) => name !== "settlementList");
        const name = names[which % names.length] ?? "";
        const value = String(ipn[name]);
        const at = where % (value.length + 1);
        const changed = `${value.slice(0, at)}${value.charAt(at) === "x" ? "y" : "x"}${value.slice(at + 1)}`;
        // Half of a surrogate pair would remain, which cannot be sent.
        fc.pre(changed.isWellFormed());
        const signature = sign(signedString(kind, ipn, signing), key);
        expect(signatureMatches(signedString(kind, ipn, signing), signature, key)).toBe(true);
        expect(signatureMatches(signedString(kind, { ...ipn, [name]: changed }, signing), signature, key)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });

  test("over the whole IPN covers settlementList and unknown keys", () => {
    const wire = { id: "1", settlementList: [{ reqId: "a", refNo: "b" }] };
    const signature = sign(signedString("settlement", wire, whole), key);
    for (const changed of [
      { ...wire, settlementList: [{ reqId: "a", refNo: "c" }] },
      { ...wire, later: "" },
    ]) {
      expect(signatureMatches(signedString("settlement", changed, whole), signature, key)).toBe(false);
    }
  });

  test("of any other shape or key is false, never an exception", () => {
    const signature = sign("text", key);
    const others = [
      "",
      "00",
      `${signature}0`,
      `${signature}\n`,
      ` ${signature}`,
      `${signature.slice(2)}zz`,
      null,
      7,
      {},
    ];
    for (const other of others) expect(signatureMatches("text", other as string, key)).toBe(false);
    expect(signatureMatches("text", signature, hmacKey(randomBytes(32)))).toBe(false);
  });
});

describe("an agreed signing", () => {
  test.each([defaultSigning, agreed, whole])("is valid (%j)", (signing) =>
    expect(signingProblems(signing)).toEqual([]),
  );

  test("must contain id, transaction_type, status and the amount of its body", () => {
    expect(
      signingProblems({ mode: "fields", card: ["id", "tid"], settlement: ["id", "transaction_type", "amount"] }),
    ).toEqual([
      "signing.card must hold transaction_type",
      "signing.card must hold status",
      "signing.card must hold amount",
      'signing.settlement holds "amount", which is no field of the settlement IPN',
      "signing.settlement must hold status",
      "signing.settlement must hold totalAmount",
    ]);
  });

  test.each(["extraData", "settlementList", "signature", "device_id", "__proto__", ""])("must not hold %j", (name) => {
    const card = [...(agreed.mode === "fields" ? (agreed.card ?? []) : []), name];
    expect(signingProblems({ mode: "fields", card })).toHaveLength(1);
  });

  test("must have one of the two modes, and lists where lists are expected", () => {
    const wrong = [{ mode: "none" }, { mode: "fields", card: "id" }] as unknown as Signing[];
    for (const signing of wrong) expect(signingProblems(signing)).toHaveLength(1);
  });

  test("may be missing for one body, which then has the specification's order", () => {
    expect(signedFields("card", { mode: "fields", settlement: ["id"] })).toEqual(cardSigningOrder);
  });
});

describe("a signing key", () => {
  test.each([0, 16, 31, 33, 64])("of %d bytes is refused without being shown", (length) => {
    const raw = Buffer.alloc(length, "s");
    expect(() => hmacKey(raw)).toThrow(new TypeError(`a signing key must have 32 bytes, not ${length}`));
  });
});
