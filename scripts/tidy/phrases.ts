import { withoutCode } from "./links.ts";
import type { RuleViolation, StyleRule, Text } from "./rule.ts";

/** Phrases that only this project's early texts used, with the usual ones. */
const UNUSUAL: readonly (readonly [phrase: RegExp, usual: string])[] = [
  [/\bparted by\b/i, "separated by"],
  [/\bby hand of\b/i, "by"],
  [/\bends (?:TLS|HTTPS)\b/, "terminates TLS"],
  [/\bstands for\b/i, "means, is valid for, or identifies"],
  [/\b(?:for|binds|answers) this machine alone\b/i, "listens on localhost only"],
  [/\bis no (?:UUID|IPN|JSON|HTTP|number|text)\b/, "is not a"],
  [/(?:^|[.:;!?] )(?:Who|Whoever) (?!.*\?)/, "the subject first: a caller, an attacker, an instance"],
];

/** Phrases of early comments, with the usual ones. */
const UNUSUAL_IN_COMMENTS: readonly (readonly [phrase: RegExp, usual: string])[] = [
  ...UNUSUAL,
  [/^(?:What|Whose|Whom) (?!.*\?)/, "begin with what the thing is: a noun or a verb"],
  [/\bwho(?:so)?ever\b/i, "a caller, a sender, a reader"],
  [/\bspoilt\b/i, "tampered"],
  [/\b(?:comes|came|come) into being\b/i, "is created"],
];

const COMMENT = /^\s*(?:\/\*\*?|\*(?!\/)|\/\/|--)\s+(?<text>.*?)(?:\s*\*\/)?$/;

export const PHRASE_RULES: readonly StyleRule[] = [
  {
    rule: "documents and comments use the usual words, and a sentence begins with its subject",
    remedy: "Write it as a native-speaking engineer would say it",
    check: ({ sources, texts }) => [
      ...texts.filter(({ path }) => path.endsWith(".md")).flatMap((text) => unusual(text, withoutCode(text.text))),
      ...[...sources, ...texts.filter(({ path }) => path.endsWith(".sql"))].flatMap((text) =>
        unusual(text, commentLines(text), UNUSUAL_IN_COMMENTS),
      ),
    ],
  },
];

function unusual({ path }: Text, lines: readonly string[], phrases = UNUSUAL): RuleViolation[] {
  return lines.flatMap((line, index) =>
    phrases.flatMap(([phrase, usual]) => {
      const found = phrase.exec(line)?.[0].trim();
      return found === undefined ? [] : [{ file: path, line: index + 1, forbidden: `"${found}": ${usual}` }];
    }),
  );
}

/** The comment on each line, and an empty line for code. */
function commentLines({ text }: Text): string[] {
  return text.split("\n").map((line) => COMMENT.exec(line)?.groups?.["text"] ?? "");
}
