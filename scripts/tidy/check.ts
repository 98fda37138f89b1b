import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isTypeScript, listTree } from "../sources/files.ts";
import type { CheckReport } from "../sources/finding.ts";
import { withSources } from "../sources/program.ts";
import { BLOCK_RULES } from "./blocks.ts";
import { DECISION_RULES } from "./decisions.ts";
import { NAMED_FILE_RULES } from "./named-files.ts";
import { REGULAR_EXPRESSION_RULES } from "./regular-expressions.ts";
import type { StyleRule } from "./rule.ts";
import { SKIP_RULES } from "./skipped.ts";
import { SQL_RULES } from "./sql.ts";
import { TYPE_NAME_RULES } from "./type-names.ts";
import { WORD_RULES } from "./words.ts";

export const RULES: readonly StyleRule[] = [
  ...TYPE_NAME_RULES,
  ...WORD_RULES,
  ...SKIP_RULES,
  ...SQL_RULES,
  ...DECISION_RULES,
  ...NAMED_FILE_RULES,
  ...BLOCK_RULES,
  ...REGULAR_EXPRESSION_RULES,
];

const TEXTS = /\.(?:md|sql|json|jsonc|ya?ml|sh|js|mjs|cjs|css|html)$|(?:^|\/)(?:\.npmrc|\.ci\/run)$/;

/** Checks every file below `root` against the rules of style. */
export function checkTidiness(root: string): CheckReport {
  const { files, folders } = listTree(root);
  const texts = files
    .filter((path) => TEXTS.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  return withSources(root, files.filter(isTypeScript), (sources) => {
    const project = { files, folders, sources, texts };
    const findings = RULES.flatMap(({ rule, remedy, check }) =>
      check(project).map((place) => ({ ...place, rule, remedy })),
    );
    const documents = texts.filter(({ path }) => path.endsWith(".md")).length;
    return { name: "tidy", read: { sources: sources.length, texts: texts.length, documents }, findings };
  });
}
