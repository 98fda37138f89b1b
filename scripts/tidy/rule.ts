import type { Violation } from "../sources/finding.ts";
import type { Source } from "../sources/program.ts";

/** The project as the rules see it: paths from its root, and what is written there. */
export interface Project {
  readonly files: readonly string[];
  readonly folders: readonly string[];
  /** Every TypeScript file, parsed. */
  readonly sources: readonly Source[];
  /** Every other text: documents, settings, migrations, scripts of the shell. */
  readonly texts: readonly Text[];
}

export interface Text {
  readonly path: string;
  readonly text: string;
}

export type RuleViolation = Pick<Violation, "file" | "line"> & { readonly forbidden: string };

/** One rule of style. `check` gives every place that breaks it. */
export interface StyleRule {
  readonly rule: string;
  readonly remedy: string;
  check(project: Project): RuleViolation[];
}

/** The lines of `text` that match `pattern`, counted from 1. */
export function linesMatching(
  { path, text }: Text,
  pattern: RegExp,
  forbidden: (found: string) => string,
): RuleViolation[] {
  return text.split("\n").flatMap((line, index) => {
    const found = pattern.exec(line)?.[0];
    return found === undefined ? [] : [{ file: path, line: index + 1, forbidden: forbidden(found.trim()) }];
  });
}
