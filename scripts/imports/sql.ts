import { isTemplateExpression, type Node } from "typescript/unstable/ast";
import { isPlainText, lineOf, nodesOf, type Source } from "../sources/program.ts";

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

export function looksLikeSql(text: string): boolean {
  return UPPER.test(text) || LOWER.test(text);
}

/** The lines on which a string or a template of `source` holds an SQL statement. */
export function sqlLines(source: Source): number[] {
  return [...nodesOf(source.tree)]
    .filter((node) => looksLikeSql(literalText(node)))
    .map((node) => lineOf(source, node));
}

function literalText(node: Node): string {
  if (isPlainText(node)) return node.text;
  if (!isTemplateExpression(node)) return "";
  return [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join("$1");
}
