import fc from "fast-check";
import { CompactEncrypt, compactDecrypt } from "jose";
import { expect, test } from "vitest";
import { open, type Sealing, seal, sealingKey } from "../src/index.ts";

const jwe: Sealing = { cipher: "jwe", encoding: "base64" };
const rawKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const text = fc.string({ unit: "binary", maxLength: 500 });
const keyId = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });

test("jose opens the JWE that we seal", async () => {
  await fc.assert(
    fc.asyncProperty(text, rawKey, keyId, async (plain, raw, id) => {
      const { plaintext, protectedHeader } = await compactDecrypt(seal(plain, jwe, sealingKey(id, raw)), raw);
      expect(new TextDecoder("utf-8", { ignoreBOM: true }).decode(plaintext)).toBe(plain);
      expect(protectedHeader).toEqual({ alg: "dir", enc: "A256GCM", kid: id });
    }),
  );
});

test("we open the JWE that jose seals", async () => {
  await fc.assert(
    fc.asyncProperty(text, rawKey, keyId, async (plain, raw, id) => {
      const data = await new CompactEncrypt(Buffer.from(plain))
        .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: id, typ: "JWE" })
        .encrypt(raw);
      expect(open(data, jwe, [sealingKey(id, raw)])).toEqual({ text: plain, keyId: id });
    }),
  );
});
