import { webcrypto } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { encodings, open, seal, sealingKey } from "../src/index.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map((a) => Buffer.from(a));
const text = fc.string({ unit: "binary", maxLength: 500 });
const encoding = fc.constantFrom(...encodings);

test("WebCrypto opens what we sealed with AES-256-GCM", async () => {
  await fc.assert(
    fc.asyncProperty(text, bytes(32), encoding, async (plain, raw, as) => {
      const key = await webcrypto.subtle.importKey("raw", raw, "AES-GCM", false, ["decrypt"]);
      const sealed = Buffer.from(seal(plain, { cipher: "aes-256-gcm", encoding: as }, sealingKey("k", raw)), as);
      const iv = sealed.subarray(0, 12);
      const opened = await webcrypto.subtle.decrypt({ name: "AES-GCM", iv, tagLength: 128 }, key, sealed.subarray(12));
      expect(Buffer.from(opened).toString("utf8")).toBe(plain);
    }),
  );
});

test("we open what WebCrypto sealed with AES-256-GCM", async () => {
  await fc.assert(
    fc.asyncProperty(text, bytes(32), bytes(12), encoding, async (plain, raw, iv, as) => {
      const key = await webcrypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt"]);
      const sealed = await webcrypto.subtle.encrypt({ name: "AES-GCM", iv, tagLength: 128 }, key, Buffer.from(plain));
      const data = Buffer.concat([iv, Buffer.from(sealed)]).toString(as);
      const opened = open(data, { cipher: "aes-256-gcm", encoding: as }, [sealingKey("k", raw)]);
      expect(opened).toEqual({ text: plain, keyId: "k" });
    }),
  );
});
