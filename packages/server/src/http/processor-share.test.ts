import { expect, test } from "vitest";
import { ProcessorShare } from "./processor-share.ts";

let nowMs = 0;
const clock = { monotonicMs: () => nowMs };
/** Time passes only in waits. */
const after = async (ms: number) => {
  nowMs += ms;
};
const shareOf = (percent: number) => new ProcessorShare(percent, clock, after);

test("a partner beyond its share waits for its earlier requests, and another one does not", async () => {
  const share = shareOf(20);
  const beganMs = nowMs;
  expect(await share.admit("loud", 25)).toBe(true);
  expect(await share.admit("quiet", 1)).toBe(true);
  expect(nowMs).toBe(beganMs);
  expect(await share.admit("loud", 1)).toBe(true);
  expect(nowMs - beganMs).toBe(100);
});

test("a request is refused if its partner has no time within a second, and admitted later", async () => {
  const share = shareOf(20);
  await share.admit("loud", 1_000);
  expect(await share.admit("loud", 1)).toBe(false);
  nowMs += 5_000;
  expect(await share.admit("loud", 1)).toBe(true);
});

test("time that a request did not take is returned", async () => {
  const share = shareOf(20);
  await share.admit("one", 400);
  share.add("one", -396);
  const beganMs = nowMs;
  expect(await share.admit("one", 1)).toBe(true);
  expect(nowMs).toBe(beganMs);
});

test("so many requests of a partner wait, and further ones are refused at once", async () => {
  const held = Promise.withResolvers<void>();
  const share = new ProcessorShare(20, clock, () => held.promise);
  await share.admit("loud", 200);
  const waiting = Array.from({ length: 1_024 }, () => share.admit("loud", 0));
  expect(await share.admit("loud", 0)).toBe(false);
  nowMs += 10_000;
  held.resolve();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]));
});
