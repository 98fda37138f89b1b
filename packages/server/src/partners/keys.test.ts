import { randomBytes } from "node:crypto";
import { hmacKey, webhookKey } from "@paybell/contract";
import { expect, test } from "vitest";
import { apiKeyHash, isApiKey, keyObject, newSecret } from "./keys.ts";

test("secrets have 32 random bytes, in the form that their receiver expects", () => {
  expect(newSecret("apiKey").text).toMatch(/^pb_[A-Za-z0-9_-]{43}$/);
  expect(newSecret("encryptionKey").text).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  expect(newSecret("signingKey").text).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  expect(newSecret("webhookSecret").text).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(newSecret("apiKey").text).not.toBe(newSecret("apiKey").text);
});

test("a string that cannot be an API key is recognised without a look-up", () => {
  const key = newSecret("apiKey").text;
  expect(isApiKey(key)).toBe(true);
  for (const other of ["", "pb_", key.slice(1), `${key}a`, `${key}\n`, key.replace("pb_", "sk_")]) {
    expect(isApiKey(other)).toBe(false);
  }
});

test("an API key is known by its SHA-256", () => {
  expect(apiKeyHash("pb_abc").toString("hex")).toBe("716da8c34e12fff2fec70f4397dd6da26828a5d7d2417fa0673047917a09a860");
});

test("a key version's KeyObject is that of the contract", () => {
  const raw = randomBytes(32);
  expect(keyObject("signingKey", "a", raw).key.equals(hmacKey(raw))).toBe(true);
  expect(keyObject("webhookSecret", "a", raw).key.equals(webhookKey(`whsec_${raw.toString("base64")}`))).toBe(true);
  expect(keyObject("encryptionKey", "a", raw)).toMatchObject({ id: "a" });
});
