import { expect, test } from "vitest";
import { sleep } from "./sleep.ts";

test("sleep ends when its time is over, when it was over before, and when it is aborted", async () => {
  const warned: Error[] = [];
  const note = (warning: Error) => void warned.push(warning);
  process.on("warning", note);
  const gone = new AbortController();
  await sleep(1, gone.signal);
  await sleep(-5, gone.signal);
  const long = sleep(3_600_000, gone.signal);
  gone.abort();
  await long;
  await sleep(3_600_000, gone.signal);
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", note);
  expect(warned).toEqual([]);
});
