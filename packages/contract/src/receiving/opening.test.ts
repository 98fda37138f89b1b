import { createCipheriv, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { encodings } from "../cryptography/encoding.ts";
import { seal } from "../cryptography/seal.ts";
import { ciphers, defaultSealing, type Sealing, sealingKey } from "../cryptography/sealing.ts";
import { defaultSigning, hmacKey, type Signing, sign, signedString } from "../cryptography/signing.ts";
import { NotAuthentic } from "../errors.ts";
import type { IpnKind } from "../fields/columns.ts";
import { toWire, type WireNames, wireNames } from "../fields/wire.ts";
import { type Opening, openAndVerify } from "./opening.ts";

const [oldKey, key] = [sealingKey("old", randomBytes(32)), sealingKey("new", randomBytes(32))];
const [oldSigner, signer] = [hmacKey(randomBytes(32)), hmacKey(randomBytes(32))];

const agreed: Signing = {
  mode: "fields",
  card: ["id", "transaction_type", "status", "amount"],
  settlement: ["id", "transaction_type", "status", "totalAmount"],
};
const sealings: fc.Arbitrary<Sealing> = fc.record({
  cipher: fc.constantFrom(...ciphers),
  encoding: fc.constantFrom(...encodings),
});
const signings = fc.constantFrom<Signing>(defaultSigning, agreed, { mode: "whole" });

function opening(change: Partial<Opening> = {}): Opening {
  return { sealing: defaultSealing, signing: defaultSigning, encryptionKeys: [key], signingKeys: [signer], ...change };
}

function signed(kind: IpnKind, signing: Signing = defaultSigning, names: WireNames = "table", by = signer) {
  const type = kind === "card" ? "SALE" : "SETTLE";
  const values = { id: "tx-1", amount: "12.50", totalAmount: "12.50", status: "SUCCESS", deviceId: "d-1" };
  const wire = toWire(kind, { ...values, transaction_type: type }, names);
  return { ...wire, signature: sign(signedString(kind, wire, signing), by) };
}

function posted(content: unknown, sealing = defaultSealing, by = key): string {
  return JSON.stringify({ data: seal(JSON.stringify(content), sealing, by) });
}

describe("a notification", () => {
  test("opens and verifies in every cipher, encoding, signing and set of names", () => {
    const kinds = fc.constantFrom<IpnKind>("card", "settlement");
    fc.assert(
      fc.property(kinds, sealings, signings, fc.constantFrom(...wireNames), (kind, sealing, signing, names) => {
        const wire = signed(kind, signing, names);
        const opened = openAndVerify(posted(wire, sealing), opening({ sealing, signing }));
        expect(opened).toMatchObject({ kind, wire, keyId: "new", ipn: { id: "tx-1", deviceId: "d-1" } });
        expect(opened.signedText).toBe(signedString(kind, wire, signing));
      }),
      { numRuns: 300 },
    );
  });

  test("opens with old and new keys while both are accepted, and with neither afterwards", () => {
    fc.assert(
      fc.property(
        sealings,
        fc.constantFrom(key, oldKey),
        fc.constantFrom(signer, oldSigner),
        (sealing, by, signedBy) => {
          const body = posted(signed("card", defaultSigning, "table", signedBy), sealing, by);
          const both = opening({ sealing, encryptionKeys: [key, oldKey], signingKeys: [signer, oldSigner] });
          expect(openAndVerify(body, both).keyId).toBe(by.id);
          expect(() => openAndVerify(body, { ...both, encryptionKeys: [] })).toThrow(NotAuthentic);
          expect(() => openAndVerify(body, { ...both, signingKeys: [] })).toThrow(NotAuthentic);
        },
      ),
    );
  });

  test("opens under AES-CBC although another key seems to fit first", () => {
    const sealing: Sealing = { cipher: "aes-256-cbc", encoding: "base64" };
    const fitsBoth = () => {
      const body = posted(signed("card"), sealing);
      const refusal = refusalOf(() => openAndVerify(body, opening({ sealing, encryptionKeys: [oldKey] })));
      return refusal.reason === "decryption" ? undefined : body;
    };
    // A wrong key produces valid padding in one of 256 messages, so 20,000 messages contain some.
    let body: string | undefined;
    for (let tries = 0; tries < 20_000 && body === undefined; tries += 1) body = fitsBoth();
    const opened = openAndVerify(body ?? "", opening({ sealing, encryptionKeys: [oldKey, key] }));
    expect(opened.keyId).toBe("new");
  });

  test("may carry a settlement of 50,000 transactions", () => {
    const settlementList = Array.from({ length: 50_000 }, (_, at) => ({ reqId: `req-${at}`, refNo: `ref "${at}":` }));
    const values = { transaction_type: "SETTLE", settlementList };
    for (const signing of [defaultSigning, { mode: "whole" }] as const) {
      const wire = toWire("settlement", values, "table");
      const body = posted({ ...wire, signature: sign(signedString("settlement", wire, signing), signer) });
      expect(openAndVerify(body, opening({ signing })).ipn).toMatchObject({ settlementList });
    }
  });

  test("may contain white space and escapes", () => {
    const { data } = JSON.parse(posted(signed("card")));
    const escaped = [...data].map((one: string) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
    for (const body of [`{ "data" : "${data}" }\n`, `{"data":"${escaped}"}`, `{"d\\u0061ta":"${escaped}"}`]) {
      expect(openAndVerify(body, opening()).ipn.id).toBe("tx-1");
    }
  });

  test("is an envelope whatever text it contains, and however it is spaced", () => {
    const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\r", "\t"), maxLength: 3 });
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.array(space, { minLength: 6, maxLength: 6 }), (text, gaps) => {
        const [a, b, c, d, e, f] = gaps;
        const body = `${a}{${b}"data"${c}:${d}${JSON.stringify(`\\"${text}\\`)}${e}}${f}`;
        expect(refusalOf(() => openAndVerify(body, opening())).reason).toBe("encoding");
      }),
    );
  });

  test.each(["[0,0]", '{"data":[[]]}', '{"data":"","a":0}', '{"a":0}', '{"data":"', '{"data"', "{", "[[[["])(
    "is refused as %s before it is read as JSON: nobody vouched for it yet",
    (body) => {
      const parse = vi.spyOn(JSON, "parse");
      onTestFinished(() => parse.mockRestore());
      expect(refusalOf(() => openAndVerify(body, opening())).reason).toBe("envelope");
      expect(parse).not.toHaveBeenCalled();
    },
  );

  test("may have its signature in upper case", () => {
    const wire = signed("card");
    const body = posted({ ...wire, signature: wire.signature.toUpperCase() });
    expect(openAndVerify(body, opening()).ipn.id).toBe("tx-1");
  });

  test.each([
    '{"data":"}',
    '{"data":"AAAA","data":"AAAA"}',
    '{"data":"AAAA","x":"1"}',
    '{"data":{}}',
    '{"x":"1"}',
    '["data"]',
    "null",
    "",
  ])("is not authentic as %s", (body) => {
    expect(() => openAndVerify(body, opening())).toThrow(NotAuthentic);
  });
});

describe("garbage", () => {
  const json = fc.json({ maxDepth: 3 });
  const sealedJson = fc.tuple(json, sealings);

  test("of any kind, at any depth, is refused in the same way", () => {
    const faces = new Set<string>();
    const body = fc.oneof(
      fc.string({ unit: "binary" }),
      json,
      fc.anything() as fc.Arbitrary<string>,
      fc.string().map((data) => JSON.stringify({ data })),
      fc.base64String().map((data) => JSON.stringify({ data })),
      sealedJson.map(([text, sealing]) => JSON.stringify({ data: seal(text, sealing, key) })),
      fc.dictionary(fc.constantFrom(...Object.keys(signed("card"))), fc.string()).map((part) => {
        return posted({ ...signed("card"), aid: "changed", ...part, mid: "changed" });
      }),
    );
    fc.assert(
      fc.property(body, sealings, signings, (text, sealing, signing) => {
        const refusal = refusalOf(() => openAndVerify(text, opening({ sealing, signing })));
        faces.add(JSON.stringify([String(refusal), refusal.stack, Object.keys(refusal), { ...refusal }]));
      }),
      { numRuns: 2000 },
    );
    expect(faces.size).toBe(1);
  });
});

function refusalOf(act: () => unknown): NotAuthentic {
  try {
    act();
  } catch (error) {
    if (error instanceof NotAuthentic) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

test("aes-256-cbc: wrong padding runs the same steps as right padding, so timing reveals nothing", () => {
  const sealing: Sealing = { cipher: "aes-256-cbc", encoding: "base64" };
  // JSON whose last block was modified: like wrong padding, it ends in text that is not JSON.
  const text = JSON.stringify({ ...signed("card"), extraData: "x".repeat(200) });
  const stepsWith = (lastByte: number) => {
    const block = Buffer.alloc(16, lastByte);
    const plain = Buffer.concat([Buffer.from(text.padEnd(Math.ceil(text.length / 16) * 16)), block]);
    const iv = randomBytes(16);
    const cipher = createCipheriv("aes-256-cbc", key.key, iv).setAutoPadding(false);
    const data = Buffer.concat([iv, cipher.update(plain), cipher.final()]).toString("base64");
    const parse = vi.spyOn(JSON, "parse");
    try {
      expect(() => openAndVerify(JSON.stringify({ data }), opening({ sealing }))).toThrow(NotAuthentic);
      return parse.mock.calls.map(([given]) => given.length > text.length);
    } finally {
      parse.mockRestore();
    }
  };
  expect(stepsWith(1)).toEqual([true]);
  for (const wrong of [0, 17, 65]) expect(stepsWith(wrong), `padding ${wrong}`).toEqual([true]);
});
