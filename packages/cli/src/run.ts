import { CommanderError } from "commander";
import type { HostEnvironment } from "./context.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { Failure, failureJson, failureOf, failureText } from "./failure.ts";
import { program } from "./program.ts";

/** Runs one command line, without `node` and the script's name. Never throws; resolves to the exit code. */
export async function run(args: readonly string[], machine: HostEnvironment): Promise<ExitCode> {
  let code: ExitCode = exitCodes.ok;
  const conclude = (ended: ExitCode) => {
    code = ended;
  };
  const isJson = args.includes("--json");
  try {
    await program({ ...machine, conclude }, !isJson).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.ok;
      // Without --json commander has printed it already.
      if (!isJson) return exitCodes.usage;
    }
    const failure = error instanceof CommanderError ? wrongUsage(error) : failureOf(error);
    // After Ctrl-C the user needs no message.
    if (failure.exitCode === exitCodes.interrupted) return failure.exitCode;
    const text = isJson ? JSON.stringify(failureJson(failure), null, 2) : failureText(failure);
    machine.stderr.write(`${text}\n`);
    return failure.exitCode;
  }
}

function wrongUsage({ message }: CommanderError): Failure {
  const [what = ""] = message.replace(/^error: /, "").split("\n");
  return new Failure(/[.!?]$/.test(what) ? what : `${what}.`, {
    code: "bad_usage",
    remedy: "See --help.",
  });
}
