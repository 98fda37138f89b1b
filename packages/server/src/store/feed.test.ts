import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { EventFeed, type FeedEvent, type FeedPage } from "../feed/feed.ts";
import { type EventId, lowestId, newId } from "../ids.ts";
import { writeCursor } from "../notifications/cursor.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { insertEvents, postgresFeed } from "./events.ts";

const { pool, homes } = await openTestDatabase();
const feed = new EventFeed(homes.all.map((home) => postgresFeed(home)));
const limit = 100;

function event(name: string): NewEvent {
  return { kind: "parked", partnerId: newId(), subjectId: null, detail: { name } };
}

function namesOf(items: FeedPage["items"]): unknown[] {
  return items.map(({ detail }) => detail["name"]);
}

/** The next ones, as soon as every older transaction of the database server has ended, those of other tests too. */
async function following(after: string, count: number, limit = 100): Promise<FeedPage> {
  const items: FeedEvent[] = [];
  let next = after;
  while (items.length < count) {
    const page = await feed.read({ after: next, limit }, { durationMs: 60_000, signal: new AbortController().signal });
    items.push(...page.items);
    next = page.next;
  }
  return { items, next };
}

test("an event that is committed later than a newer one never appears behind a cursor", async () => {
  const [first, second] = [await pool.connect(), await pool.connect()];
  try {
    const before = await feed.read({ after: "now", limit });
    await insertEvents(pool, [event("before")], false);
    await first.query("BEGIN");
    await insertEvents(first, [event("begun first")], false);
    await second.query("BEGIN");
    await insertEvents(second, [event("committed first")], false);
    await second.query("COMMIT");
    const page = await feed.read({ after: before.next, limit });
    expect(namesOf(page.items).filter((name) => name !== "before")).toEqual([]);
    await first.query("COMMIT");
    const both = await following(page.next, 3 - page.items.length);
    expect(namesOf([...page.items, ...both.items])).toEqual(["before", "begun first", "committed first"]);
  } finally {
    first.release();
    second.release();
  }
});

test("an event whose id is older than the cursor's comes too, and one of the service names no partner", async () => {
  const { next } = await feed.read({ after: "now", limit });
  await insertEvents(pool, [event("newer id")], false);
  // A full page ends at its last event.
  const page = await following(next, 1, 1);
  const id = lowestId(Date.now() - 60_000) as EventId;
  await insertEvents(pool, [{ ...event("older id"), id, partnerId: null }], false);
  const { items } = await following(page.next, 1);
  expect(items).toMatchObject([{ id, partnerId: null, detail: { name: "older id" } }]);
});

test("sixteen may wait for an event, and another once one of them has ended", async () => {
  const history = { cluster: { systemIdentifier: 1n, timeline: 1 }, keptFromMs: 0, horizon: 5n, nowMs: 0 };
  const empty = new EventFeed([{ history: async () => history, page: async () => [] }]);
  const leaves = new AbortController();
  const read = (durationMs: number) => empty.read({ limit }, { durationMs, signal: leaves.signal });
  const waits = Array.from({ length: 16 }, () => read(600_000));
  await expect(read(600_000)).rejects.toMatchObject({ code: "too_many_requests" });
  leaves.abort();
  await Promise.all(waits);
  expect(await read(600_000)).toMatchObject({ items: [] });
});

test("events come in order however small the pages are, and each once", async () => {
  const { next } = await feed.read({ after: "now", limit });
  const names = Array.from({ length: 7 }, (_, nth) => `event ${nth}`);
  for (const name of names) await insertEvents(pool, [event(name)], false);
  expect(namesOf((await following(next, 7, 2)).items)).toEqual(names);
});

test("a wait ends with the first event, or with its time", async () => {
  const { next } = await feed.read({ after: "now", limit });
  const waiting = following(next, 1);
  await insertEvents(pool, [event("waited for")], false);
  const page = await waiting;
  expect(namesOf(page.items)).toEqual(["waited for"]);
  const { signal } = new AbortController();
  expect((await feed.read({ after: page.next, limit }, { durationMs: 1, signal })).items).toEqual([]);
});

test("a stop ends the waits, and a caller that is gone waits no longer", async () => {
  const own = new EventFeed(homes.all.map((home) => postgresFeed(home)));
  const { next: after } = await own.read({ after: "now", limit });
  const gone = new AbortController();
  const [one, other] = [gone.signal, new AbortController().signal].map((signal) =>
    own.read({ after, limit }, { durationMs: 600_000, signal }),
  );
  gone.abort();
  expect((await one)?.items).toEqual([]);
  own.stop();
  expect((await other)?.items).toEqual([]);
});

test("a cursor of another kind is refused", async () => {
  for (const after of ["x", `${(await feed.read({ limit: 1 })).next}.x`]) {
    await expect(feed.read({ after, limit })).rejects.toMatchObject({ code: "invalid_cursor" });
  }
});

test("a cursor ahead of everything committed is refused: the database was set back since", async () => {
  const [home] = homes.all;
  if (home === undefined) throw new Error("there is no home");
  const { cluster, horizon, nowMs } = await postgresFeed(home).history();
  const after = writeCursor({ position: { xid: horizon + 1_000_000_000n, id: newId() }, asOfMs: nowMs }, cluster);
  await expect(feed.read({ after, limit })).rejects.toMatchObject({ code: "cursor_from_another_history" });
});

test("a refused report is not in the feed", async () => {
  const { next: after } = await feed.read({ after: "now", limit });
  await insertEvents(pool, [{ ...event("x"), kind: "report_refused", detail: { item: { amount: "1" } } }], false);
  const page = await following(after, 1);
  expect(JSON.stringify(page.items)).not.toContain("amount");
});
