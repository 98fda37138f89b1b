import { afterAll, test } from "vitest";

function setAndClear(depth: number): void {
  if (depth > 0) setAndClear(depth - 1);
  else clearTimeout(setTimeout(() => undefined, 60_000));
}

// Until the event loop turns, a cleared timer looks like one that runs. To say where so many began takes seconds.
afterAll(() => {
  for (let nth = 0; nth < 15_000; nth += 1) setAndClear(40);
});

test("every timer is cleared at once", () => undefined);
