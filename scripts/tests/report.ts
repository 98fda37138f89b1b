import { readFileSync } from "node:fs";
import { relative } from "node:path";

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
  /** By what they lack, with how to install it: the number of tests, by their file and outermost title. */
  readonly missing: ReadonlyMap<string, ReadonlyMap<string, number>>;
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
  const report = read(file);
  const { numPassedTests: passed, numFailedTests, numPendingTests, numTodoTests } = report;
  const isSilentFailure = numFailedTests === 0 && (exitCode !== 0 || passed === 0);
  const failed = isSilentFailure ? 1 : numFailedTests;
  return { counts: { passed, failed, skipped: numPendingTests + numTodoTests }, ...readMissing(report, root) };
}

/** Collects what tests said they lack (`meta.missing`, of test/support/programs.ts). */
function readMissing({ testResults }: VitestReport, root: string): Pick<TestReport, "lacking" | "missing"> {
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ meta, ancestorTitles, title }) => ({
      lacks: meta.missing ?? [],
      named: `${relative(root, name)}: ${ancestorTitles[0] ?? title}`,
    })),
  );
  const missing = new Map<string, Map<string, number>>();
  for (const { lacks, named } of tests)
    for (const what of lacks) {
      const ofThis = missing.get(what) ?? new Map<string, number>();
      missing.set(what, ofThis.set(named, (ofThis.get(named) ?? 0) + 1));
    }
  return { lacking: tests.filter(({ lacks }) => lacks.length > 0).length, missing };
}

/** Names each skipped test, and how to install what it needs. */
export function describeMissing({ missing }: Pick<TestReport, "missing">): string {
  if (missing.size === 0) return "";
  const lines = [...missing].flatMap(([what, ofThis]) => [
    `  ${what}`,
    ...[...ofThis].map(([name, number]) => `    ${name}${number === 1 ? "" : ` (${number} tests)`}`),
  ]);
  return `Not run, because this machine lacks something:\n${lines.join("\n")}\n`;
}

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly title: string;
      readonly ancestorTitles: readonly string[];
      readonly meta: { readonly missing?: readonly string[] };
    }[];
  }[];
}

/** Empty if vitest ended before it wrote the report. */
function read(file: string): VitestReport {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as VitestReport;
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}
