import { expect, test } from "vitest";
import { csvOf } from "./csv.ts";

test("a CSV quotes what it must, and gives a spreadsheet no formula", () => {
  const rows = [
    { a: 'one "two"', b: "=1+1" },
    { a: "x,y", b: null },
    { a: -5, b: "-cmd" },
  ];
  expect(csvOf(["a", "b"], rows)).toBe('a,b\r\n"one ""two""",\'=1+1\r\n"x,y",\r\n-5,\'-cmd\r\n');
});
