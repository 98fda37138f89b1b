import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

// Of the coordinator's tables, which Citus does not distribute.
const undistributed = /^(?:clearing|operators|schema)\//;
const ofTheTime = /now\(\)|extract\(|epochMs|interval '|to_char\(/;

/** The parts of a statement in which Citus refuses a function of the time: docs/decisions/database.md. */
function refused(statement: string): string[] {
  const conflicts = statement.match(/\bON CONFLICT\b[\s\S]*?(?=\bRETURNING\b|$)/g) ?? [];
  const returned = statement.match(/\bRETURNING\b[\s\S]*?(?=\),\s|$)/g) ?? [];
  const sets = statement.match(/\bSET\b[\s\S]*?(?=\bWHERE\b|\bRETURNING\b|$)/g) ?? [];
  const chosen = sets.flatMap((set) => set.match(/\bCASE\b[\s\S]*?\bEND\b|\bcoalesce\([^)]*\)/g) ?? []);
  return [...conflicts, ...returned, ...chosen].filter((part) => ofTheTime.test(part));
}

const files = globSync("**/*.ts", { cwd: import.meta.dirname }).filter((path) => !/\.(?:test|fixture)\.ts$/.test(path));
const templates = files
  .filter((path) => !undistributed.test(path))
  .flatMap((path) =>
    [...readFileSync(join(import.meta.dirname, path), "utf8").matchAll(/`[^`]*`/g)].map(([text]) => ({ path, text })),
  );

test("no statement about a partner's rows has a function of the time where Citus refuses it", () => {
  const statements = templates.filter(({ text }) => /\b(?:INSERT INTO|UPDATE|DELETE FROM)\b/.test(text));
  expect(statements.length).toBeGreaterThan(100);
  expect(statements.filter(({ text }) => refused(text).length > 0)).toEqual([]);
});

// In a part that several statements share, too: one that changes rows and has the time fails at it.
test("no CASE compares one value with several", () => {
  const simpleCase = /\bCASE\s+(?!WHEN\b|\s)/;
  expect(simpleCase.test("CASE r.state WHEN 'DONE' THEN 1 END")).toBe(true);
  expect(templates.filter(({ text }) => simpleCase.test(text))).toEqual([]);
});

test.each([
  "INSERT INTO m (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE m.until < now() RETURNING m.a",
  'UPDATE e SET tries = 1 RETURNING (extract(epoch FROM e.at) * 1000) AS "atMs"',
  "UPDATE t SET kept = CASE WHEN s.sent THEN to_jsonb(now()) ELSE t.kept END FROM s WHERE t.id = s.id",
])("a statement that Citus refuses is found: %s", (statement) => {
  expect(refused(statement)).toHaveLength(1);
});
