import { describe, expect, test } from "vitest";
import { aesCmac, Mac, MacKeys, retailMac } from "./mac.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

describe("the retail MAC of ANSI X9.19", () => {
  test.each([
    ["Hello World !!!!", "7CA110454A1A6E570131D9619DC1376E", "F09B856213BAB83B"],
    ["Now is the time for all ", "0123456789ABCDEFFEDCBA9876543210", "A1C72E74EA3FA9B6"],
  ])("of %j is that of the published vector", (text, key, mac) => {
    expect(retailMac(Buffer.from(text), hex(key)).toString("hex").toUpperCase()).toBe(mac);
  });

  test("pads with zeros what does not end with a block", () => {
    const key = hex("0123456789ABCDEFFEDCBA9876543210");
    expect(retailMac(hex("010203"), key)).toEqual(retailMac(hex("0102030000000000"), key));
    expect(retailMac(hex("01020304050607080900"), key)).toEqual(retailMac(hex("010203040506070809"), key));
  });
});

test("the retail MAC may be padded with a bit and zeros, in a block of its own if the last one is full", () => {
  const key = hex("0123456789ABCDEFFEDCBA9876543210");
  const bit = new Mac("x9.19", key, "bit");
  const zeros = new Mac("x9.19", key);
  expect(bit.of(hex("010203"))).toBe(zeros.of(hex("0102038000000000")));
  expect(bit.of(hex("0102030405060708"))).toBe(zeros.of(hex("01020304050607088000000000000000")));
});

describe("AES-CMAC", () => {
  const message = hex(
    "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51 30c81c46a35ce411e5fbc1191a0a52ef " +
      "f69f2445df4f9b17ad2b417be66c3710",
  );
  const keys = {
    128: hex("2b7e151628aed2a6abf7158809cf4f3c"),
    256: hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"),
  };

  test.each([
    [128, 0, "bb1d6929e95937287fa37d129b756746"],
    [128, 16, "070a16b46b4d4144f79bdd9dd04a287c"],
    [128, 40, "dfa66747de9ae63030ca32611497c827"],
    [128, 64, "51f0bebf7e3b9d92fc49741779363cfe"],
    [256, 0, "028962f61b7bf89efc6b551f4667d983"],
    [256, 16, "28a7023f452e8f82bd4bf28d8c37c35c"],
    [256, 64, "e1992190549f6ed5696a2c056c315410"],
  ] as const)("with a key of %i bits, of %i bytes, is that of RFC 4493 and SP 800-38B", (bits, length, mac) => {
    expect(aesCmac(message.subarray(0, length), keys[bits]).toString("hex")).toBe(mac);
  });
});

test("the key before still fits for ten minutes, and no longer", () => {
  let nowMs = 0;
  const form = { algorithm: "aes-cmac", padding: "zeros" } as const;
  const keys = new MacKeys(form, Buffer.alloc(16, 7), { monotonicMs: () => nowMs, nowMs: () => 0 });
  const bytes = Buffer.from("message");
  const before = keys.of(bytes);
  keys.replace(Buffer.alloc(16, 8));
  const fits = [599_999, 600_000].map((atMs) => {
    nowMs = atMs;
    return keys.fits(bytes, before);
  });
  expect(fits).toEqual([true, false]);
});

describe("a MAC of a message", () => {
  test("is eight bytes, and fits that message and no other", () => {
    const mac = new Mac("aes-cmac", Buffer.alloc(16, 7));
    const made = mac.of(Buffer.from("message"));
    expect(made).toMatch(/^[0-9A-F]{16}$/);
    expect(mac.fits(Buffer.from("message"), made)).toBe(true);
    expect(mac.fits(Buffer.from("massage"), made)).toBe(false);
    expect(mac.fits(Buffer.from("message"), made.slice(2))).toBe(false);
    expect(new Mac("aes-cmac", Buffer.alloc(16, 8)).fits(Buffer.from("message"), made)).toBe(false);
  });

  test.each([
    ["x9.19", 8],
    ["x9.19", 24],
    ["aes-cmac", 8],
  ] as const)("needs for %s no key of %i bytes", (algorithm, bytes) => {
    expect(() => new Mac(algorithm, Buffer.alloc(bytes))).toThrow(RangeError);
  });
});
