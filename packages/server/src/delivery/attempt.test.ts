import { pino } from "pino";
import { expect, test } from "vitest";
import { systemClock } from "../clock.ts";
import { newId, type PartnerId } from "../ids.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { attempting } from "./attempt.ts";
import { SealingQueueFull } from "./sending/sealing-worker.ts";
import type { Claimed } from "./store.ts";

const standing = { id: newId<"instance">(), epoch: 1 };

test("an IPN whose lease ended while it waited to be sealed is not sent by this instance", async () => {
  const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
  for (const after of [undefined, { ...standing, epoch: 2 }]) {
    let current: typeof standing | undefined = standing;
    const posts: unknown[] = [];
    const attempt = attempting({
      transport: {
        post: (post) => {
          posts.push(post);
          return Promise.resolve({ address: "203.0.113.1", httpStatus: 204, answer: null });
        },
      },
      seals: { take: () => undefined },
      makeEnvelope: async () => {
        await Promise.resolve();
        current = after;
        return { headers: {}, body: Buffer.from("{}"), keyId: "k" };
      },
      lease: { current: () => current },
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
    transport: { post: () => Promise.reject(new Error("nothing may be sent")) },
    seals: { take: () => undefined },
    makeEnvelope: () => Promise.reject(new SealingQueueFull()),
    lease: { current: () => standing },
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

function claimedOf(partnerId: PartnerId): Claimed {
  return {
    partnerId,
    id: newId(),
    transactionId: null,
    originalId: null,
    chainId: newId(),
    command: "SETTLEMENT",
    content: "{}",
    callBackUrl: null,
    toRegistered: false,
    claimNo: 1,
    attemptsMade: 0,
    scheduleStartMs: 0,
    outOfOrder: false,
    isProbe: false,
  };
}
