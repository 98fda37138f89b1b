import { isTemplateExpression, type Node } from "typescript/unstable/ast";
import { isTest } from "../sources/files.ts";
import { isPlainText, lineOf, nodesOf, type Source } from "../sources/program.ts";
import type { RuleViolation, StyleRule } from "./rule.ts";

/** The service's own, and what a partner keeps in a database of theirs. */
const WITH_SQL = /^packages\/(?:server\/src\/(?:store|postgres)|partner\/src\/stores)\//;

const STATEMENTS = [
  "SELECT\\s[\\s\\S]*\\s?FROM\\s",
  "INSERT\\s+INTO\\s",
  'UPDATE\\s+[\\w."$]+\\s+(?:AS\\s+\\w+\\s+)?SET\\s',
  "DELETE\\s+FROM\\s",
  "MERGE\\s+INTO\\s",
  "TRUNCATE\\s+(?:TABLE\\s+)?\\w",
  "(?:CREATE|ALTER|DROP)\\s+(?:UNIQUE\\s+)?(?:TABLE|INDEX|SCHEMA|FUNCTION|TRIGGER|TYPE|VIEW|DATABASE|ROLE)\\s",
  // A channel has an underscore or quotes: "NOTIFY failed" in a log is prose.
  '(?:LISTEN|UNLISTEN|NOTIFY)\\s+(?:\\w+_\\w+|"\\w+"|\\$1)',
  "SELECT\\s+(?:pg_\\w+|now|\\$?\\d+)\\b",
].join("|");

// Upper case is SQL anywhere; lower case only at the beginning of the text, because English has the same words.
const UPPER = new RegExp(`\\b(?:${STATEMENTS})`);
const LOWER = new RegExp(`^\\s*(?:${STATEMENTS.replaceAll(/[A-Z]{2,}/g, (word) => word.toLowerCase())})`);

export const SQL_RULES: readonly StyleRule[] = [
  {
    rule: "SQL stands in packages/server/src/store (and postgres/) alone",
    remedy: "Move the statement into the file of its aggregate in store/ and call it through an interface",
    check: ({ sources }) =>
      sources
        .filter(({ path }) => /^packages\/[^/]+\/src\//.test(path) && !isTest(path) && !WITH_SQL.test(path))
        .flatMap(statements),
  },
];

function statements(source: Source): RuleViolation[] {
  return [...nodesOf(source.tree)]
    .filter((node) => looksLikeSql(literalText(node)))
    .map((node) => ({ file: source.path, line: lineOf(source, node), forbidden: "this text is SQL" }));
}

export function looksLikeSql(text: string): boolean {
  return UPPER.test(text) || LOWER.test(text);
}

function literalText(node: Node): string {
  if (isPlainText(node)) return node.text;
  if (!isTemplateExpression(node)) return "";
  return [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join("$1");
}
