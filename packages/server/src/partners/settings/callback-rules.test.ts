import { generate } from "selfsigned";
import { describe, expect, test } from "vitest";
import {
  callbackCaProblems,
  callbackPinProblems,
  callbackPortProblems,
  callbackUrlProblem,
  clientCertificateProblems,
  literalAddress,
  validUntil,
} from "./callback-rules.ts";

const production = { sandbox: false };

describe("a callback URL", () => {
  test.each([
    "https://partner.example/ipn",
    "https://partner.example:8443/a/b?c=d",
    "HTTPS://PARTNER.EXAMPLE",
    "https://[2001:db8::1]/ipn",
    "https://partner.example/".padEnd(2_048, "a"),
  ])("%s can be called", (url) => {
    expect(callbackUrlProblem("callBackUrl", url, production)).toBeUndefined();
  });

  test.each([
    ["", "invalid_callback_url"],
    ["partner.example/ipn", "invalid_callback_url"],
    ["https:partner.example", "invalid_callback_url"],
    ["ftp://partner.example", "invalid_callback_url"],
    ["https://user@partner.example/ipn", "invalid_callback_url"],
    ["https://:secret@partner.example/ipn", "invalid_callback_url"],
    ["https://partner.example/ipn#here", "invalid_callback_url"],
    ["https://partner.example/ipn#", "invalid_callback_url"],
    ["https://partner.example/i pn", "invalid_callback_url"],
    [" https://partner.example/ipn", "invalid_callback_url"],
    ["https://partner.example\\@other.example/", "invalid_callback_url"],
    ["https://1.2.3.4.5/", "invalid_callback_url"],
    ["https://partner.example/\ud83d", "invalid_callback_url"],
    ["http://partner.example/ipn", "insecure_callback_url"],
    [`https://partner.example/${"a".repeat(2_048)}`, "too_long"],
  ])("%j is refused as %s", (url, code) => {
    expect(callbackUrlProblem("callBackUrl", url, production)).toMatchObject({ field: "callBackUrl", code });
  });

  test.each([
    ["https://partner.example/ipn", [443], true],
    ["https://partner.example/ipn", [80, 8443], false],
    ["https://partner.example:8443/ipn", [443, 8443], true],
    ["https://partner.example:8443/ipn", [443], false],
    ["http://partner.example/ipn", [80], true],
    ["http://partner.example/ipn", [443], false],
  ])("%s, where the ports are %j: %s", (url, callbackPorts, isRight) => {
    const problem = callbackUrlProblem("callBackUrl", url, { sandbox: true }, { callbackPorts });
    expect(problem?.code).toBe(isRight ? undefined : "invalid_callback_url");
  });

  test("shows nobody the password in it", () => {
    const problem = callbackUrlProblem("callBackUrl", "https://user:hunter2@partner.example/", production);
    expect(JSON.stringify(problem)).not.toContain("hunter2");
  });

  test("may be http:// in the sandbox", () => {
    expect(callbackUrlProblem("callBackUrl", "http://partner.example/", { sandbox: true })).toBeUndefined();
  });

  test.each([
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.1/",
    "https://[::ffff:127.0.0.1]/",
  ])("whose host is the literal address %s is judged by the list at once", (url) => {
    const judge = (sandbox: boolean, addresses: string[]) =>
      callbackUrlProblem("callBackUrl", url, { sandbox }, { callbackAddresses: addresses });
    expect(judge(false, ["0.0.0.0/0"])).toMatchObject({ code: "address_not_whitelisted" });
    expect(judge(true, ["203.0.113.0/24"])).toMatchObject({ code: "address_not_whitelisted" });
    expect(judge(true, ["127.0.0.0/8"])).toBeUndefined();
  });
});

test("a name is no literal address", () => {
  expect(literalAddress("partner.example")).toBeUndefined();
  expect(literalAddress("1.2.3.example")).toBeUndefined();
  expect(literalAddress("[::1]")).toBe("::1");
  expect(literalAddress("10.0.0.1")).toBe("10.0.0.1");
});

const dayMs = 86_400_000;
const name = [{ name: "commonName", value: "paybell.test" }];
const leaf = await generate(name, { keyType: "ec", extensions: [{ name: "basicConstraints", cA: false }] });
const other = await generate(name, { keyType: "ec" });
const made = await generate(name, { keyType: "ec", extensions: [{ name: "basicConstraints", cA: true }] });
const authority = made.cert;

test("authorities are PEM certificates that may vouch for others", () => {
  expect(callbackCaProblems("callbackCa", null)).toEqual([]);
  expect(callbackCaProblems("callbackCa", `${authority}\n${authority}`)).toEqual([]);
  const damaged = authority.split("\n").toSpliced(2, 1).join("\n");
  const many = `${authority}\n`.repeat(21);
  const refusedText = [
    `\0${authority}`,
    `${authority}\ud83d`,
    `${authority}${made.private}`,
    `${authority}${leaf.cert}`,
  ];
  for (const wrong of [1, "", "x", leaf.cert, damaged, ...refusedText, many, `${authority}${"x".repeat(70_000)}`]) {
    expect(callbackCaProblems("callbackCa", wrong)).toMatchObject([{ field: "callbackCa" }]);
  }
});

test("a pin is a SHA-256 in base64, and says of what kind it is", () => {
  const pin = `sha256/${Buffer.alloc(32, 7).toString("base64")}`;
  expect(callbackPinProblems("callbackPins", [pin, pin])).toEqual([]);
  expect(callbackPinProblems("callbackPins", [pin, pin.slice(7), 1, `${pin}=`])).toMatchObject([
    { field: "callbackPins[1]" },
    { field: "callbackPins[2]" },
    { field: "callbackPins[3]" },
  ]);
  expect(
    callbackPinProblems(
      "callbackPins",
      Array.from({ length: 11 }, () => pin),
    ),
  ).toHaveLength(1);
});

test("ports are whole numbers from 1 to 65535, or null", () => {
  for (const right of [null, [443], [443, 65_535]]) expect(callbackPortProblems("callbackPorts", right)).toEqual([]);
  for (const wrong of [[], [0], [65_536], [1.5], ["443"], 443, Array.from({ length: 21 }, () => 443)]) {
    expect(callbackPortProblems("callbackPorts", wrong)).toHaveLength(1);
  }
});

test("a client certificate needs its own key, and time left; no problem repeats the key", () => {
  const input = { certificate: leaf.cert, key: leaf.private };
  const nowMs = Date.now();
  expect(clientCertificateProblems(input, nowMs)).toEqual([]);
  expect(validUntil(leaf.cert).getTime()).toBeGreaterThan(nowMs);
  const fieldsOf = (given: Partial<typeof input>, atMs = nowMs) =>
    clientCertificateProblems({ ...input, ...given }, atMs).map(({ field, message }) => {
      expect(message).not.toContain("PRIVATE KEY");
      return field;
    });
  expect(fieldsOf({ key: other.private })).toEqual(["key"]);
  expect(fieldsOf({ key: "not a key", certificate: "x" })).toEqual(["certificate", "key"]);
  expect(fieldsOf({ certificate: "-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----" })).toEqual([
    "certificate",
  ]);
  expect(fieldsOf({}, validUntil(leaf.cert).getTime() + dayMs)).toEqual(["certificate"]);
  expect(fieldsOf({ key: "x".repeat(70_000) })).toEqual(["key"]);
});
