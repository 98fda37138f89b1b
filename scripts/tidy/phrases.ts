import { withoutCode } from "./links.ts";
import type { RuleViolation, StyleRule, Text } from "./rule.ts";

/** Phrases that only this project's early documents used, with the usual ones. */
const UNUSUAL: readonly (readonly [phrase: RegExp, usual: string])[] = [
  [/\bparted by\b/i, "separated by"],
  [/\bby hand of\b/i, "by"],
  [/\bends (?:TLS|HTTPS)\b/, "terminates TLS"],
  [/\bstands for\b/i, "means, is valid for, or identifies"],
  [/\b(?:for|binds|answers) this machine alone\b/i, "listens on localhost only"],
  [/\bis no (?:UUID|IPN|JSON|HTTP|number|text)\b/, "is not a"],
  [/(?:^|[.:;!?] )(?:Who|Whoever) (?!.*\?)/, "the subject first: a caller, an attacker, an instance"],
];

export const PHRASE_RULES: readonly StyleRule[] = [
  {
    rule: "documents use the usual words, and a sentence begins with its subject",
    remedy: "Write it as a native-speaking engineer would say it",
    check: ({ texts }) => texts.filter(({ path }) => path.endsWith(".md")).flatMap(unusual),
  },
];

function unusual({ path, text }: Text): RuleViolation[] {
  return withoutCode(text).flatMap((line, index) =>
    UNUSUAL.flatMap(([phrase, usual]) => {
      const found = phrase.exec(line)?.[0].trim();
      return found === undefined ? [] : [{ file: path, line: index + 1, forbidden: `"${found}": ${usual}` }];
    }),
  );
}
