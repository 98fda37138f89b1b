import { expect, test } from "vitest";
import type { NewEvent } from "../events.ts";
import { type BacklogWatch, watchBacklog } from "./backlog-watch.ts";

async function eventsOf(change: Partial<BacklogWatch>): Promise<NewEvent[]> {
  const events: NewEvent[] = [];
  await watchBacklog({
    count: () => Promise.resolve({ count: 7, parked: 0, oldestMs: Date.now() - 120_000 }),
    wasSentSince: () => Promise.resolve(false),
    events: { record: (event) => void events.push(event) },
    alertAfterS: 60,
    ...change,
  });
  return events;
}

test("a notification that is pending for too long is reported, with its age and how many wait", async () => {
  const [event] = await eventsOf({});
  expect(event).toMatchObject({ kind: "oldest_pending", partnerId: null, detail: { count: 7 } });
  expect(event?.detail["oldestSeconds"]).toBeGreaterThanOrEqual(120);
});

test("a younger one, or none, is not reported, and nothing is reported twice within the hour", async () => {
  expect(await eventsOf({ alertAfterS: 600 })).toEqual([]);
  expect(await eventsOf({ count: () => Promise.resolve({ count: 0, parked: 0, oldestMs: undefined }) })).toEqual([]);
  expect(await eventsOf({ wasSentSince: () => Promise.resolve(true) })).toEqual([]);
});
