import type { Source } from "../sources/program.ts";

/** The project as the rules see it: paths from its root, with `/`, and what is written there. */
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

/** A place that breaks a rule. */
export interface Violation {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly forbidden: string;
}

/** One rule of style. `check` gives every place that breaks it. */
export interface StyleRule {
  readonly rule: string;
  readonly remedy: string;
  check(project: Project): Violation[];
}
