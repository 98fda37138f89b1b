import { afterEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../errors.ts";
import { createLog } from "../../telemetry/log.ts";
import { apiKey, HttpTestService, operatorToken } from "../service.fixture.ts";
import { WrongKeys } from "./wrong-keys.ts";

let service: HttpTestService;
afterEach(() => service.close());

async function start(options?: ConstructorParameters<typeof HttpTestService>[0]): Promise<void> {
  service = await new HttpTestService(options).listen();
}

describe("the partner API", () => {
  test.each([
    ["no key", null],
    ["an unknown key", "pb_unknown"],
    ["the operator's token", operatorToken],
  ])("%s is 401, and a body that is no JSON changes nothing about it", async (_, key) => {
    await start();
    for (const body of ["{}", "no JSON"]) {
      const { status, body: problem, headers } = await service.call("POST", "/v1/commands", { key, body });
      expect(status).toBe(401);
      expect(problem).toMatchObject({ code: "unauthorized", status: 401 });
      expect(headers.get("www-authenticate")).toBe("Bearer");
    }
  });

  test("an operator's token of the settings is answered as any other text of its form", async () => {
    await start();
    const detailOf = async (key: string) => (await service.call("GET", "/v1/self", { key })).body["detail"];
    const detail = await detailOf(operatorToken);
    expect(detail).toBe(
      "This is not a partner's API key: pb_ and 43 characters. An operator's token is for the operator API.",
    );
    expect(await detailOf([...operatorToken].reverse().join(""))).toBe(detail);
    expect(await detailOf(`pb_${"a".repeat(43)}`)).not.toContain("operator");
  });

  test.each([`bearer ${apiKey}`, `BEARER  ${apiKey}`])("the scheme may be written as %s", async (authorization) => {
    await start();
    const { status } = await service.call("GET", "/v1/self", { key: null, headers: { authorization } });
    expect(status).toBe(200);
  });

  test.each([`Basic ${apiKey}`, apiKey, `Bearer ${apiKey} x`])("%s is no key", async (authorization) => {
    await start();
    const { status } = await service.call("GET", "/v1/self", { key: null, headers: { authorization } });
    expect(status).toBe(401);
  });

  test("a call from outside callingAddresses is 403 and names the address", async () => {
    await start();
    service.callingAddresses = ["203.0.113.0/24"];
    const { status, body } = await service.call("GET", "/v1/self");
    expect(status).toBe(403);
    expect(body).toMatchObject({ code: "address_not_allowed", detail: "127.0.0.1 is not among callingAddresses." });
  });

  test("X-Forwarded-For is ignored if no proxy is trusted", async () => {
    await start();
    service.callingAddresses = ["203.0.113.0/24"];
    const { status } = await service.call("GET", "/v1/self", { headers: { "x-forwarded-for": "203.0.113.9" } });
    expect(status).toBe(403);
  });

  test.each([
    ["203.0.113.9", 200],
    ["198.51.100.1", 403],
    // Entries that the caller wrote itself are ignored.
    ["203.0.113.9, 198.51.100.1", 403],
    ["198.51.100.1, 203.0.113.9, 127.0.0.1", 200],
    ["", 403],
    ["unknown", 403],
  ])("behind a trusted proxy, X-Forwarded-For: %s gives %i", async (forwarded, expected) => {
    await start({ env: { PAYBELL_TRUSTED_PROXIES: "127.0.0.1" } });
    service.callingAddresses = ["203.0.113.0/24"];
    const { status } = await service.call("GET", "/v1/self", { headers: { "x-forwarded-for": forwarded } });
    expect(status).toBe(expected);
  });

  test("a disabled partner gets 403, and a paused one can still run commands", async () => {
    await start();
    service.state = "disabled";
    expect(await service.call("GET", "/v1/self")).toMatchObject({ status: 403, body: { code: "partner_disabled" } });
    service.state = "paused";
    expect((await service.call("GET", "/v1/self")).status).toBe(200);
  });

  test("when no key can be checked it is 503 with Retry-After", async () => {
    await start();
    service.fails("findByApiKey", new ServiceError("unavailable", undefined, { retryAfterS: 2.1 }));
    const { status, headers, body } = await service.call("GET", "/v1/self");
    expect(status).toBe(503);
    expect(headers.get("retry-after")).toBe("3");
    expect(body["code"]).toBe("unavailable");
  });
});

describe("the operator API", () => {
  test.each([null, apiKey, `${operatorToken}x`])("the key %s is 401", async (key) => {
    await start();
    const { status, body } = await service.call("GET", "/operator/v1/partners", { key });
    expect(status).toBe(401);
    expect(body["code"]).toBe("unauthorized");
  });

  test("each of two tokens is accepted", async () => {
    const second = "second-operator-token-of-a-test-99";
    await start({ env: { PAYBELL_OPERATOR_TOKEN: `${operatorToken},${second}` } });
    for (const key of [operatorToken, second]) {
      expect((await service.call("GET", "/operator/v1/partners", { key })).status).toBe(200);
    }
  });

  test("without a configured token every caller is refused", async () => {
    await start({ env: { PAYBELL_OPERATOR_TOKEN: "" } });
    for (const key of [null, operatorToken]) {
      expect((await service.call("GET", "/operator/v1/partners", { key })).status).toBe(401);
    }
  });

  test("no key ever reaches the log", async () => {
    await start();
    await service.call("GET", "/v1/self");
    await service.call("GET", "/operator/v1/partners");
    expect(service.logged).toContain("/v1/self");
    expect(service.logged).not.toContain(apiKey);
    expect(service.logged).not.toContain(operatorToken);
  });
});

function codeOf(refusing: () => never): unknown {
  try {
    return refusing();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

test("wrong keys are counted for a network of IPv6 addresses, of which one caller has as many as it wants", () => {
  const wrongKeys = new WrongKeys({
    log: createLog("error", { write: () => undefined }),
    metrics: { callersRefused: { inc: () => undefined } } as never,
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
  });
  const codes = Array.from({ length: 101 }, (_, nth) =>
    codeOf(() => wrongKeys.refuse(`2001:db8:1:2::${nth.toString(16)}`)),
  );
  expect([codes[0], codes[99], codes[100]]).toEqual(["unauthorized", "unauthorized", "too_many_requests"]);
  expect(codeOf(() => wrongKeys.refuse("2001:db8:1:3::1"))).toBe("unauthorized");
});
