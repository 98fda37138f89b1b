import { test } from "vitest";

test("an interval that is never cleared", () => {
  setInterval(() => undefined, 60_000);
});
