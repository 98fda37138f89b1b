import type { Check } from "./run.ts";

const node = process.execPath;

/** Checks that need no test run. The slowest come first, so that they do not run alone at the end. */
export const STATIC_CHECKS: readonly Check[] = [
  { name: "types", command: "tsc", args: ["-p", "."] },
  { name: "types of the console", command: "tsc", args: ["-p", "packages/console"] },
  { name: "format and lint", command: "biome", args: ["ci", "--colors=off", "."] },
  { name: "dead code and dependencies", command: "knip", args: ["--no-progress", "--no-config-hints"] },
  { name: "who imports whom", command: "depcruise", args: ["packages/*/src"] },
  { name: "documents", command: "markdownlint-cli2", args: [] },
  { name: "style", command: node, args: ["scripts/tidy.ts"] },
  {
    name: "generated documents are up to date",
    command: node,
    args: ["--conditions=paybell-source", "scripts/generate.ts", "--check"],
  },
];
