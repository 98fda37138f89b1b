import { createSecretKey, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { notificationHeaders, webhookKey, webhookSignature, webhookSignatureMatches } from "./headers.ts";

const key = webhookKey(`whsec_${randomBytes(32).toString("base64")}`);
const other = webhookKey(`whsec_${randomBytes(32).toString("base64")}`);
const id = "018f3b1e-7c1a-7d2e-9b1a-3f6d2c5e8a03";
const body = '{"data":"AAAA"}';

describe("the header's signature", () => {
  test("equals the example in the Standard Webhooks documentation", () => {
    const example = createSecretKey(Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64"));
    const signature = webhookSignature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}', example);
    expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("is accepted for the text or the bytes it was made over", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(), (text, timestampS) => {
        const signature = webhookSignature(id, timestampS, Buffer.from(text), key);
        expect(signature).toBe(webhookSignature(id, timestampS, text, key));
        expect(webhookSignatureMatches(signature, id, String(timestampS), text, [key])).toBe(true);
      }),
    );
  });

  test("fails for another id, time, body or key", () => {
    const signature = webhookSignature(id, 1717140600, body, key);
    expect(webhookSignatureMatches(signature, `${id}0`, "1717140600", body, [key])).toBe(false);
    expect(webhookSignatureMatches(signature, id, "1717140601", body, [key])).toBe(false);
    expect(webhookSignatureMatches(signature, id, "1717140600", `${body} `, [key])).toBe(false);
    expect(webhookSignatureMatches(signature, id, "1717140600", body, [other])).toBe(false);
    expect(webhookSignatureMatches(signature, id, "1717140600", body, [])).toBe(false);
  });

  test("may be one of several, and may use either key of a rotation", () => {
    const [one, two] = [webhookSignature(id, 1, body, key), webhookSignature(id, 1, body, other)];
    const unknown = `v1a,${"A".repeat(86)}== v2,abc v1, v1,AAAA`;
    expect(webhookSignatureMatches(`${unknown} ${one} ${two}`, id, "1", body, [key])).toBe(true);
    expect(webhookSignatureMatches(two, id, "1", body, [key, other])).toBe(true);
    expect(webhookSignatureMatches(unknown, id, "1", body, [key, other])).toBe(false);
  });

  test("is sent under both keys of a rotation", () => {
    const posted = {
      id,
      command: "SALE",
      attemptNo: 1,
      body,
      timestampS: 1,
      cipher: "jwe",
      keyId: "",
      userAgent: "",
    } as const;
    const { "webhook-signature": sent = "" } = notificationHeaders({ ...posted, webhookKeys: [key, other] });
    for (const one of [key, other]) expect(webhookSignatureMatches(sent, id, "1", body, [one])).toBe(true);
  });

  test("does not match the same bytes split differently into id, time and body", () => {
    const signature = webhookSignature("a", 1, "2.text", key);
    expect(webhookSignatureMatches(signature, "a.1", "2", "text", [key])).toBe(false);
    for (const bad of ["a.1", "a 1", "a\n", "", "x".repeat(257)]) {
      expect(() => webhookSignature(bad, 2, "text", key), bad).toThrow(TypeError);
    }
    expect(webhookSignature("x".repeat(256), 2, "text", key)).toMatch(/^v1,/);
  });

  test("is false, never an exception, for any other header", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constant(undefined)), fc.string(), fc.string(), (header, anyId, time) => {
        expect(webhookSignatureMatches(header as string, anyId, time, body, [key])).toBe(false);
      }),
    );
  });

  test.each([-1, 1.5, Number.NaN, 1e21])("is refused for the time %d", (timestampS) => {
    expect(() => webhookSignature(id, timestampS, body, key)).toThrow("whole seconds");
  });
});

test.each([
  "",
  "whsec_",
  "secret-value",
  `whsec_${Buffer.alloc(24, "s").toString("base64")}`,
  `whsec_${Buffer.alloc(32, "s").toString("hex")}`,
  Buffer.alloc(32, "s").toString("base64"),
  `whsec_${Buffer.alloc(32, "s").toString("base64")}\n`,
])("a webhook secret of another shape is refused without being shown (%#)", (secret) => {
  expect(() => webhookKey(secret)).toThrow(
    /^a webhook secret must (have 32 bytes, not \d+|be whsec_ and base64 of 32 bytes)$/,
  );
});
