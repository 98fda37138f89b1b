import { spawn } from "node:child_process";
import { once as nextEvent } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startRedis } from "../../../../bench/redis.ts";
import { needs } from "../../../../test/support/programs.ts";
import { Misused, PaybellError } from "../errors/misused.ts";
import { deduplicate } from "../receiver/deduplicate.ts";
import { sampleIpn } from "../testing.ts";
import { storeConformance } from "./conformance.ts";
import { IpnInProgress, redisStore } from "./redis.ts";

const folder = mkdtempSync(join(tmpdir(), "paybell-redis-"));
const needed = needs("redis");
const server = needed.skip ? undefined : await startRedis(folder);
const socket = server?.socket ?? "";
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true });
});

const crashing = `
import { Redis } from "ioredis";
import { deduplicate } from ${JSON.stringify(import.meta.resolve("../receiver/deduplicate.ts"))};
import { redisStore } from ${JSON.stringify(import.meta.resolve("./redis.ts"))};
const once = deduplicate(redisStore(new Redis({ path: process.argv[2] }), { leaseMs: 200 }));
await once(() => process.kill(process.pid, "SIGKILL"))(JSON.parse(process.argv[1]));
`;

it("has keys of its own, claims an IPN for a minute, and remembers it for 100 days, unless set otherwise", async () => {
  const sent: string[][] = [];
  const call = async (...args: string[]) => {
    sent.push(args);
    return [];
  };
  const { received } = sampleIpn();
  expect(await deduplicate(redisStore({ call }))(() => undefined)(received)).toBe("processed");
  const [claimed = [], confirmed = []] = sent;
  expect(claimed.at(-1)).toBe("60000");
  expect(confirmed.at(-1)).toBe(String(100 * 86_400_000));
  for (const key of [...claimed.slice(3, 5), ...confirmed.slice(3, 5)]) expect(key).toMatch(/^paybell:ipn:\{/);
});

describe("in Redis", needed, () => {
  const ioredis = new Redis({ path: socket, lazyConnect: true });
  const nodeRedis = createClient({ socket: { path: socket, tls: false } });
  beforeAll(async () => {
    await ioredis.connect();
    await nodeRedis.connect();
  });
  afterAll(() => {
    ioredis.disconnect();
    nodeRedis.destroy();
  });
  beforeEach(() => ioredis.flushall());

  describe.each([
    ["ioredis", ioredis],
    ["node-redis", nodeRedis],
  ])("by %s", (_, client) => {
    storeConformance<undefined>({
      open: () => redisStore(client),
      crashWhileProcessing: async (received) => {
        const args = ["--conditions=paybell-source", "--input-type=module", "--eval", crashing];
        const child = spawn(process.execPath, [...args, JSON.stringify(received), socket], {
          stdio: "inherit",
          cwd: import.meta.dirname,
        });
        const [, signal] = (await nextEvent(child, "exit")) as [number | null, NodeJS.Signals | null];
        expect(signal).toBe("SIGKILL");
        await expect.poll(() => ioredis.keys("*:claim")).toEqual([]);
      },
    });
  });

  it("refuses to run an IPN that another process has claimed, until its lease expires", async () => {
    const { received } = sampleIpn();
    const release = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const first = deduplicate(redisStore(ioredis))(() => {
      started.resolve();
      return release.promise;
    })(received);
    await started.promise;
    const [claim = ""] = await ioredis.keys("*:claim");
    expect(await ioredis.pttl(claim)).toBeGreaterThan(1_000);
    const second = deduplicate(redisStore(nodeRedis))(() => undefined);
    const inProgress = await second(received).catch((error: unknown) => error);
    expect(inProgress).toBeInstanceOf(IpnInProgress);
    expect(inProgress).toBeInstanceOf(PaybellError);
    release.resolve();
    await first;
    expect(await second(received)).toBe("duplicate");
  });

  it.each([
    ["records the IPN", true],
    ["records nothing if the function fails", false],
  ])("leaves another process's claim unchanged when its own lease expired, and %s", async (_, succeeds) => {
    const [sale] = [sampleIpn()];
    const saleVoid = sampleIpn({ command: "VOID", of: sale });
    const release = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const slow = deduplicate(redisStore(ioredis, { leaseMs: 1 }))(() => {
      started.resolve();
      return release.promise;
    })(sale.received);
    await started.promise;
    while ((await ioredis.keys("*:claim")).length > 0);
    const other = Promise.withResolvers<void>();
    const otherStarted = Promise.withResolvers<void>();
    const others = deduplicate(redisStore(ioredis))(() => {
      otherStarted.resolve();
      return other.promise;
    })(saleVoid.received);
    await otherStarted.promise;
    if (succeeds) release.resolve();
    else release.reject(new Error("it failed"));
    expect(await slow.catch(() => "failed")).toBe(succeeds ? "processed" : "failed");
    expect(await ioredis.keys("*:claim")).toHaveLength(1);
    other.resolve();
    await others;
    const again = await deduplicate(redisStore(ioredis))(() => undefined)(sale.received);
    expect(again).toBe(succeeds ? "duplicate" : "processed");
  });

  it("forgets a chain after its retention, counted from its last IPN", async () => {
    await deduplicate(redisStore(ioredis, { retentionDays: 30, prefix: "shop:" }))(() => undefined)(
      sampleIpn().received,
    );
    const [key = "", ...others] = await ioredis.keys("*");
    expect(others).toEqual([]);
    expect(key).toMatch(/^shop:\{.*\}$/);
    const leftMs = await ioredis.pttl(key);
    expect(leftMs).toBeGreaterThan(29 * 86_400_000);
    expect(leftMs).toBeLessThanOrEqual(30 * 86_400_000);
  });

  it.each([
    ["a lease of nothing", { leaseMs: 0 }],
    ["a retention shorter than deliveries take", { retentionDays: 3 }],
    ["a retention without an end, which Redis refuses after your function ran", { retentionDays: Infinity }],
    ["a lease without an end", { leaseMs: Infinity }],
  ])("refuses %s", (_, options) => {
    expect(() => redisStore(ioredis, options)).toThrow(Misused);
  });
});
