import { expect, test } from "vitest";
import { terminalProblems } from "./terminal.ts";

const fields = { mode: "fields" } as const;

function problemsOf(
  { tid = "T1", ...input }: Record<string, unknown>,
  signing: Parameters<typeof terminalProblems>[2] = fields,
) {
  return terminalProblems(String(tid), { mid: "M1", ...input }, signing).map(({ field, code }) => [field, code]);
}

test("a terminal needs its tid and its mid", () => {
  expect(problemsOf({})).toEqual([]);
  expect(problemsOf({ tid: "", mid: "" })).toEqual([
    ["tid", "missing_field"],
    ["mid", "missing_field"],
  ]);
});

test("signed fields hold no delimiter; others may", () => {
  expect(problemsOf({ tid: "T&1", mid: "M\n1", merchantName: "Salt & Pepper" })).toEqual([
    ["tid", "delimiter_in_signed_field"],
    ["mid", "delimiter_in_signed_field"],
  ]);
  const agreed = ["id", "transaction_type", "status", "amount", "merchantName"];
  expect(problemsOf({ merchantName: "Salt & Pepper" }, { mode: "fields", card: agreed })).toEqual([
    ["merchantName", "delimiter_in_signed_field"],
  ]);
  expect(problemsOf({ tid: "T&1" }, { mode: "whole" })).toEqual([]);
});

test("texts are bounded and well-formed, every problem named at once", () => {
  expect(problemsOf({ mid: "1".repeat(21), merchantAddress: "a\u0000", appName: "\ud800" }, { mode: "whole" })).toEqual(
    [
      ["mid", "too_long"],
      ["merchantAddress", "invalid_text"],
      ["appName", "invalid_text"],
    ],
  );
});

test("a value that is not a string, an unknown field and a broken rule are named together", () => {
  const input = { merchantName: 5, surprise: "x", appName: "a\u0000" };
  expect(problemsOf({ tid: "T&1", ...input })).toEqual([
    ["tid", "delimiter_in_signed_field"],
    ["merchantName", "wrong_type"],
    ["surprise", "unknown_field"],
    ["appName", "invalid_text"],
  ]);
  // The tid is that of the path.
  expect(terminalProblems("T1", { mid: "M1", tid: "T1" }, fields)).toMatchObject([
    { field: "tid", code: "unknown_field" },
  ]);
  expect(terminalProblems("T1", {}, fields)).toMatchObject([{ field: "mid", code: "missing_field" }]);
});
