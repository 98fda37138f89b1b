import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { badFields, type ErrorCode, errors, ServiceError } from "./errors.ts";

const codes = Object.keys(errors) as ErrorCode[];

describe("the catalogue", () => {
  test.each(codes)("%s has a code in snake case, a title and a remedy in whole sentences", (code) => {
    const { title, remedy } = errors[code];
    expect(code).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
    expect(title).toMatch(/^[A-Z].*[^.]$/);
    expect(remedy).toMatch(/^[A-Z].*\.$/);
  });

  test("no two codes share a title", () => {
    expect(new Set(codes.map((code) => errors[code].title)).size).toBe(codes.length);
  });

  test("each code is under one status", () => {
    const table = readFileSync(join(import.meta.dirname, "error-table.ts"), "utf8");
    expect([...table.matchAll(/^ {4}(\w+): \[/gm)].map(([, code]) => code)).toEqual(codes);
  });
});

describe("ServiceError", () => {
  test("takes its status from the catalogue and its message, a sentence, from the title", () => {
    const error = new ServiceError("not_found");
    expect(error.status).toBe(404);
    expect(error.message).toBe(`${errors.not_found.title}.`);
    expect(error.fields).toEqual([]);
    expect(error.retryAfterS).toBeUndefined();
  });

  test("keeps its cause, its fields and how long to wait", () => {
    const cause = new Error("connection refused");
    const error = new ServiceError("unavailable", "The database is away.", { retryAfterS: 2, cause });
    expect(error.cause).toBe(cause);
    expect(error.retryAfterS).toBe(2);
    expect(error.message).toBe("The database is away.");
  });
});

describe("badFields", () => {
  const amount = { field: "amount", code: "invalid_amount", message: "amount must be above zero" } as const;
  const currency = { field: "currency", code: "invalid_currency", message: "currency is not known" } as const;

  test("one field gives its own code and message", () => {
    const error = badFields([amount]);
    expect(error.code).toBe("invalid_amount");
    expect(error.message).toBe(amount.message);
    expect(error.fields).toEqual([amount]);
  });

  test("several fields with one code keep it", () => {
    expect(badFields([amount, { ...amount, field: "completions[3].amount" }]).code).toBe("invalid_amount");
  });

  test("fields with different codes are an invalid_request that lists them all", () => {
    const error = badFields([amount, currency]);
    expect(error.code).toBe("invalid_request");
    expect(error.fields).toEqual([amount, currency]);
    expect(error.message).toBe("2 fields are wrong: amount, currency.");
  });

  test("missing fields are named, the first of them", () => {
    const missing = (field: string) => ({ field, code: "missing_field", message: `${field} is missing.` }) as const;
    expect(badFields([missing("reqId"), missing("tid")]).message).toBe("2 fields are missing: reqId, tid.");
    const many = [..."abcdefghij"].map(missing);
    expect(badFields([missing("z"), ...many]).message).toBe("11 fields are missing: z, a, b, c, d, e, f, g, ….");
  });

  test("one field that broke two rules is one", () => {
    expect(badFields([amount, { ...amount, code: "too_long" }]).message).toBe("amount is wrong.");
  });
});
