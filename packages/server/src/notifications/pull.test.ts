import { expect, onTestFinished, test, vi } from "vitest";
import { ServiceError } from "../errors.ts";
import { newId } from "../ids.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { writeCursor } from "./cursor.ts";
import { backlogOf, PullNotes, pullPage, type Seal } from "./pull.ts";
import type { NotificationContent, NotificationStore } from "./store.ts";

const partner = partnerSnapshot();

/** A history of notifications of these sizes. */
function historyOf(sizes: readonly number[]): NotificationStore {
  const contents = sizes.map(
    (bytes): NotificationContent => ({
      id: newId<"notification">(),
      transactionId: null,
      originalId: null,
      command: "SETTLEMENT",
      callBackUrl: null,
      createdAtMs: Date.now(),
      state: "accepted",
      attemptsMade: 1,
      toRegistered: false,
      content: "x".repeat(bytes),
      mac: null,
    }),
  );
  return {
    history: async () => ({
      cluster: { systemIdentifier: 1n, timeline: 1 },
      keptFromMs: 0,
      horizon: 10n,
      nowMs: Date.now(),
    }),
    page: async (_, after, __, rowsMax) => {
      const from = after?.xid === 10n ? contents.length : contents.findIndex(({ id }) => id === after?.id) + 1;
      return contents.slice(from, from + rowsMax).map(({ id }) => ({ id, xid: 1n, storedBytes: 100 }));
    },
    contents: async () => new Map(contents.map((content) => [content.id, content])),
  } as Partial<NotificationStore> as NotificationStore;
}

/** Pulls notifications of these sizes. @returns the turn of the event loop in which each of them was sealed */
async function turnsOf(
  sizes: readonly number[],
  pause?: (spentMs: number) => Promise<unknown>,
  onSeal: () => void = () => undefined,
): Promise<readonly number[]> {
  const store = historyOf(sizes);
  let turn = 0;
  let isOver = false;
  const next = () => {
    turn += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  const turns: number[] = [];
  const seal: Seal = async (_, { content }) => {
    turns.push(turn);
    onSeal();
    return { headers: {}, wire: {}, signedText: "", body: Buffer.from(`{"data":"${content}"}`) };
  };
  const { page } = await pullPage(store, seal, partner, { limit: 100, pause });
  isOver = true;
  expect(page.items.map(({ data }) => data.length)).toEqual(sizes);
  return turns.map((at) => at - (turns[0] ?? 0));
}

test("a page has what follows, however much before it was changed or is over the limit of bytes", async () => {
  const huge = 9 * 1_024 * 1_024;
  const history = historyOf([1, 2, 3, 4, huge, 5]);
  const sealed: Seal = async (_, { content }) => {
    if (content.length < 5) throw new ServiceError("content_changed");
    return { headers: {}, wire: {}, signedText: "", body: Buffer.from(`{"data":"${content}"}`) };
  };
  for (const limit of [1, 2, 4, 100]) {
    const pulled: number[] = [];
    for (let after: string | undefined; ; ) {
      const { page } = await pullPage(history, sealed, partner, { limit, after });
      if (page.items.length === 0) break;
      pulled.push(...page.items.map(({ data }) => data.length));
      after = page.next;
    }
    expect(pulled, `pages of ${limit}`).toEqual([huge, 5]);
  }
});

test("other work has a turn of the event loop after each 32 KiB that a pull seals", async () => {
  const kib = 1_024;
  expect(await turnsOf([25 * kib, 7 * kib, 1, 250 * kib, 1, 31 * kib, kib, 1])).toEqual([0, 0, 1, 1, 2, 2, 2, 3]);
});

test("a pull pauses after each 32 KiB that it seals, which cost it as long as they took, and 2 ms at most", async () => {
  const spent: number[] = [];
  const now = vi.spyOn(performance, "now");
  onTestFinished(() => now.mockRestore());
  let ms = 0;
  now.mockImplementation(() => ms);
  await turnsOf(
    [...Array<number>(4).fill(16 * 1_024), 64 * 1_024, 1, 1],
    async (spentMs) => void spent.push(spentMs),
    () => {
      ms += 0.75;
    },
  );
  ms = 0;
  await turnsOf(
    [64 * 1_024, 1],
    async (spentMs) => void spent.push(spentMs),
    () => {
      ms += 5_000;
    },
  );
  expect(spent).toEqual([1.5, 1.5, 0.75, 4]);
});

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
