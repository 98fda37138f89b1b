import { CommanderError } from "commander";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { failureJson, failureOf, failureText } from "./failure.ts";
import { program } from "./program.ts";
import type { Machine } from "./world.ts";

/** Runs one command line, without `node` and the script's name. Never throws; resolves to the exit code. */
export async function run(args: readonly string[], machine: Machine): Promise<ExitCode> {
  let code: ExitCode = exitCodes.ok;
  const conclude = (ended: ExitCode) => {
    code = ended;
  };
  try {
    await program({ ...machine, conclude }).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // Commander has said it already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const failure = failureOf(error);
    // Who pressed Ctrl-C need not be told.
    if (failure.exitCode === exitCodes.interrupted) return failure.exitCode;
    const text = args.includes("--json") ? JSON.stringify(failureJson(failure), null, 2) : failureText(failure);
    machine.stderr.write(`${text}\n`);
    return failure.exitCode;
  }
}
