import type { z } from "zod";
import { isSendable, replaceUnsendable } from "../commands/requests/rules.ts";
import { badFields, type ErrorCode, type FieldProblem, ServiceError } from "../errors.ts";
import { safeFieldName } from "../guards/safe-text.ts";

type Issue = z.core.$ZodIssue;

/** Nobody needs more to find the cause; a settlement of 50,000 bad entries would be answered by 15 MB. */
const problemsMax = 100;

/**
 * Converts zod's issues: every invalid field by its path, its code, and the expectation, the first 100. Values are
 * never shown.
 */
export function shapeError(error: z.ZodError, value: unknown, prefix: readonly PropertyKey[] = []): ServiceError {
  const issues = error.issues.slice(0, problemsMax);
  const problems = issues.flatMap((issue) => problemsOf(issue, value, prefix));
  const [first, ...rest] = problems.slice(0, problemsMax);
  if (first === undefined || first.field === "") {
    return new ServiceError("invalid_json", "The body must be one JSON object.");
  }
  return badFields([first, ...rest]);
}

function problemsOf(issue: Issue, value: unknown, prefix: readonly PropertyKey[]): FieldProblem[] {
  const field = pathText([...prefix, ...issue.path]);
  const problem = (code: ErrorCode, rule: string): FieldProblem[] => [{ field, code, message: `${field} ${rule}.` }];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.slice(0, problemsMax).map((key) => {
        const name = pathText([...prefix, ...issue.path, safeFieldName(key)]);
        return { field: name, code: "unknown_field", message: `${name} is not a known field.` };
      });
    case "too_big":
      if (issue.origin === "string") return problem("too_long", `has over ${issue.maximum} characters`);
      if (issue.origin === "array") return problem("invalid_value", `holds over ${issue.maximum} items`);
      return problem("invalid_value", `must be at most ${issue.maximum}`);
    case "too_small":
      if (issue.origin === "string") return problem("invalid_value", "must not be empty");
      return problem("invalid_value", `must be at least ${issue.minimum}`);
    case "invalid_value":
    case "invalid_type":
    case "invalid_union":
      return valueAt(value, issue.path) === undefined
        ? problem("missing_field", "is missing")
        : problem(...wrongValue(issue, valueAt(value, issue.path)));
    case "invalid_format":
      // A regular expression brings its own rule.
      return problem("invalid_value", formats[issue.format] ?? issue.message);
    case "custom":
      return problem(issue.params?.["code"] ?? "invalid_value", issue.message);
    default:
      return problem("invalid_value", "is not allowed here");
  }
}

const types: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
};

const formats: Readonly<Record<string, string>> = {
  datetime: "must be a time such as 2026-01-31T00:00:00Z",
  uuid: "must be a UUID",
  guid: "must be a UUID",
  safeint: "must be a whole number",
};

function wrongValue(
  issue: Extract<Issue, { code: "invalid_value" | "invalid_type" | "invalid_union" }>,
  found: unknown,
): [ErrorCode, string] {
  if (issue.code === "invalid_type") {
    const type = types[issue.expected] ?? `of type ${issue.expected}`;
    // A number in a query string arrives as a string: then the value is wrong, not its type.
    return [typeof found === "string" && type.endsWith("number") ? "invalid_value" : "wrong_type", `must be ${type}`];
  }
  if (issue.code === "invalid_value" && typeof found === "string") {
    return ["invalid_value", `must be one of ${issue.values.map(String).join(", ")}`];
  }
  if (
    issue.code === "invalid_union" &&
    typeof found === "string" &&
    "options" in issue &&
    issue.options !== undefined
  ) {
    return ["invalid_value", `must be one of ${issue.options.map(String).join(", ")}`];
  }
  return typeof found === "string" ? ["invalid_value", "is not a known value"] : ["wrong_type", "must be a string"];
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<PropertyKey, unknown>)[key];
  }
  return at;
}

/** A path as the API writes it: `card.number`, `completions[3].amount`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else text += text === "" ? String(key) : `.${String(key)}`;
  }
  return text;
}

/**
 * The strings of a JSON value, keys too, that no table can hold: with NUL or half of a surrogate pair. At most as many
 * as an error names. The caller bounds the nesting.
 */
export function unsendableTexts(value: unknown): FieldProblem[] {
  const found: FieldProblem[] = [];
  collect(value, [], found);
  return found;
}

function collect(value: unknown, path: readonly PropertyKey[], found: FieldProblem[]): void {
  if (found.length === problemsMax) return;
  if (typeof value === "string") {
    if (!isSendable(value)) found.push(problemAt(path));
  } else if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) collect(item, [...path, at], found);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const inner = [...path, safeFieldName(key)];
      if (isSendable(key)) collect(item, inner, found);
      else if (found.length < problemsMax) found.push(problemAt(inner));
    }
  }
}

function problemAt(path: readonly PropertyKey[]): FieldProblem {
  const field = replaceUnsendable(pathText(path));
  return { field, code: "invalid_text", message: `${field} holds NUL or half of a surrogate pair.` };
}
