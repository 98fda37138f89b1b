import { describe, expect, test } from "vitest";
import { callbackUrlProblem, literalAddress } from "./callback-url.ts";

const production = { sandbox: false };

describe("a callback URL", () => {
  test.each([
    "https://partner.example/ipn",
    "https://partner.example:8443/a/b?c=d",
    "HTTPS://PARTNER.EXAMPLE",
    "https://[2001:db8::1]/ipn",
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
