import { pino } from "pino";
import { expect, test } from "vitest";
import { systemClock } from "../clock.ts";
import { newId } from "../ids.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { attempting } from "./attempt.ts";
import { SealingQueueFull } from "./sealing-worker.ts";
import type { Claimed } from "./store.ts";

test("an IPN for which there is no room to seal is put off for a second: no attempt is made of it", async () => {
  const lines: string[] = [];
  const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
  const attempt = attempting({
    transport: { post: () => Promise.reject(new Error("nothing may be sent")) },
    seals: { take: () => undefined },
    makeEnvelope: () => Promise.reject(new SealingQueueFull()),
    clock: systemClock,
    log: pino({}, { write: (line) => void lines.push(line) }),
    attemptTimeoutMs: 1_000,
    random: () => 0.5,
  });
  const claimed: Claimed = {
    partnerId: partner.id,
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
  expect(await attempt(claimed, partner)).toEqual({ putOffMs: 1_000 });
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    "too much waits to be sealed: put off",
  ]);
});
