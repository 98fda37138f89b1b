import { readFileSync } from "node:fs";
import { relative } from "node:path";
import type { TestCounts } from "./counts.ts";

/** Tests that were skipped, because the machine lacks something. */
export interface Missing {
  readonly count: number;
  /** By what they lack, with how to install it: the number of tests, by their file and outermost title. */
  readonly tests: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

/** Reads what tests said they lack (`meta.missing`, of test/support/programs.ts) from vitest's JSON report. */
export function readMissing(reportFile: string, root: string): Missing {
  const tests = new Map<string, Map<string, number>>();
  let count = 0;
  for (const { name, assertionResults } of readResults(reportFile)) {
    for (const { meta, ancestorTitles, title } of assertionResults) {
      const { missing = [] } = meta;
      count += missing.length > 0 ? 1 : 0;
      const named = `${relative(root, name)}: ${ancestorTitles[0] ?? title}`;
      for (const what of missing) {
        const ofThis = tests.get(what) ?? new Map<string, number>();
        tests.set(what, ofThis.set(named, (ofThis.get(named) ?? 0) + 1));
      }
    }
  }
  return { count, tests };
}

/** Names each skipped test, and how to install what it needs. */
export function describeMissing({ count, tests }: Missing): string {
  if (count === 0) return "";
  const lines = [...tests].flatMap(([what, ofThis]) => [
    `  ${what}`,
    ...[...ofThis].map(([name, number]) => `    ${name}${number === 1 ? "" : ` (${number} tests)`}`),
  ]);
  return `Not run, because this machine lacks something:\n${lines.join("\n")}\n`;
}

/** A tier that was asked for by name fails, where it could not be run. */
export function failMissing({ passed, failed, skipped }: TestCounts, { count }: Missing): TestCounts {
  return { passed, failed: failed + count, skipped: skipped - count };
}

interface FileResult {
  readonly name: string;
  readonly assertionResults: readonly {
    readonly title: string;
    readonly ancestorTitles: readonly string[];
    readonly meta: { readonly missing?: readonly string[] };
  }[];
}

/** None, if vitest ended before it wrote the report: then the counts say that the run failed. */
function readResults(file: string): readonly FileResult[] {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as { testResults: readonly FileResult[] }).testResults;
  } catch {
    return [];
  }
}
