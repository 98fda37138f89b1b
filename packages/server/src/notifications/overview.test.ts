import { expect, test } from "vitest";
import type { AttemptResult } from "../delivery/attempt/attempt.ts";
import { acceptedAttempt, deliveryOf, failedAttempt } from "../delivery/delivery.fixture.ts";
import { newId } from "../ids.ts";
import { FigureCounter, type FigurePoint, type MinuteCounts, Overviews } from "./overview.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The begin of a minute. */
const nowMs = 1_800_000_000_000;
const partnerId = newId<"partner">();

interface Counted {
  readonly endedMs?: number;
  readonly durationMs?: number;
  readonly ageMs?: number;
  readonly next?: AttemptResult["next"]["kind"];
}

function count(counter: FigureCounter, { endedMs = nowMs, durationMs = 5, ageMs = 5, next = "accepted" }: Counted) {
  const attempt = next === "accepted" ? acceptedAttempt : failedAttempt;
  const delivery = deliveryOf(partnerId, { scheduleStartMs: endedMs - ageMs });
  const result = { attempt: { ...attempt, startedAtMs: endedMs - durationMs, durationMs }, next: { kind: next } };
  counter.count(delivery, result as AttemptResult);
}

async function countsOf(counting: (counter: FigureCounter) => void): Promise<readonly MinuteCounts[]> {
  const added: MinuteCounts[] = [];
  const counter = new FigureCounter({ add: async (counts) => void added.push(...counts) });
  counting(counter);
  await counter.flush();
  return added;
}

function overviewsOf(points: readonly FigurePoint[] = [], oldestMs?: number) {
  const [clock, asked] = [{ ms: nowMs }, [] as unknown[][]];
  const counts = { parked: 1, tripped: 0, reversalsParked: 0, reversalsPending: 0, settlementsWaiting: 0 };
  const overviews = new Overviews({
    figures: {
      read: async (...of) => {
        asked.push(of);
        return points;
      },
      failing: async (...of) => {
        asked.push(["failing", ...of]);
        return [];
      },
      failures: async () => [{ reason: "timeout", httpStatus: null, attempts: 2, lastAtMs: nowMs - 5_000 }],
    },
    standing: { counts: async () => counts },
    pending: async () => ({ count: 3, oldestMs }),
    troubles: { all: async () => [], of: async () => null, parked: async () => [], parkedOf: async () => null },
    nowMs: () => clock.ms,
  });
  return { overviews, clock, asked };
}

test("an overview is read once a second for each span, with the partners that failed in the last hour", async () => {
  const { overviews, clock, asked } = overviewsOf();
  for (const span of ["hour", "hour", "day", "week", "day"] as const) await overviews.all(span);
  const failing = ["failing", nowMs - hourMs, 10];
  const spans = [
    [null, "hour", nowMs - hourMs],
    [null, "day", nowMs - 24 * hourMs],
    [null, "week", nowMs - 168 * hourMs],
  ];
  expect(asked).toEqual(spans.flatMap((span) => [span, failing]));
  clock.ms += 999;
  await overviews.all("hour");
  expect(asked).toHaveLength(6);
  clock.ms += 1;
  await overviews.all("hour");
  expect(asked).toHaveLength(8);
});

test("it says since when the oldest notification is pending, or that none is", async () => {
  expect(await overviewsOf().overviews.all("hour")).toMatchObject({ pending: 3, oldestPendingAt: null });
  const { oldestPendingAt } = await overviewsOf([], nowMs - 9_000).overviews.all("hour");
  expect(oldestPendingAt).toBe(new Date(nowMs - 9_000).toISOString());
});

test("each percentile is of its own histogram, and why attempts failed has its time", async () => {
  const own = await countsOf((counter) => {
    for (let nth = 0; nth < 98; nth += 1) count(counter, { durationMs: 4, ageMs: 90 });
    for (let nth = 0; nth < 2; nth += 1) count(counter, { durationMs: 600, ageMs: 4_000 });
  });
  const points = own.filter((one) => one.partnerId !== null).map((one) => ({ ...one, atMs: one.minuteMs }));
  const view = await overviewsOf(points).overviews.of(partnerId, "hour");
  expect(view.attemptP50Ms).toBeCloseTo(3 + 2 * (50 / 98));
  expect(view.attemptP99Ms).toBeCloseTo(600);
  expect(view.deliveryP50Ms).toBeCloseTo(70 + 30 * (50 / 98));
  expect(view.deliveryP99Ms).toBeCloseTo(3_500);
  expect(view.failures).toMatchObject([{ attempts: 2, lastAt: new Date(nowMs - 5_000).toISOString() }]);
});

test.each([
  ["the upper bound of its bucket", 5, 4],
  ["more than a day", 2 * 24 * hourMs, 24 * hourMs],
])("a delivery that took %s is in it", async (_, ageMs, p50Ms) => {
  const points = (await countsOf((counter) => count(counter, { ageMs }))).map((one) => ({ ...one, atMs: nowMs }));
  expect((await overviewsOf(points).overviews.of(partnerId, "hour")).deliveryP50Ms).toBe(p50Ms);
});

test("an attempt counts in the minute in which it ended, and what was parked without one in its own, for all too", async () => {
  const counts = await countsOf((counter) => {
    count(counter, { endedMs: nowMs + 1, durationMs: 50 });
    count(counter, { endedMs: nowMs - 1, next: "retry" });
    count(counter, { endedMs: nowMs - 1, next: "parked" });
    counter.parked(partnerId, 7, nowMs + minuteMs);
  });
  const minutes = [
    { minuteMs: nowMs, accepted: 1, failed: 0, parked: 0 },
    { minuteMs: nowMs - minuteMs, accepted: 0, failed: 2, parked: 1 },
    { minuteMs: nowMs + minuteMs, accepted: 0, failed: 0, parked: 7 },
  ];
  const whose = [partnerId, null];
  expect(counts).toMatchObject(minutes.flatMap((minute) => whose.map((one) => ({ ...minute, partnerId: one }))));
  const points = counts.filter((one) => one.partnerId === null).map((one) => ({ ...one, atMs: one.minuteMs }));
  const { figures } = await overviewsOf(points).overviews.all("hour");
  expect(figures).toMatchObject({ accepted: 1, failed: 2, parked: 8 });
  const [first] = figures.points;
  expect(first).toEqual({ at: new Date(nowMs).toISOString(), accepted: 1, failed: 0, parked: 0 });
  expect(figures.points.map(({ parked }) => parked)).toEqual([0, 1, 7]);
});
