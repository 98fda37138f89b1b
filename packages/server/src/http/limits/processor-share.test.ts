import { expect, test } from "vitest";
import { ProcessorShare } from "./processor-share.ts";

/** A share whose time passes only in `pass`, which lets everything happen that is due until then. */
function shareOf(percent: number) {
  let nowMs = 0;
  const due: { readonly atMs: number; readonly work: () => void }[] = [];
  const timers = {
    after(ms: number, work: () => void) {
      due.push({ atMs: nowMs + ms, work });
      return () => undefined;
    },
  };
  const share = new ProcessorShare(percent, { monotonicMs: () => nowMs }, timers);
  /** What was admitted goes on in a turn of its own, and may pause again. */
  const settled = async () => {
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  async function pass(ms: number): Promise<void> {
    const untilMs = nowMs + ms;
    for (;;) {
      await settled();
      const next = due.toSorted((one, other) => one.atMs - other.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      due.splice(due.indexOf(next), 1);
      nowMs = Math.max(nowMs, next.atMs);
      next.work();
    }
    nowMs = untilMs;
    await settled();
  }
  /** @returns when, and whether, each of these was admitted */
  function asked(id: string, costs: readonly number[]): (readonly [atMs: number, isAdmitted: boolean])[] {
    const results: (readonly [number, boolean])[] = [];
    for (const cost of costs) void share.admit(id, cost).then((is) => void results.push([nowMs, is]));
    return results;
  }
  return { share, pass, asked, due, now: () => nowMs };
}

test("a partner beyond its share waits for its earlier requests, and another one does not", async () => {
  const { pass, asked } = shareOf(20);
  const loud = asked("loud", [25, 1]);
  const quiet = asked("quiet", [1]);
  await pass(0);
  expect([loud, quiet]).toEqual([[[0, true]], [[0, true]]]);
  await pass(99);
  expect(loud).toHaveLength(1);
  await pass(1);
  expect(loud[1]).toEqual([100, true]);
});

test("requests that wait are admitted one after the other, each when the one before is paid for", async () => {
  const { pass, asked } = shareOf(10);
  const loud = asked("loud", [10, 1, 1, 1]);
  await pass(1_000);
  expect(loud).toEqual([
    [0, true],
    [50, true],
    [60, true],
    [70, true],
  ]);
});

test("a request is refused if its partner has no time within a second, and admitted later", async () => {
  const { share, pass, asked } = shareOf(20);
  await share.admit("loud", 1_000);
  const refused = asked("loud", [1]);
  await pass(999);
  expect(refused).toEqual([]);
  await pass(1);
  expect(refused).toEqual([[1_000, false]]);
  await pass(4_000);
  expect(await share.admit("loud", 1)).toBe(true);
});

test("time that a request did not take is returned, and at once the next one is admitted", async () => {
  const { share, pass, asked } = shareOf(20);
  await share.admit("one", 400);
  const waiting = asked("one", [1]);
  share.add("one", -396);
  await pass(0);
  expect(waiting).toEqual([[0, true]]);
});

test("so many requests of a partner wait, with one timer, and further ones are refused at once", async () => {
  const { share, pass, asked, due } = shareOf(20);
  await share.admit("loud", 200);
  const waiting = asked("loud", Array(1_024).fill(0));
  expect(await share.admit("loud", 0)).toBe(false);
  expect(due).toHaveLength(1);
  await pass(1_000);
  expect(new Set(waiting.map(([, isAdmitted]) => isAdmitted))).toEqual(new Set([true]));
  expect(waiting).toHaveLength(1_024);
});

test("the account of a partner that used no time lately is forgotten, and no other", async () => {
  const { share, pass, asked } = shareOf(20);
  for (let id = 0; id < 100; id += 1) await share.admit(`partner ${id}`, 1);
  const waiting = asked("loud", [100, 1]);
  expect(share.size).toBe(101);
  await pass(200);
  for (let id = 0; id < 100; id += 1) await share.admit(`later ${id}`, 1);
  expect(share.size).toBe(101);
  await pass(300);
  expect(waiting).toEqual([
    [0, true],
    [475, true],
  ]);
});

/** Does work of so many parts of 1 ms. @returns when each of them ended */
async function work(share: ProcessorShare, id: string, parts: number, now: () => number): Promise<number[]> {
  const endsMs: number[] = [];
  const pause = share.pauses(id);
  for (let part = 0; part < parts; part += 1) {
    endsMs.push(now());
    await pause(1);
  }
  return endsMs;
}

test("work of many parts takes no more than its partner's share of the time", async () => {
  const { share, pass, now } = shareOf(20);
  const long = work(share, "loud", 206, now);
  await pass(10_000);
  const endsMs = await long;
  // The first six are within the burst.
  expect(endsMs.at(-1)).toBe(1_000);
  const gaps = endsMs.slice(10).map((at, index) => at - (endsMs[index + 9] ?? 0));
  expect(new Set(gaps)).toEqual(new Set([5]));
});

test("of a partner's work what was begun first ends first, and before any further request", async () => {
  const { share, pass, asked, now } = shareOf(20);
  share.add("loud", 5);
  const ends: string[] = [];
  for (const name of ["first", "second"]) void work(share, "loud", 10, now).then(() => void ends.push(name));
  const further = asked("loud", [0]);
  await pass(60);
  expect(ends).toEqual(["first"]);
  await pass(30);
  expect(further).toEqual([]);
  await pass(60);
  expect(ends).toEqual(["first", "second"]);
  expect(further).toHaveLength(1);
});

test("parts of different partners' work are done in different turns of the event loop", async () => {
  const { share } = shareOf(100);
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(["a", "b", "c"].map((id) => work(share, id, 4, () => turn)));
  isOver = true;
  // Each of them began at once.
  const later = turns.flatMap((ends) => ends.slice(1));
  expect(new Set(later).size).toBe(later.length);
});
