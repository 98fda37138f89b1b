import { createCipheriv, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NotAuthentic } from "../errors.ts";
import { encodings } from "./encoding.ts";
import { open, seal } from "./seal.ts";
import { ciphers, defaultSealing, type Sealing, sealingKey } from "./sealing.ts";

const [first, second, third] = ["k1", "k2", "k3"].map((id) => sealingKey(id, randomBytes(32))) as [Key, Key, Key];
type Key = ReturnType<typeof sealingKey>;

const anySealing: fc.Arbitrary<Sealing> = fc.record({
  cipher: fc.constantFrom(...ciphers),
  encoding: fc.constantFrom(...encodings),
});
const text = fc.string({ unit: "binary", maxLength: 200 });

describe("a sealed text", () => {
  test("opens to the same text in every cipher and encoding", () => {
    fc.assert(
      fc.property(text, anySealing, (plain, sealing) => {
        expect(open(seal(plain, sealing, first), sealing, [first])).toEqual({ text: plain, keyId: "k1" });
      }),
      { numRuns: 500 },
    );
  });

  test("opens with whichever of the keys sealed it", () => {
    fc.assert(
      fc.property(anySealing, fc.constantFrom(first, second, third), (sealing, key) => {
        const plain = JSON.stringify({ id: key.id, filler: "x".repeat(40) });
        expect(open(seal(plain, sealing, key), sealing, [first, second, third])).toEqual({
          text: plain,
          keyId: key.id,
        });
      }),
    );
  });

  test("differs each time", () => {
    fc.assert(
      fc.property(text, anySealing, (plain, sealing) => {
        expect(new Set(Array.from({ length: 20 }, () => seal(plain, sealing, first))).size).toBe(20);
      }),
    );
  });

  test("with one changed, missing or added character is not authentic when the cipher authenticates", () => {
    const authenticated = anySealing.filter(({ cipher }) => cipher !== "aes-256-cbc");
    fc.assert(
      fc.property(
        text,
        authenticated,
        fc.nat(),
        fc.string({ unit: "binary", maxLength: 2 }),
        (plain, sealing, where, by) => {
          const data = seal(plain, sealing, first);
          const at = where % data.length;
          const changed = `${data.slice(0, at)}${by}${data.slice(at + 1)}`;
          // Hexadecimal is valid in either case.
          fc.pre(sealing.encoding === "hex" ? changed.toLowerCase() !== data : changed !== data);
          expect(() => open(changed, sealing, [first])).toThrow(NotAuthentic);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("is not authentic under another key", () => {
    // Long enough that text decrypted with a wrong key, if its CBC padding happens to be valid, is not UTF-8.
    const plain = "a text of several blocks, so that chance has no chance".repeat(4);
    fc.assert(
      fc.property(anySealing, (sealing) => {
        expect(() => open(seal(plain, sealing, first), sealing, [second, third])).toThrow(NotAuthentic);
        expect(() => open(seal(plain, sealing, first), sealing, [])).toThrow(NotAuthentic);
      }),
    );
  });

  test("is not authentic under another cipher", () => {
    for (const cipher of ciphers) {
      for (const other of ciphers.filter((one) => one !== cipher)) {
        const data = seal("text", { cipher, encoding: "base64url" }, first);
        expect(() => open(data, { cipher: other, encoding: "base64url" }, [first])).toThrow(NotAuthentic);
      }
    }
  });

  test("with a JWE kid is not tried with a key of another id", () => {
    const jwe: Sealing = { cipher: "jwe", encoding: "base64" };
    const renamed = { id: "other", key: first.key };
    const refusal = () => open(seal("text", jwe, first), jwe, [renamed]);
    expect(refusal).toThrow(expect.objectContaining({ reason: "unknown_key" }));
  });
});

test("sealed data of another form is refused before anything is decrypted, a JWE by its parts", () => {
  const jwe: Sealing = { cipher: "jwe", encoding: "base64" };
  const sealed = seal("text", jwe, first);
  const [header = ""] = sealed.split(".");
  const cipher = createCipheriv("aes-256-gcm", first.key, Buffer.alloc(16)).setAAD(Buffer.from(header));
  const text = cipher.update("text").toString("base64url");
  cipher.final();
  const longIv = [header, "", Buffer.alloc(16).toString("base64url"), text, cipher.getAuthTag().toString("base64url")];
  const parts = [`${sealed}.`, `${sealed}.AAAA`, sealed.replace("..", ".AAAA."), longIv.join(".")];
  for (const [data, sealing] of [
    ...parts.map((one) => [one, jwe] as const),
    [Buffer.alloc(16).toString("base64"), { cipher: "aes-256-cbc", encoding: "base64" }] as const,
  ]) {
    expect(() => open(data, sealing, [first]), data).toThrow(expect.objectContaining({ reason: "encoding" }));
  }
});

test("aes-256-cbc: every byte of the padding counts, whatever its length", () => {
  const cbc: Sealing = { cipher: "aes-256-cbc", encoding: "base64" };
  const sealed = (plain: Buffer) => {
    const iv = randomBytes(16);
    const cipher = createCipheriv("aes-256-cbc", first.key, iv).setAutoPadding(false);
    return Buffer.concat([iv, cipher.update(plain), cipher.final()]).toString("base64");
  };
  for (let length = 1; length <= 16; length += 1) {
    const plain = Buffer.concat([Buffer.alloc(32 - length, "x"), Buffer.alloc(length, length)]);
    expect(open(sealed(plain), cbc, [first]).text).toBe("x".repeat(32 - length));
    for (let back = 1; back <= length; back += 1) {
      const changed = Buffer.from(plain);
      changed[32 - back] = length ^ 0x40;
      expect(() => open(sealed(changed), cbc, [first]), `${length}, ${back}`).toThrow(NotAuthentic);
    }
  }
});

test("garbage of any kind is not authentic", () => {
  const garbage = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.base64String(),
    fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes).toString("hex")),
    fc.array(fc.base64String(), { maxLength: 6 }).map((parts) => parts.join(".").replaceAll("=", "")),
    fc.anything() as fc.Arbitrary<string>,
  );
  fc.assert(
    fc.property(garbage, anySealing, (data, sealing) => {
      // A random CBC block decrypts once in 256 times: then the signature refuses it, not the cipher.
      fc.pre(sealing.cipher !== "aes-256-cbc" || typeof data !== "string" || data.length < 32);
      expect(() => open(data, sealing, [first, second])).toThrow(NotAuthentic);
    }),
    { numRuns: 1000 },
  );
});

test("AES-256-GCM in base64 is what is agreed on without an agreement", () => {
  expect(defaultSealing).toEqual({ cipher: "aes-256-gcm", encoding: "base64" });
});

test.each([0, 16, 31, 33])("an encryption key of %d bytes is refused without being shown", (length) => {
  const raw = Buffer.alloc(length, "s");
  expect(() => sealingKey("k", raw)).toThrow(new TypeError(`an encryption key must have 32 bytes, not ${length}`));
});
