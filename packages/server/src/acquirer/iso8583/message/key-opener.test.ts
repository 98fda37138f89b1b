import { createCipheriv } from "node:crypto";
import { expect, test } from "vitest";
import { checkValueOf, HeldKeyOpener } from "./key-opener.ts";

const hex = (text: string) => Buffer.from(text, "hex");

test("AES key wrap is that of RFC 3394 (4.1)", () => {
  const opener = new HeldKeyOpener("aes-kw", "aes-cmac", hex("000102030405060708090A0B0C0D0E0F"));
  const wrapped = hex("1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5");
  expect(opener.open(wrapped, "").toString("hex")).toBe("00112233445566778899aabbccddeeff");
  wrapped[3] = 0;
  expect(() => opener.open(wrapped, "")).toThrow("the key cannot be decrypted");
});

test("a key opens under its key-encryption key, if the check value is its own", () => {
  const kek = hex("0123456789abcdeffedcba9876543210");
  const key = hex("11223344556677889900aabbccddeeff");
  const cipher = createCipheriv("des-ede3", Buffer.concat([kek, kek.subarray(0, 8)]), null).setAutoPadding(false);
  const encrypted = cipher.update(key);
  const opener = new HeldKeyOpener("tdes-ecb", "x9.19", kek);
  const checkValue = checkValueOf("x9.19", key).subarray(0, 3).toString("hex");
  expect(opener.open(encrypted, checkValue)).toEqual(key);
  expect(opener.open(encrypted, "")).toEqual(key);
  expect(() => opener.open(encrypted, "000000")).toThrow("the check value does not match the key");
  expect(() => opener.open(encrypted.subarray(1), "")).toThrow("the key cannot be decrypted");
  expect(() => new HeldKeyOpener("tdes-ecb", "x9.19", Buffer.alloc(8))).toThrow("has 16 or 24 bytes");
  const aes = createCipheriv("aes-128-ecb", kek, null).setAutoPadding(false);
  expect(new HeldKeyOpener("aes-ecb", "aes-cmac", kek).open(aes.update(key), "")).toEqual(key);
});

test("the check value of a DES key is that of zeros, as banks print it", () => {
  // Documents give 08D7B4 for this key, and 82E136 for the one of the test above.
  expect(checkValueOf("x9.19", hex("0123456789ABCDEFFEDCBA9876543210")).subarray(0, 3).toString("hex")).toBe("08d7b4");
});
