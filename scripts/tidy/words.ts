import { linesMatching, type StyleRule } from "./rule.ts";

const NAMELESS_FOLDERS = new Set(["util", "utils", "common", "helper", "helpers", "lib", "libs", "misc", "shared"]);
// The third word is also ISO 4217's "no currency": it counts as a mark only in a comment.
const MARK = /\b(?:TO(?:DO)|FIX(?:ME))\b|(?:\/\/|^\s*\*).*\bX{3}\b/;

export const WORD_RULES: readonly StyleRule[] = [
  {
    rule: "a folder is a noun of the domain",
    remedy: "Name the folder for what it holds, or put each file where it is used",
    check: ({ folders }) =>
      folders
        .filter((folder) => NAMELESS_FOLDERS.has(folder.split("/").at(-1) ?? ""))
        .map((folder) => ({ file: folder, line: 1, forbidden: "this folder's name says nothing" })),
  },
  {
    rule: "what is committed is finished",
    remedy: "Do it now, or say in the documents what is not there",
    check: ({ sources, texts }) =>
      [...sources, ...texts].flatMap((text) => linesMatching(text, MARK, () => "this line puts something off")),
  },
];
