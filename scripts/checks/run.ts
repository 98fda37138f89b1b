import { spawn } from "node:child_process";

export interface Check {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

export interface CheckOutcome {
  readonly name: string;
  readonly passed: boolean;
  /** Everything the check wrote, in the order it was written. */
  readonly output: string;
  readonly durationMs: number;
}

interface Surroundings {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly nowMs: () => number;
}

/** Runs every check, at most `parallelMax` at a time, and hands each outcome to `told` as soon as it is known. */
export async function runChecks(
  checks: readonly Check[],
  parallelMax: number,
  surroundings: Surroundings,
  told: (outcome: CheckOutcome) => void,
): Promise<CheckOutcome[]> {
  const outcomes: CheckOutcome[] = [];
  const waiting = checks.values();
  const worker = async () => {
    for (const check of waiting) {
      const outcome = await runCheck(check, surroundings);
      outcomes.push(outcome);
      told(outcome);
    }
  };
  await Promise.all(Array.from({ length: parallelMax }, worker));
  return outcomes;
}

function runCheck({ name, command, args }: Check, { cwd, env, nowMs }: Surroundings): Promise<CheckOutcome> {
  const startedMs = nowMs();
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const add = (chunk: string) => {
      output += chunk;
    };
    child.stdout.setEncoding("utf8").on("data", add);
    child.stderr.setEncoding("utf8").on("data", add);
    // A command that cannot be started at all is a failed check, with the system's reason as its output.
    child.on("error", (error) => resolve({ name, passed: false, output: error.message, durationMs: 0 }));
    child.on("close", (code) => resolve({ name, passed: code === 0, output, durationMs: nowMs() - startedMs }));
  });
}

/** One line for what passed; what failed is shown in full. */
export function describeOutcome({ name, passed, output, durationMs }: CheckOutcome): string {
  const line = `  ${passed ? "ok  " : "FAIL"}  ${name} (${(durationMs / 1000).toFixed(1)} s)\n`;
  return passed ? line : `${line}\n${output.trimEnd()}\n\n`;
}
