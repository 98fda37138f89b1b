import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { JsonTestResults } from "vitest/node";

export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A run of vitest. */
export interface TestReport {
  readonly counts: TestCounts;
  /** The number of tests that were skipped, because the machine lacks something. */
  readonly lacking: number;
  /** Names each of these, and how to install what it needs; empty without. */
  readonly missing: string;
}

/** The last line of `npm test`, for other programs. */
export function countsLine({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/**
 * Reads vitest's JSON report. A run that failed without a failed test (a file that does not load, a leak, a crash
 * before the report) counts as one failed, and so does a run without a single test.
 */
export function readReport(file: string, exitCode: number | null, root: string): TestReport {
  const { numPassedTests: passed, numFailedTests, numPendingTests, numTodoTests, testResults } = read(file);
  const isSilentFailure = numFailedTests === 0 && (exitCode !== 0 || passed === 0);
  const failed = isSilentFailure ? 1 : numFailedTests;
  // What tests said they lack: test/support/programs.ts.
  const lacks = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.flatMap(({ meta: { missing = [] }, ancestorTitles, title }) => {
      const named = `${relative(root, name)}: ${ancestorTitles[0] ?? title}`;
      return missing.length === 0 ? [] : [{ named, missing }];
    }),
  );
  const all = Map.groupBy(
    lacks.flatMap(({ named, missing }) => missing.map((what) => ({ named, what }))),
    ({ what }) => what,
  );
  const lines = [...all].flatMap(([what, tests]) => [
    `  ${what}\n`,
    ...[...Map.groupBy(tests, ({ named }) => named)].map(
      ([name, { length }]) => `    ${name}${length === 1 ? "" : ` (${length} tests)`}\n`,
    ),
  ]);
  const missing = lines.length === 0 ? "" : `Not run, because this machine lacks something:\n${lines.join("")}`;
  return { counts: { passed, failed, skipped: numPendingTests + numTodoTests }, lacking: lacks.length, missing };
}

type Counted = `num${"Passed" | "Failed" | "Pending" | "Todo"}Tests` | "testResults";

/** Empty if vitest ended before it wrote the report. */
function read(file: string): Pick<JsonTestResults, Counted> {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}
