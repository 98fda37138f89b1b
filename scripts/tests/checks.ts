import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { compilerEnv } from "../build/compiler.ts";

const run = promisify(execFile);
const node = process.execPath;

export interface Check {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * Checks that need no test run. The slowest come first, so that they do not run alone at the end. One checker of the
 * compiler takes 11 s of processor time, four take 19 s (measured), because each checks much of the same.
 */
export const staticChecks: readonly Check[] = [
  // Tests need the pages. Their build is one process after the other, which leaves a core to the other checks.
  { name: "pages of the console and the guides", command: node, args: ["scripts/pages.js", "--if-changed"] },
  { name: "types", command: "tsc", args: ["-p", ".", "--checkers", "1"] },
  { name: "format and lint", command: "biome", args: ["ci", "--colors=off", "."] },
  { name: "types of the console", command: "tsc", args: ["-p", "packages/console", "--checkers", "1"] },
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

const parallelMax = 2;
const outputBytesMax = 64 * 1_024 * 1_024;

/** Runs the checks, two at a time, and passes on a text about each: one line if it passed, all it wrote if it failed. */
export async function runChecks(
  checks: readonly Check[],
  where: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  write: (text: string) => void,
): Promise<{ readonly passed: number; readonly failed: number }> {
  let passed = 0;
  const waiting = checks.values();
  const how = { cwd: where.cwd, env: { ...where.env, ...compilerEnv }, maxBuffer: outputBytesMax };
  const worker = async () => {
    for (const { name, command, args } of waiting) {
      const startedMs = performance.now();
      // A command that cannot be started fails, too: its output is the system's reason.
      const failure = await run(command, [...args], how).then(
        () => undefined,
        ({ stdout, stderr, message }) => `${stdout ?? ""}${stderr ?? ""}`.trimEnd() || String(message),
      );
      if (failure === undefined) passed += 1;
      const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
      write(`  ${failure === undefined ? "ok  " : "FAIL"}  ${name} (${seconds} s)\n`);
      if (failure !== undefined) write(`\n${failure}\n\n`);
    }
  };
  await Promise.all(Array.from({ length: parallelMax }, worker));
  return { passed, failed: checks.length - passed };
}
