import { program } from "../../packages/cli/src/program.ts";
import { describedOf } from "../../packages/cli/src/shell/command.ts";
import type { CommandContext } from "../../packages/cli/src/shell/context.ts";

type Command = ReturnType<typeof program>;

const streams = { stdout: process.stdout, stderr: process.stderr };
/** A context in which nothing runs, for questions that only commander answers. */
export const nowhere = { ...streams, process, nowMs: Date.now } as unknown as CommandContext;

/** Those that run: the others only group them. */
export function leaves(one: Command): Command[] {
  return one.commands.length === 0 ? [one] : one.commands.flatMap(leaves);
}

function pathOf(one: Command): string {
  return one.parent === null ? one.name() : `${pathOf(one.parent)} ${one.name()}`;
}

/** Each command's whole name, and its examples. */
export const allCommands = leaves(program(nowhere)).map(
  (one) => [pathOf(one), describedOf(one)?.examples ?? []] as const,
);

/** Parses it without running anything. Resolves to the command's whole name. */
export async function parsed(words: readonly string[]): Promise<string> {
  const root = program(nowhere);
  let ran = "";
  for (const one of leaves(root)) {
    one.configureOutput({ writeErr: () => undefined }).action(() => {
      ran = pathOf(one);
    });
  }
  await root.parseAsync(words, { from: "user" });
  return ran;
}

/** The words after each `paybell` of a shell line, quotes taken away. */
export function commandsIn(example: string): string[][] {
  const joined = example.replaceAll(/\\\n\s*/g, " ");
  return [...joined.matchAll(/(?<![\w/@.])paybell ((?:"[^"]*"|[^|>&)"]+)+)/g)].map(([, rest = ""]) =>
    [...rest.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain = ""]) => quoted ?? plain),
  );
}
