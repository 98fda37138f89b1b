import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { readConfig } from "../../config/config.ts";
import { isApiKey } from "../../partners/keys.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { partner } from "../policy.ts";
import { apiKey, HttpTestService, otherApiKey } from "../service.fixture.ts";
import { RateLimit, RateLimits } from "./rate-limits.ts";

let service: HttpTestService;
afterEach(() => service.close());

async function start(env: NodeJS.ProcessEnv): Promise<void> {
  service = await new HttpTestService({ env }).listen();
}

async function statuses(count: number, call: () => Promise<{ readonly status: number }>): Promise<number[]> {
  const found: number[] = [];
  for (let done = 0; done < count; done += 1) found.push((await call()).status);
  return found;
}

describe("one partner", () => {
  test("over its rate is answered 429 with when to come back, and another is not", async () => {
    await start({ PAYBELL_PARTNER_REQUESTS_PER_MINUTE: "3" });
    expect(await statuses(3, () => service.call("GET", "/v1/self"))).toEqual([200, 200, 200]);
    const refused = await service.call("GET", "/v1/self");
    expect(refused).toMatchObject({ status: 429, body: { code: "too_many_requests" } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("ratelimit-policy")).toBe('"requests";q=3;w=60');
    expect(refused.headers.get("ratelimit")).toMatch(/^"requests";r=0;t=\d+$/);
    expect((await service.call("GET", "/v1/notifications", { key: otherApiKey })).status).toBe(200);
  });

  test("with valid commands at full speed is held to its rate before a body is read, and another is not", async () => {
    await start({ PAYBELL_PARTNER_REQUESTS_PER_MINUTE: "20" });
    const card = { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
    const sale = {
      command: "SALE",
      amount: "12.50",
      currency: "USD",
      tid: "T1",
      mid: "M1",
      merchantTransId: "B1",
      card,
    };
    const run = (key = apiKey) =>
      service.call("POST", "/v1/commands", { key, json: { ...sale, reqId: "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa" } });
    const answers = await Promise.all(Array.from({ length: 60 }, () => run()));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(40);
    expect(service.ran).toHaveLength(20);
    expect((await run(otherApiKey)).status).toBe(200);
  });

  test.each([
    ["pulls, each begun fifty", "GET", "/v1/notifications?limit=451"],
    ["pulls without their body", "HEAD", "/v1/notifications?limit=500"],
  ])("has a rate of its own for %s", async (_, method, path) => {
    await start({ PAYBELL_PARTNER_PULLS_PER_MINUTE: "100" });
    expect(await statuses(11, () => service.call(method, path))).toEqual([...Array(10).fill(200), 429]);
    // Cheap requests are still allowed.
    expect((await service.call("GET", "/v1/self")).status).toBe(200);
  });

  test("has one rate for all that it changes: each is in the audit, which instances write one after the other", async () => {
    await start({ PAYBELL_PARTNER_REDELIVERIES_PER_MINUTE: "1" });
    expect((await service.call("POST", "/v1/test-notification")).status).toBe(202);
    const { paths } = (await service.call("GET", "/openapi.json")).body as { paths: Record<string, object> };
    const own = Object.entries(paths).filter(([path]) => path.startsWith("/v1/") && path !== "/v1/commands");
    const changes = own.flatMap(([path, of]) => Object.keys(of).map((method) => [method.toUpperCase(), path] as const));
    for (const [method, path] of changes.filter(([method]) => method !== "GET")) {
      const { status } = await service.call(method, path.replaceAll(/\{\w+\}/g, "x"));
      expect([path, status]).toEqual([path, 429]);
    }
    expect(changes.map(([, path]) => path)).toContain("/v1/keys/rotate");
  });

  test("beyond its part of the instance's time waits, then is answered 429, and another is not", async () => {
    await start({ PAYBELL_PARTNER_PROCESSOR_PERCENT: "1" });
    // Until a body has come it is expected to take 6 ms, which are paid for after 0.6 s.
    const head = ["POST /v1/commands HTTP/1.1", "Host: localhost", `Authorization: Bearer ${apiKey}`];
    const announced = [...head, "Content-Type: application/json", "Content-Length: 64000", "", ""].join("\r\n");
    const sockets = Array.from({ length: 20 }, () => connect(service.port, "127.0.0.1"));
    for (const socket of sockets) socket.write(announced);
    const [answer] = await Promise.race(sockets.map((socket) => once(socket, "data")));
    for (const socket of sockets) socket.destroy();
    expect(String(answer)).toMatch(/^HTTP\/1.1 429 .*\r\nretry-after: 1\r\n/is);
    expect((await service.call("GET", "/v1/notifications/search", { key: otherApiKey })).status).toBe(200);
    // What it fetches does not delay what it commands.
    expect((await service.call("GET", "/v1/notifications?limit=500")).status).toBe(200);
  });

  test.each([
    ["that is short and has every field wrong", "{}"],
    ["of 64 kB", JSON.stringify({ billId: "x".repeat(60_000) })],
  ])("pays for the refusal of a body %s", async (_, body) => {
    await start({ PAYBELL_PARTNER_PROCESSOR_PERCENT: "1" });
    const headers = { "content-type": "application/json" };
    const call = () => service.call("POST", "/v1/commands", { body, headers });
    const answers = await Promise.all(Array.from({ length: 200 }, call));
    const statuses = answers.map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([400, 429]));
    expect((await service.call("GET", "/v1/notifications/search", { key: otherApiKey })).status).toBe(200);
  });

  test("pays for each item that its pages may have, also for those that are not there", async () => {
    await start({ PAYBELL_PARTNER_PROCESSOR_PERCENT: "1" });
    const pages = Array.from({ length: 20 }, () => service.call("GET", "/v1/notifications?limit=500"));
    const answers = await Promise.all(pages);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
  });

  test("does not pay for the time in which other programs had the processor while its body was read", async () => {
    await start({});
    let nowMs = 0;
    const limits = new RateLimits(readConfig({}), { monotonicMs: () => nowMs }, {} as Metrics);
    const admit = limits.ofPartner({ partner: () => ({ id: "a partner" }) } as never);
    const config = { policy: partner("commands", "async").runs };
    const request = { routeOptions: { config }, headers: {}, query: {} };
    const [first, second] = [{ ...request }, { ...request }] as never[];
    await admit(first as never, {} as never);
    limits.reading(first as never, 300, () => {
      nowMs += 900;
    });
    // With 900 ms to pay for, it would wait until this clock goes on.
    await admit(second as never, {} as never);
  });

  test("has a separate rate for asynchronous commands", async () => {
    await start({ PAYBELL_PARTNER_ASYNC_PER_MINUTE: "2" });
    const json = { command: "LOGON", reqId: "11111111-1111-4111-8111-111111111111", tid: "T1", mid: "M1" };
    const run = (prefer: string) => service.call("POST", "/v1/commands", { json, headers: { prefer } });
    expect(await statuses(2, () => run("respond-async"))).toEqual([202, 202]);
    expect((await run("wait=5, Respond-Async")).status).toBe(429);
    expect((await service.call("POST", "/v1/commands", { json })).status).toBe(200);
  });
});

describe("an address without a key", () => {
  test.each(["/healthz", "/metrics", "/readyz", "/nowhere", "/%"])(
    "has a rate for what needs none: %s",
    async (path) => {
      await start({ PAYBELL_ANONYMOUS_PER_MINUTE: "2" });
      const [first, second, third] = await statuses(3, () => service.call("GET", path, { key: null }));
      expect(first).toBe(second);
      expect(first).not.toBe(429);
      if (path !== "/%") expect(third).toBe(429);
      expect((await service.call("GET", "/v1/self")).status).toBe(200);
    },
  );

  test("is one with all of its network, if it is IPv6: requests and bytes", async () => {
    await start({ PAYBELL_ANONYMOUS_PER_MINUTE: "60", PAYBELL_TRUSTED_PROXIES: "127.0.0.1/32" });
    const get = (path: string, address: string) =>
      service.call("GET", path, { key: null, headers: { "x-forwarded-for": address } });
    let host = 0;
    expect(await statuses(61, () => get("/nowhere", `2001:db8:1:2::${++host}`))).toEqual([...Array(60).fill(404), 429]);
    expect((await get("/docs/js/scalar.js", "2001:db8:1:3::1")).status).toBe(200);
    expect((await get("/nowhere", "2001:db8:1:3::2")).status).toBe(429);
    expect((await get("/nowhere", "2001:db8:1:4::1")).status).toBe(404);
  });

  test("has its answers' bytes counted: large files use its rate up", async () => {
    await start({ PAYBELL_ANONYMOUS_PER_MINUTE: "60" });
    const get = () => service.call("GET", "/docs/js/scalar.js", { key: null });
    expect(await statuses(3, get)).toEqual([200, 429, 429]);
    expect((await service.call("GET", "/v1/self")).status).toBe(200);
  });
});

describe("wrong keys", () => {
  test("from one address are 429 after a hundred in a minute; a right one from there still works", async () => {
    await start({});
    const wrong = () => service.call("GET", "/v1/self", { key: "pb_wrong" });
    expect(new Set(await statuses(100, wrong))).toEqual(new Set([401]));
    const refused = await wrong();
    expect(refused).toMatchObject({ status: 429, body: { code: "too_many_requests" } });
    expect(refused.headers.has("retry-after")).toBe(true);
    // Both routes count together.
    expect((await service.call("GET", "/operator/v1/partners", { key: "wrong" })).status).toBe(429);
    expect((await service.call("GET", "/v1/self")).status).toBe(200);
    expect((await service.call("GET", "/operator/v1/partners")).status).toBe(200);
    expect(service.events).toEqual([
      { kind: "wrong_keys", partnerId: null, subjectId: null, detail: { address: "127.0.0.1" } },
    ]);
    expect(service.logged).toContain("too many wrong keys from one address");
    const { text } = await service.call("GET", "/metrics", { key: null });
    expect(text).toContain('paybell_callers_refused_total{reason="wrong_key"} 100');
  });

  test("that would be right from another address are reported to the operator, once for each partner", async () => {
    await start({});
    service.callingAddresses = ["192.0.2.0/24"];
    for (const key of [apiKey, otherApiKey]) {
      expect(await statuses(3, () => service.call("GET", "/v1/self", { key }))).toEqual([403, 403, 403]);
    }
    const event = { kind: "key_from_elsewhere", subjectId: null, detail: { address: "127.0.0.1" } };
    expect(service.events).toEqual([service.partner, service.other].map(({ id }) => ({ ...event, partnerId: id })));
    expect(service.logged).toContain("a valid key came from an address that is not allowed");
    expect(service.logged).not.toContain(apiKey);
  });

  test("of the other kind are named as such in the answer", async () => {
    await start({});
    const partners = await service.call("GET", "/v1/self", { key: `pbo_${"a".repeat(43)}` });
    expect(partners).toMatchObject({ status: 401, body: { detail: expect.stringContaining("operator's token") } });
    const key = `pb_${"a".repeat(43)}`;
    expect(isApiKey(key)).toBe(true);
    const operators = await service.call("GET", "/operator/v1/partners", { key });
    expect(operators).toMatchObject({ status: 401, body: { detail: expect.stringContaining("partner's API key") } });
  });
});

function limited(perMinute: number) {
  const clock = { nowMs: 1_000, monotonicMs: () => clock.nowMs };
  return { clock, limit: new RateLimit(perMinute, clock) };
}

describe("a rate", () => {
  test("allows its number in a minute that begins with the first", () => {
    const { clock, limit } = limited(3);
    expect(limit.count("a")).toEqual({ allowed: true, remaining: 2, resetS: 60 });
    clock.nowMs += 30_000;
    expect(limit.count("a")).toEqual({ allowed: true, remaining: 1, resetS: 30 });
    limit.count("a");
    expect(limit.count("a")).toEqual({ allowed: false, remaining: 0, resetS: 30 });
    clock.nowMs += 30_000;
    expect(limit.count("a")).toEqual({ allowed: true, remaining: 2, resetS: 60 });
  });

  test("counts a more expensive request several times", () => {
    const { limit } = limited(10);
    expect(limit.count("a", 8)).toMatchObject({ allowed: true, remaining: 2 });
    expect(limit.count("a", 8).allowed).toBe(false);
    expect(limit.count("a", 2)).toMatchObject({ allowed: true, remaining: 0 });
  });

  test("never allows more than twice its number within a minute", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.array(fc.integer({ min: 0, max: 5_000 })), (perMinute, gaps) => {
        const { clock, limit } = limited(perMinute);
        const allowedAt: number[] = [];
        for (const gap of gaps) {
          clock.nowMs += gap;
          if (limit.count("a").allowed) allowedAt.push(clock.nowMs);
        }
        const lately = allowedAt.filter((at) => at > clock.nowMs - 60_000).length;
        expect(lately).toBeLessThanOrEqual(2 * perMinute);
      }),
    );
  });

  test("forgets keys beyond its bound, and stays within it", () => {
    const { limit } = limited(1);
    for (let count = 0; count < 20_001; count += 1) limit.count(`key ${count}`);
    expect(limit.count("key 0").allowed).toBe(true);
    expect(limit.count("key 20000").allowed).toBe(false);
  });
});
