import { describe, expect, test } from "vitest";
import { callBackUrlProblem } from "./callback-url.ts";

describe("a callBackUrl", () => {
  test.each([
    "https://partner.example/ipn",
    "https://partner.example:8443/a/ipn?shop=1&till=2",
    "HTTPS://PARTNER.EXAMPLE/ipn",
    "https://203.0.113.9/ipn",
    "https://[2001:db8::1]/ipn",
    "https://bücher.example/ipn",
    "https://localhost.partner.example/ipn",
    "https://127partner.example/ipn",
  ])("%s is usable", (url) => {
    expect(callBackUrlProblem(url, false)).toBeUndefined();
  });

  test.each([
    ["partner.example/ipn", "invalid_callback_url"],
    ["/ipn", "invalid_callback_url"],
    ["https:partner.example", "invalid_callback_url"],
    ["https://", "invalid_callback_url"],
    ["https://partner.example:99999/", "invalid_callback_url"],
    ["ftp://partner.example/ipn", "invalid_callback_url"],
    ["javascript:alert(1)", "invalid_callback_url"],
    ["https://user@partner.example/ipn", "invalid_callback_url"],
    ["https://user:secret@partner.example/ipn", "invalid_callback_url"],
    ["https://partner.example/ipn#top", "invalid_callback_url"],
    ["https://partner.example/ipn#", "invalid_callback_url"],
    ["https://partner.example/i pn", "invalid_callback_url"],
    ["https://partner.example/ipn\n", "invalid_callback_url"],
    ["https:\\\\partner.example\\ipn", "invalid_callback_url"],
    ["http://partner.example/ipn", "insecure_callback_url"],
    ["https://localhost/ipn", "invalid_callback_url"],
    ["https://localhost./ipn", "invalid_callback_url"],
    ["https://api.localhost/ipn", "invalid_callback_url"],
    ["https://127.0.0.1/ipn", "invalid_callback_url"],
    ["https://127.9.9.9/ipn", "invalid_callback_url"],
    ["https://2130706433/ipn", "invalid_callback_url"],
    ["https://0x7f.1/ipn", "invalid_callback_url"],
    ["https://0.0.0.0/ipn", "invalid_callback_url"],
    ["https://[::1]/ipn", "invalid_callback_url"],
    ["https://[::]/ipn", "invalid_callback_url"],
    ["https://[::ffff:127.0.0.1]/ipn", "invalid_callback_url"],
    ["https://[0:0:0:0:0:ffff:7f00:1]/ipn", "invalid_callback_url"],
  ])("%s is not: %s", (url, code) => {
    expect(callBackUrlProblem(url, false)?.code).toBe(code);
  });

  test.each(["http://localhost:7421/ipn", "https://127.0.0.1:7421/ipn", "http://[::1]/ipn", "http://partner.example/"])(
    "%s is usable in the sandbox alone",
    (url) => {
      expect(callBackUrlProblem(url, true)).toBeUndefined();
      expect(callBackUrlProblem(url, false)).toBeDefined();
    },
  );

  test("with a password is refused in the sandbox too, and the password is not repeated", () => {
    const problem = callBackUrlProblem("https://user:hunter2@partner.example/", true);
    expect(problem?.code).toBe("invalid_callback_url");
    expect(JSON.stringify(problem)).not.toContain("hunter2");
  });
});
