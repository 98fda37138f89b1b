import type { StyleRule } from "./rule.ts";

const RECORD = /^docs\/decisions\/(?!README\.md$)[\w-]+\.md$/;
const BEGINNING = /^# .+\n\nDate: \d{4}-\d{2}-\d{2}\nStatus: (?:accepted|proposed)\n\n/;

export const DECISION_RULES: readonly StyleRule[] = [
  {
    rule: "each decision has a date and a status",
    remedy: 'After the heading, write "Date: YYYY-MM-DD" and "Status: accepted", or "proposed", on two lines',
    check: ({ texts }) =>
      texts
        .filter(({ path, text }) => RECORD.test(path) && !BEGINNING.test(text))
        .map(({ path }) => ({ file: path, line: 1, forbidden: "this record does not begin with them" })),
  },
];
