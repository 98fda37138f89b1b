import { analyse } from "scslre";
import { isRegularExpressionLiteral } from "typescript/unstable/ast";
import { isTest } from "../sources/files.ts";
import { lineOf, nodesOf, type Source } from "../sources/program.ts";
import type { StyleRule, Text, Violation } from "./rule.ts";

const namelessFolders = new Set(["util", "utils", "common", "helper", "helpers", "lib", "libs", "misc", "shared"]);
// The third word is also ISO 4217's "no currency": it counts as a mark only in a comment.
const mark = /\b(?:TO(?:DO)|FIX(?:ME))\b|(?:\/\/|^\s*\*).*\bX{3}\b/;
const leftOut = /\b(?:test|it|describe)\b[^"'`]*\.(?:skip|skipIf|runIf|todo|fails)\b|\bskip\(\)/;
const comment = /^\s*(?:\/\/|\*\/|\/\*)/;

export const codeRules: readonly StyleRule[] = [
  {
    rule: "a folder is a noun of the domain",
    remedy: "Name the folder for what it holds, or put each file where it is used",
    check: ({ folders }) =>
      folders
        .filter((folder) => namelessFolders.has(folder.split("/").at(-1) ?? ""))
        .map((folder) => ({ file: folder, line: 1, forbidden: "this folder's name says nothing" })),
  },
  {
    rule: "what is committed is finished",
    remedy: "Do it now, or say in the documents what is not there",
    check: ({ sources, texts }) =>
      [...sources, ...texts].flatMap((text) =>
        linesWhere(text, "this line puts something off", (line) => mark.test(line)),
      ),
  },
  {
    rule: "no test is left out without a reason",
    remedy: "Say why in a comment on the line or the one above it, or in skip()'s argument",
    check: ({ sources }) =>
      sources
        .filter(({ path }) => isTest(path))
        .flatMap((text) =>
          linesWhere(
            text,
            "this test is left out, and nothing says why",
            (line, above) => leftOut.test(line) && !/\/\/\s*\S/.test(line) && !comment.test(above),
          ),
        ),
  },
  {
    rule: "no regular expression takes more than linear time, whatever it is given",
    remedy: "Bound what repeats, begin where the run begins, or read the text without one",
    check: ({ sources }) => sources.filter(({ path }) => path.startsWith("packages/") && !isTest(path)).flatMap(slow),
  },
];

function linesWhere(
  { path, text }: Text,
  forbidden: string,
  breaks: (line: string, above: string) => boolean,
): Violation[] {
  const lines = text.split("\n");
  return lines.flatMap((line, at) =>
    breaks(line, lines[at - 1] ?? "") ? [{ file: path, line: at + 1, forbidden }] : [],
  );
}

function slow(source: Source): Violation[] {
  return [...nodesOf(source.tree)].filter(isRegularExpressionLiteral).flatMap((node) => {
    const end = node.text.lastIndexOf("/");
    const { reports } = analyse({ source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    const [worst] = reports.toSorted((a, b) => Number(b.exponential) - Number(a.exponential));
    if (worst === undefined) return [];
    const time = worst.exponential ? "exponential" : "polynomial";
    const forbidden = `${node.text} takes ${time} time on many of ${worst.character.literal.source}`;
    return [{ file: source.path, line: lineOf(source, node), forbidden }];
  });
}
