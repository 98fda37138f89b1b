/**
 * The command `paybell`: the only file that touches the process.
 *
 * - A command is one file in `commands/`: a factory that takes the `World` (streams, environment, fetch, the signal of
 *   Ctrl-C) and returns what `command()` of `command.ts` makes, with its arguments, options and action. `program.ts`
 *   lists the factories.
 * - The action is wrapped by `ends()`, resolves to a code of `exit-codes.ts`, and prints by `output.ts`: one JSON
 *   document to stdout with `--json`, lines for a person without.
 * - What ends a command early is a `Failure`: message, remedy, stable code, exit code. Nothing prints a stack.
 * - Where the service is and with which keys: `connection.ts`, from flags, environment, and `.paybell/sandbox.json`.
 */
import { run } from "./run.ts";

const interruption = new AbortController();
// A second Ctrl-C does no more than the first: commands end at once, and the service's have a say of their own.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => interruption.abort(signal));
}
// Whoever reads us may end before we do, as in `paybell … | head`.
process.stdout.on("error", () => interruption.abort("SIGPIPE"));
process.stderr.on("error", () => undefined);

async function main(): Promise<void> {
  process.exitCode = await run(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    workingDirectory: process.cwd(),
    fetch,
    signal: interruption.signal,
    nowMs: () => Date.now(),
    process,
  });
  // Nothing stays open after a command's end; if something did, it must not keep the process.
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit();
}

/** Once all is written. Of a stream that broke it may never come: then nothing is left to do, and Node ends itself. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write("", () => resolve()));
}

// Not awaited: what never comes must not count as a failure.
void main();
