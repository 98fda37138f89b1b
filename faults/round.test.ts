import { expect, test } from "vitest";
import { Recovery } from "./round.ts";

test("a recovery ends with the last partner that is notified, and earlier IPNs do not count", async () => {
  const recovery = new Recovery(2, 100, 1_000);
  recovery.delivered(0, 99, 1_010);
  recovery.delivered(1, 100, 1_020);
  recovery.delivered(0, 101, 1_700);
  recovery.delivered(0, 102, 1_900);
  expect(await recovery.within(1_000)).toBe(700);
});

test("a recovery does not end while a partner gets no notification", async () => {
  expect(await new Recovery(1, 0).within(10)).toBeUndefined();
});
