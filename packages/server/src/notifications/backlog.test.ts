import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { backlogOf, PullNotes } from "./backlog.ts";
import { writeCursor } from "./cursor.ts";

const partnerId = newId<"partner">();
const cluster = { systemIdentifier: 7n, timeline: 1 };

test("a cursor is noted every ten seconds, and as soon as a pull reaches the end or leaves it", async () => {
  const noted: string[] = [];
  let nowMs = 0;
  const store = {
    notePull: async (_: unknown, cursor: string) => {
      noted.push(cursor);
    },
  };
  const notes = new PullNotes(store, { nowMs: () => nowMs });
  await notes.note(partnerId, "a", false);
  nowMs = 9_999;
  await notes.note(partnerId, "b", false);
  expect(noted).toEqual(["a"]);
  await notes.note(partnerId, "c", true);
  await notes.note(partnerId, "d", true);
  await notes.note(partnerId, "e", false);
  expect(noted).toEqual(["a", "c", "e"]);
  nowMs += 10_000;
  await notes.note(partnerId, "f", false);
  expect(noted.at(-1)).toBe("f");
});

test("a note that fails is tried again with the next pull, and no pull fails with it", async () => {
  const tried: string[] = [];
  const store = {
    notePull: (_: unknown, cursor: string) => {
      tried.push(cursor);
      return Promise.reject(new Error("the database is away"));
    },
  };
  const notes = new PullNotes(store, { nowMs: () => 0 });
  await notes.note(partnerId, "a", false);
  await notes.note(partnerId, "b", false);
  expect(tried).toEqual(["a", "b"]);
});

test.each([
  [{ systemIdentifier: 8n, timeline: 1 }, 0, "cursor_from_another_history"],
  [cluster, 2_000, "cursor_expired"],
] as const)("a cursor that a pull would refuse now is named with its error", async (now, keptFromMs, problem) => {
  const cursor = writeCursor({ position: { xid: 5n, id: newId() }, asOfMs: 1_000 }, cluster);
  const store = {
    backlog: async () => ({ pending: 0, oldestPendingMs: null, parked: 3, pull: { cursor, atMs: 1_500 } }),
    history: async () => ({ cluster: now, keptFromMs, horizon: 9n, nowMs: 3_000 }),
    page: () => expect.fail("nothing follows a cursor that is refused"),
  };
  expect(await backlogOf(store, partnerId)).toEqual({
    pending: 0,
    oldestPendingAt: null,
    parked: 3,
    pull: { at: "1970-01-01T00:00:01.500Z", upTo: null, left: null, problem },
  });
});
