import { program } from "../../../packages/cli/src/program.ts";
import { command, group } from "../../../packages/cli/src/shell/command.ts";

// `paybell`, with a command that is described by the words of a test.
const text = process.env["TEST_DESCRIPTION"] ?? "";
const root = program({
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  workingDirectory: process.cwd(),
  fetch,
  signal: new AbortController().signal,
  nowMs: () => Date.now(),
  process,
  conclude: () => undefined,
});
const first = command("first", { summary: text, examples: ["paybell hostile first"] });
const second = command("second", { summary: text, examples: ["paybell hostile second"] });
root.addCommand(group("hostile", text, [first.option("--one <value>", text).option("--two", text), second]));
await root.parseAsync(process.argv.slice(2), { from: "user" });
