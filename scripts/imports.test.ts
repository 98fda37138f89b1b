import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkImports } from "./imports/check.ts";
import { LAYOUT } from "./imports/layout.ts";
import { looksLikeSql } from "./imports/sql.ts";
import { listTree } from "./sources/files.ts";
import { passes, describe as text } from "./sources/finding.ts";

const repository = join(import.meta.dirname, "..");
const fixture = join(import.meta.dirname, "fixtures/imports");

test("refuses exactly the lines of the fixture that say so", () => {
  const expected = listTree(fixture).files.flatMap((file) =>
    readFileSync(join(fixture, file), "utf8")
      .split("\n")
      .flatMap((line, index) => (line.endsWith("// refused") ? [`${file}:${index + 1}`] : [])),
  );

  const report = checkImports(fixture);

  expect(expected.length).toBeGreaterThan(25);
  expect(report.findings.map(({ file, line }) => `${file}:${line}`).sort()).toEqual(expected.sort());
  expect(passes(report)).toBe(false);
});

test("says where, what is forbidden, by which rule, and what to do", () => {
  const written = text(checkImports(fixture));

  expect(written).toContain(
    'packages/server/src/postgres/start.ts:3: server/postgres imports server/store ("../store/record.ts"). ' +
      "Rule: server/postgres may import server/*. Own the interface",
  );
});

test("fails when it read nothing", () => {
  const empty = mkdtempSync(join(tmpdir(), "paybell-imports-"));
  onTestFinished(() => rmSync(empty, { recursive: true }));

  const report = checkImports(empty);

  expect(report.findings).toEqual([]);
  expect(passes(report)).toBe(false);
  expect(text(report)).toContain("read no files and no imports");
});

test("reads this repository; the static check reports its findings", () => {
  const { read } = checkImports(repository);

  expect(read["files"]).toBeGreaterThan(50);
  expect(read["imports"]).toBeGreaterThan(100);
});

test("names no folder of the layout twice, and none that is not defined", () => {
  const places = new Set([...Object.keys(LAYOUT), "server"]);
  const targets = Object.values(LAYOUT).flatMap((rules) => (rules === "everything" ? [] : Object.keys(rules)));

  expect(targets.filter((target) => !places.has(target))).toEqual([]);
});

test.each([
  "SELECT 1",
  "WITH due AS (SELECT id\nFROM pending) DELETE FROM pending",
  "insert into attempts (id) values ($1)",
  "  update partners set name = $1",
  "LISTEN paybell_due",
  'NOTIFY "due"',
  "CREATE TABLE x (id int)",
])("takes %j for SQL", (sql) => {
  expect(looksLikeSql(sql)).toBe(true);
});

test.each([
  "Select a partner from the list",
  "The update sets the new name",
  "please listen to the receiver",
  "DELETE",
  "NOTIFY failed",
  "create a table of the fields",
  "UPDATE",
])("does not take %j for SQL", (prose) => {
  expect(looksLikeSql(prose)).toBe(false);
});
