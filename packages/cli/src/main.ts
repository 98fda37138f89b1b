import { fstatSync, writeSync } from "node:fs";
import { run } from "./program.ts";

/**
 * The command `paybell`: the only file that touches the process.
 *
 * - A file has the commands about one thing. A command is a factory that takes the `CommandContext` (streams,
 *   environment, fetch, the signal of Ctrl-C) and returns what `command()` of `shell/command.ts` makes, with its
 *   arguments and options, which give the action its types. `program.ts` lists the factories.
 * - The action is set by `calls()` if it calls the service, by `runs()` if it runs it, otherwise by `acts()`. It
 *   resolves to a `Result`: one JSON document for `--json`, lines for a person, and a code of `shell/failure.ts`.
 * - A command ends early by a `Failure`: message, remedy, stable code, exit code. Nothing prints a stack.
 * - `client/connection.ts` finds the service and the keys, from flags, environment, and `.paybell/sandbox.json`.
 */

const interruption = new AbortController();
// A second Ctrl-C has no further effect: commands end immediately, and those of the service handle it themselves.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => interruption.abort(signal));
}
// The reader of our output may end first, as in `paybell … | head`.
process.stdout.on("error", () => interruption.abort("SIGPIPE"));
process.stderr.on("error", () => undefined);
// Node's own stream of a file takes the part for which a full disk had room for all of it.
if (isFile(process.stdout.fd)) process.stdout._write = writeWhole;

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

/**
 * Resolves when everything is written. A broken stream may never emit it: then nothing is left to do, and Node exits.
 */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write("", () => resolve()));
}

function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
}

function writeWhole(bytes: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
  let failure: Error | undefined;
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(process.stdout.fd, bytes, at);
  } catch (error) {
    failure = error as Error;
  }
  done(failure);
}

// Not awaited: a promise that never settles must not count as a failure.
void main();
