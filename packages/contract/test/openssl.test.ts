import fc from "fast-check";
import { expect, test } from "vitest";
import { needs } from "../../../test/support/programs.ts";
import { encodings, hmacKey, open, seal, sealingKey, sign, webhookKey, webhookSignature } from "../src/index.ts";
import { openssl } from "./openssl.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map((a) => Buffer.from(a));
const text = fc.string({ unit: "binary", maxLength: 300 });
const runs = { numRuns: 15 };

test("openssl opens what we sealed with AES-256-CBC", needs("openssl"), () => {
  fc.assert(
    fc.property(text, bytes(32), fc.constantFrom(...encodings), (plain, raw, encoding) => {
      const sealed = Buffer.from(seal(plain, { cipher: "aes-256-cbc", encoding }, sealingKey("k", raw)), encoding);
      const iv = sealed.subarray(0, 16).toString("hex");
      const args = ["enc", "-d", "-aes-256-cbc", "-K", raw.toString("hex"), "-iv", iv];
      expect(openssl(args, sealed.subarray(16)).toString("utf8")).toBe(plain);
    }),
    runs,
  );
});

test("we open what openssl sealed with AES-256-CBC", needs("openssl"), () => {
  fc.assert(
    fc.property(text, bytes(32), bytes(16), fc.constantFrom(...encodings), (plain, raw, iv, encoding) => {
      const args = ["enc", "-e", "-aes-256-cbc", "-K", raw.toString("hex"), "-iv", iv.toString("hex")];
      const data = Buffer.concat([iv, openssl(args, Buffer.from(plain))]).toString(encoding);
      const opened = open(data, { cipher: "aes-256-cbc", encoding }, [sealingKey("k", raw)]);
      expect(opened).toEqual({ text: plain, keyId: "k" });
    }),
    runs,
  );
});

test("openssl computes the signatures we compute", needs("openssl"), () => {
  fc.assert(
    fc.property(text, bytes(32), (signed, raw) => {
      const mac = hmac(raw, Buffer.from(signed));
      expect(sign(signed, hmacKey(raw))).toBe(mac.toString("hex"));
    }),
    runs,
  );
});

test("openssl computes the header signatures we compute", needs("openssl"), () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat(), text, bytes(32), (id, timestampS, body, raw) => {
      const key = webhookKey(`whsec_${raw.toString("base64")}`);
      const mac = hmac(raw, Buffer.from(`${id}.${timestampS}.${body}`));
      expect(webhookSignature(id, timestampS, body, key)).toBe(`v1,${mac.toString("base64")}`);
    }),
    runs,
  );
});

function hmac(raw: Buffer, signed: Buffer): Buffer {
  const args = ["dgst", "-sha256", "-mac", "HMAC", "-macopt", `hexkey:${raw.toString("hex")}`, "-binary"];
  return openssl(args, signed);
}
