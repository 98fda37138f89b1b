import { test } from "vitest";

test("an interval that nobody clears", () => {
  setInterval(() => undefined, 60_000);
});
