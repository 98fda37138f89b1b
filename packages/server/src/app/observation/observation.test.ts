import { expect, onTestFinished, test } from "vitest";
import type { AttemptResult } from "../../delivery/attempt/attempt.ts";
import { acceptedAttempt, deliveryOf, failedAttempt } from "../../delivery/delivery.fixture.ts";
import { newId } from "../../ids.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import { causeOf, countAttempt, PartnerMetrics, watchLoop } from "./observation.ts";

function counting(partnersMax: number) {
  const metrics = createMetrics();
  onTestFinished(() => metrics.close());
  const lines = async () => (await metrics.text()).split("\n").filter((line) => line.startsWith("paybell_partner_"));
  return { partners: new PartnerMetrics(metrics, partnersMax), lines };
}

test("an attempt counts by its outcome, and its notification once it is accepted or parked", async () => {
  const metrics = createMetrics();
  onTestFinished(() => metrics.close());
  const [id, startedAtMs] = [newId<"partner">(), 1_800_000_000_000];
  const partners = new PartnerMetrics(metrics, 1);
  const delivery = deliveryOf(id, { scheduleStartMs: startedAtMs - 2_000 });
  const counted = (attempt: object, kind: AttemptResult["next"]["kind"]) =>
    countAttempt(metrics, partners, delivery, {
      attempt: { ...attempt, startedAtMs, durationMs: 500 },
      next: { kind },
    } as AttemptResult);
  counted(failedAttempt, "retry");
  counted(failedAttempt, "parked");
  counted(acceptedAttempt, "accepted");
  const lines = (await metrics.text()).split("\n").filter((line) => !/_bucket|^#| 0$/.test(line));
  expect(lines).toEqual(
    expect.arrayContaining([
      'paybell_attempt_seconds_sum{outcome="status"} 1',
      'paybell_attempts_failed_total{reason="status"} 2',
      'paybell_notifications_parked_total{reason="status"} 1',
      'paybell_notifications_accepted_total{command="SALE"} 1',
      'paybell_delivery_seconds_sum{command="SALE"} 2.5',
      `paybell_partner_attempts_failed_total{partner="${id}",reason="status"} 2`,
      `paybell_partner_accepted_total{partner="${id}"} 1`,
      `paybell_partner_delivery_seconds_sum{partner="${id}"} 2.5`,
    ]),
  );
});

const isGauge = (line: string) => line.includes("{") && !line.includes("_total{");

test("the first partners are counted each by itself, all beyond together", async () => {
  const { partners, lines } = counting(2);
  const [one, other, third, fourth] = [newId<"partner">(), newId<"partner">(), newId<"partner">(), newId<"partner">()];
  for (const id of [one, other, third, fourth, one]) partners.accepted(id, 0.1);
  partners.failed(fourth, "tls");
  const counted = (await lines()).filter((line) => line.includes("_total{") && !line.endsWith(" 0"));
  expect(counted).toEqual([
    `paybell_partner_accepted_total{partner="${one}"} 2`,
    `paybell_partner_accepted_total{partner="${other}"} 1`,
    'paybell_partner_accepted_total{partner="other"} 2',
    'paybell_partner_attempts_failed_total{partner="other",reason="tls"} 1',
  ]);
});

test("a partner's counters begin at 0 before its first notification", async () => {
  const { partners, lines } = counting(1);
  const one = newId<"partner">();
  partners.know(one);
  const counted = await lines();
  expect(counted).toContain(`paybell_partner_accepted_total{partner="${one}"} 0`);
  expect(counted).toContain(`paybell_partner_attempts_failed_total{partner="${one}",reason="timeout"} 0`);
  partners.know(newId<"partner">());
  expect(await lines()).toContain('paybell_partner_accepted_total{partner="other"} 0');
});

test("pending notifications are shown as they are now, and disappear when there are none", async () => {
  const { partners, lines } = counting(1);
  const [one, other] = [newId<"partner">(), newId<"partner">()];
  partners.show([{ partnerId: one, pending: 7, parked: 2, oldestMs: 40_000 }], 100_000);
  partners.show([{ partnerId: other, pending: 9, parked: 0, oldestMs: 1 }], 100_000);
  expect((await lines()).filter(isGauge)).toEqual([]);
  partners.show([{ partnerId: one, pending: 7, parked: 2, oldestMs: 40_000 }], 100_000);
  expect((await lines()).filter(isGauge)).toEqual([
    `paybell_partner_pending{partner="${one}"} 7`,
    `paybell_partner_parked{partner="${one}"} 2`,
    `paybell_partner_oldest_pending_seconds{partner="${one}"} 60`,
  ]);
});

test("none is counted by itself where that is turned off", async () => {
  const { partners, lines } = counting(0);
  partners.accepted(newId<"partner">(), 1);
  partners.show([{ partnerId: newId<"partner">(), pending: 1, parked: 1, oldestMs: undefined }], 0);
  expect((await lines()).filter((line) => line.includes("{"))).toEqual([]);
});

test("an event loop that was blocked for more than a second is logged with its cause", async () => {
  const lines: (readonly [object, string])[] = [];
  onTestFinished(watchLoop({ warn: (fields, message) => void lines.push([fields, message]) }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const untilMs = performance.now() + 2_000;
  while (performance.now() < untilMs);
  await expect.poll(() => lines.map(([, message]) => message)).toContain("the event loop was blocked");
  const [[fields] = []] = lines as readonly (readonly [{ blockedMs: number; cause: string }, string])[];
  expect(fields?.blockedMs).toBeGreaterThan(1_000);
  expect(fields?.cause).toBeDefined();
});

test("the cause is what took most of the time", () => {
  expect(causeOf({ forMs: 2_000, processorMs: 2_900, collectingMs: 1_500 })).toContain("garbage collection");
  expect(causeOf({ forMs: 2_000, processorMs: 1_900, collectingMs: 100 })).toContain("work of its own");
  expect(causeOf({ forMs: 2_000, processorMs: 200, collectingMs: 20 })).toContain("the machine");
});
