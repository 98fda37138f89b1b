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

test.each(["=1+1", "+1", "@SUM(1)", "\tx", "-2+3", "-5,00", "--1", "-cmd|' /C calc'!A0"])(
  "%j gets an apostrophe",
  (text) => {
    expect(csvOf(["a"], [{ a: text }]).replaceAll('"', "")).toBe(`a\r\n'${text}\r\n`);
  },
);

test("a carriage return in front gets an apostrophe, and quotes", () => {
  expect(csvOf(["a"], [{ a: "\rx" }])).toBe(`a\r\n"'\rx"\r\n`);
});

test.each(["-5", "-0.25", "12", "order-17", "2026-11-23"])("%s stays as it is", (text) => {
  expect(csvOf(["a"], [{ a: text }])).toBe(`a\r\n${text}\r\n`);
});
