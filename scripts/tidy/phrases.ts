import { isTest } from "../sources/files.ts";
import { withoutCode } from "./links.ts";
import type { RuleViolation, StyleRule, Text } from "./rule.ts";

/** Phrases that only this project's early texts used, with the usual ones. */
const UNUSUAL: readonly (readonly [phrase: RegExp, usual: string])[] = [
  [/\bparted by\b/i, "separated by"],
  [/\bby hand\b/i, "by, or manually"],
  [/\bends (?:TLS|HTTPS)\b/, "terminates TLS"],
  [/\bstands for\b/i, "means, is valid for, or identifies"],
  [/\b(?:for|binds|answers) this machine alone\b/i, "listens on localhost only"],
  [/\bis no (?:UUID|IPN|JSON|HTTP|TLS|UTF-8|number|text|URL|sentence)\b/, "is not a"],
  [/\bstands? twice\b/i, "appears twice"],
  [/\bmend(?:s|ed|ing)?\b/i, "fix, remove the cause"],
  [/\bheld (?:to|against)\b/i, "checked against, compared with"],
  [/\btold (?:of|apart)\b/i, "reported, notified, distinguished"],
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

/** Beginnings and words of test titles that hide the subject. */
const UNUSUAL_IN_TITLES: readonly (readonly [phrase: RegExp, usual: string])[] = [
  [/^(?:what|who|whoever|whatever) /, "the subject, then its behaviour"],
  [/\b(?:is|are) told\b/, "reported, notified, refused"],
];

/** A migration's comments are part of its hash: those that are applied somewhere stay as they are. */
const UNUSUAL_IN_SOURCES: readonly (readonly [phrase: RegExp, usual: string])[] = [
  ...UNUSUAL_IN_COMMENTS,
  [/^(?:Of|Where|How|Which|Those) (?!.*\?)/, "begin with what the thing is: a noun or a verb"],
];

const TITLE = /(?:\b(?:test|it|describe)(?:\.\w+)*\(|\]\)\()"(?<text>[^"]+)"/;
const COMMENT = /^\s*(?:\/\*\*?|\*(?!\/)|\/\/|--)\s+(?<text>.*?)(?:\s*\*\/)?$/;

export const PHRASE_RULES: readonly StyleRule[] = [
  {
    rule: "documents, comments and test titles use the usual words, and a sentence begins with its subject",
    remedy: "Write it as a native-speaking engineer would say it",
    check: ({ sources, texts }) => [
      ...texts.filter(({ path }) => path.endsWith(".md")).flatMap((text) => unusual(text, withoutCode(text.text))),
      ...texts
        .filter(({ path }) => path.endsWith(".sql"))
        .flatMap((text) => unusual(text, linesOf(text, COMMENT), UNUSUAL_IN_COMMENTS)),
      ...sources.flatMap((text) => unusual(text, linesOf(text, COMMENT), UNUSUAL_IN_SOURCES)),
      ...sources
        .filter(({ path }) => isTest(path))
        .flatMap((text) => unusual(text, linesOf(text, TITLE), UNUSUAL_IN_TITLES)),
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

/** The text that the pattern finds on each line, empty where it finds none. */
function linesOf({ text }: Text, pattern: RegExp): string[] {
  return text.split("\n").map((line) => pattern.exec(line)?.groups?.["text"] ?? "");
}
