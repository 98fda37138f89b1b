import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isTypeScript, listTree } from "./sources/files.ts";
import { withSources } from "./sources/program.ts";
import { codeRules } from "./tidy/code.ts";
import { documentRules } from "./tidy/documents.ts";
import type { StyleRule, Violation } from "./tidy/rule.ts";

export const rules: readonly StyleRule[] = [...codeRules, ...documentRules];

const texts = /\.(?:md|sql|json|jsonc|ya?ml|sh|js|mjs|cjs|css|html)$|(?:^|\/)(?:\.npmrc|\.ci\/run)$/;

/** The number of files that were read, and the findings. A check that read nothing has failed. */
export interface TidyReport {
  readonly read: { readonly sources: number; readonly texts: number; readonly documents: number };
  readonly findings: readonly (Violation & Pick<StyleRule, "rule" | "remedy">)[];
}

/** Checks every file below `root` against the rules of style. */
export function checkTidiness(root: string): TidyReport {
  const { files, folders } = listTree(root);
  const read = files
    .filter((path) => texts.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  return withSources(root, files.filter(isTypeScript), (sources) => {
    const project = { files, folders, sources, texts: read };
    const findings = rules.flatMap(({ rule, remedy, check }) =>
      check(project).map((place) => ({ ...place, rule, remedy })),
    );
    const documents = read.filter(({ path }) => path.endsWith(".md")).length;
    return { read: { sources: sources.length, texts: read.length, documents }, findings };
  });
}

export function passes({ read, findings }: TidyReport): boolean {
  return findings.length === 0 && Object.values(read).every((count) => count > 0);
}

/** The report as text: a line for each finding, then one line that says how much was read. */
export function describe({ read, findings }: TidyReport): string {
  const lines = findings
    .toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line)
    .map(({ file, line, rule, forbidden, remedy }) => `${file}:${line}: ${forbidden}. Rule: ${rule}. ${remedy}.`);
  const counts = Object.entries(read).map(([what, count]) => `${count} ${what}`);
  return [...lines, `tidy: read ${counts.join(", ")}; ${findings.length} findings`, ""].join("\n");
}

// `node scripts/tidy.ts [root]`: the rules of style that neither the formatter nor the linter knows.
if (import.meta.main) {
  const report = checkTidiness(process.argv[2] ?? process.cwd());
  process.stdout.write(describe(report));
  process.exitCode = passes(report) ? 0 : 1;
}
