import { type Command, CommanderError } from "commander";
import { program } from "./program.ts";
import type { HostEnvironment } from "./shell/command.ts";
import { type ExitCode, exitCodes, Failure, failureJson, failureOf, failureText, withNext } from "./shell/failure.ts";

/** Runs one command line, without `node` and the script's name. Never throws; resolves to the exit code. */
export async function run(args: readonly string[], machine: HostEnvironment): Promise<ExitCode> {
  let code: ExitCode = exitCodes.ok;
  const conclude = (ended: ExitCode) => {
    code = ended;
  };
  const isJson = args.includes("--json");
  const root = program({ ...machine, conclude }, !isJson);
  try {
    await root.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.ok;
      // Without --json commander has printed it already.
      if (!isJson) return exitCodes.usage;
    }
    const thrown = error instanceof CommanderError ? wrongUsage(error) : failureOf(error);
    const failure = withNext(thrown, pathIn(root, args));
    // After Ctrl-C the user needs no message.
    if (failure.exitCode === exitCodes.interrupted) return failure.exitCode;
    const text = isJson ? JSON.stringify(failureJson(failure), null, 2) : failureText(failure);
    machine.stderr.write(`${text}\n`);
    return failure.exitCode;
  }
}

function wrongUsage({ message }: CommanderError): Failure {
  const [what = ""] = message.replace(/^error: /, "").split("\n");
  return new Failure(/[.!?]$/.test(what) ? what : `${what}.`, { code: "bad_usage" });
}

/** The words that name the command, each with a space behind it. */
function pathIn(root: Command, args: readonly string[]): string {
  let command: Command | undefined = root;
  let path = "";
  for (const word of args) {
    command = command?.commands.find((one) => one.name() === word);
    if (command === undefined) break;
    path += `${word} `;
  }
  return path;
}
