import { posix } from "node:path";
import type { StyleRule } from "./rule.ts";

const DECISION = /^docs\/decisions\/(\d{3})-[\w-]+\.md$/;

export const DECISION_RULES: readonly StyleRule[] = [
  {
    rule: "each decision has a number of its own",
    remedy: "Give the newer record the next number, in its name, its heading and docs/decisions/README.md",
    check({ files }) {
      const records = files.filter((file) => DECISION.test(file)).sort();
      const byNumber = Map.groupBy(records, (file) => DECISION.exec(file)?.[1]);
      return [...byNumber.values()].flatMap(([first = "", ...others]) =>
        others.map((file) => ({ file, line: 1, forbidden: `${posix.basename(first)} has this number too` })),
      );
    },
  },
];
