import { pino } from "pino";
import { expect, test } from "vitest";
import { systemClock } from "../clock.ts";
import { newId } from "../ids.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { attempting } from "./attempt.ts";
import { claimedOf } from "./claimed.fixture.ts";
import { SealingQueueFull } from "./sending/sealing-worker.ts";
import { LeaseLost } from "./sending/sender.ts";

const standing = { id: newId<"instance">(), epoch: 1 };

test("an IPN whose lease ended while it waited to be sealed is not sent by this instance", async () => {
  const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
  for (const after of [undefined, { ...standing, epoch: 2 }]) {
    let current: typeof standing | undefined = standing;
    const posts: unknown[] = [];
    const attempt = attempting({
      sender: {
        send: () => Promise.reject(new Error("it is large")),
        post: (post) => {
          posts.push(post);
          return Promise.resolve({ address: "203.0.113.1", httpStatus: 204, answer: null });
        },
      },
      seals: { take: () => undefined },
      sealingWorker: {
        isLarge: () => true,
        makeLarge: async () => {
          await Promise.resolve();
          current = after;
          return { headers: {}, body: Buffer.from("{}"), keyId: "k" };
        },
      },
      lease: { current: () => current, remainingMs: () => 8_000 },
      clock: systemClock,
      log: pino({ level: "silent" }),
      attemptTimeoutMs: 1_000,
      random: () => 0.5,
    });
    expect(await attempt(claimedOf(partner.id), partner)).toEqual({ putOffMs: 1_000 });
    expect(posts).toEqual([]);
  }
});

test("an IPN for which there is no room to seal is put off for a second: no attempt is made of it", async () => {
  const lines: string[] = [];
  const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
  const attempt = attempting({
    sender: { send: nothingMayBeSent, post: nothingMayBeSent },
    seals: { take: () => undefined },
    sealingWorker: { isLarge: () => true, makeLarge: () => Promise.reject(new SealingQueueFull()) },
    lease: { current: () => standing, remainingMs: () => 8_000 },
    clock: systemClock,
    log: pino({}, { write: (line) => void lines.push(line) }),
    attemptTimeoutMs: 1_000,
    random: () => 0.5,
  });
  expect(await attempt(claimedOf(partner.id), partner)).toEqual({ putOffMs: 1_000 });
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    "too much waits to be sealed: put off",
  ]);
});

test("an IPN that comes to the sender when the lease is over is put off", async () => {
  const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
  const startBefore: number[] = [];
  const attempt = attempting({
    sender: {
      send: ({ startBeforeMs }) => {
        startBefore.push(startBeforeMs);
        return Promise.reject(new LeaseLost());
      },
      post: nothingMayBeSent,
    },
    seals: { take: () => undefined },
    sealingWorker: { isLarge: () => false, makeLarge: () => Promise.reject(new Error("it is small")) },
    lease: { current: () => standing, remainingMs: () => 250 },
    clock: { nowMs: () => 0, monotonicMs: () => 1_000 },
    log: pino({ level: "silent" }),
    attemptTimeoutMs: 1_000,
    random: () => 0.5,
  });
  expect(await attempt(claimedOf(partner.id), partner)).toEqual({ putOffMs: 1_000 });
  expect(startBefore).toEqual([1_250]);
});

function nothingMayBeSent(): Promise<never> {
  return Promise.reject(new Error("nothing may be sent"));
}
