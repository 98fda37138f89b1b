import { analyse } from "scslre";
import { isRegularExpressionLiteral } from "typescript/unstable/ast";
import { isTest } from "../sources/files.ts";
import { lineOf, nodesOf, type Source } from "../sources/program.ts";
import type { RuleViolation, StyleRule } from "./rule.ts";

export const REGULAR_EXPRESSION_RULES: readonly StyleRule[] = [
  {
    rule: "no regular expression takes more than linear time, whatever it is given",
    remedy: "Bound what repeats, begin where the run begins, or read the text without one",
    check: ({ sources }) => sources.filter(({ path }) => path.startsWith("packages/") && !isTest(path)).flatMap(slow),
  },
];

function slow(source: Source): RuleViolation[] {
  return [...nodesOf(source.tree)].filter(isRegularExpressionLiteral).flatMap((node) => {
    const end = node.text.lastIndexOf("/");
    const { reports } = analyse({ source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    const [worst] = reports.toSorted((a, b) => Number(b.exponential) - Number(a.exponential));
    if (worst === undefined) return [];
    const time = worst.exponential ? "exponential" : "polynomial";
    return [
      {
        file: source.path,
        line: lineOf(source, node),
        forbidden: `${node.text} takes ${time} time on many of ${worst.character.literal.source}`,
      },
    ];
  });
}
