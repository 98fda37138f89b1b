import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { elementFormat } from "./format.ts";
import { standardFields } from "./standard-fields.ts";

const path = join(import.meta.dirname, "../../../../../../docs/reference/iso8583.md");
const row = /^\| (\d+)(?:–(\d+))? \| .* \| `([^`]+)` \| `([^`]+)` \|$/gm;

test("the reference has the format of each field, from 2 to 128, by both versions of the standard", () => {
  const documented = [...readFileSync(path, "utf8").matchAll(row)].flatMap(([, first, last = first, of1987, of1993]) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => [Number(first) + at, of1987, of1993]),
  );
  const known = [...standardFields["1987"]].map(([number, format]) => [
    number,
    format,
    standardFields["1993"].get(number),
  ]);
  expect(documented).toEqual(known);
  expect(documented.map(([number]) => number)).toEqual(Array.from({ length: 127 }, (_, at) => at + 2));
  for (const [, ...formats] of known) for (const format of formats) expect(elementFormat(String(format))).toBeDefined();
});
