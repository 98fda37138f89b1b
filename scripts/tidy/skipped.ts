import { isCallExpression, isIdentifier, isPropertyAccessExpression, type Node } from "typescript/unstable/ast";
import { isTest } from "../sources/files.ts";
import { lineOf, nodesOf, type Source } from "../sources/program.ts";
import type { RuleViolation, StyleRule } from "./rule.ts";

const RUNNERS = new Set(["test", "it", "describe", "suite", "bench"]);
const LEAVES_OUT = new Set(["skip", "skipIf", "runIf", "todo", "fails"]);

export const SKIP_RULES: readonly StyleRule[] = [
  {
    rule: "no test is left out without a reason",
    remedy: "Say why in a comment on the line or the one above it, or in skip()'s argument",
    check: ({ sources }) => sources.filter(({ path }) => isTest(path)).flatMap(leftOut),
  },
];

function leftOut(source: Source): RuleViolation[] {
  const lines = source.text.split("\n");
  return [...nodesOf(source.tree)].flatMap((node) => {
    const forbidden = objection(node, () => {
      const line = lineOf(source, node);
      return /\/\/\s*\S+/.test(lines[line - 1] ?? "") || /^\s*(?:\/\/|\*\/|\/\*)/.test(lines[line - 2] ?? "");
    });
    return forbidden === undefined ? [] : [{ file: source.path, line: lineOf(source, node), forbidden }];
  });
}

function objection(node: Node, hasReason: () => boolean): string | undefined {
  if (isPropertyAccessExpression(node) && RUNNERS.has(rootName(node))) {
    return LEAVES_OUT.has(node.name.text) && !hasReason() ? `\`.${node.name.text}\` has no reason` : undefined;
  }
  if (!isCallExpression(node) || node.arguments.length > 0 || hasReason()) return undefined;
  const { expression } = node;
  const isContextSkip = isPropertyAccessExpression(expression) && expression.name.text === "skip";
  return isContextSkip || (isIdentifier(expression) && expression.text === "skip")
    ? "`skip()` has no reason"
    : undefined;
}

/** `describe` in `describe.concurrent.only`. */
function rootName(node: Node): string {
  let root = node;
  while (isPropertyAccessExpression(root) || isCallExpression(root)) root = root.expression;
  return isIdentifier(root) ? root.text : "";
}
