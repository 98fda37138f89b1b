import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { CommandContext } from "./command.ts";
import { Failure } from "./failure.ts";

export interface ConfirmOption {
  readonly yes?: boolean | undefined;
}

/** For a command whose action cannot be taken back: it shows what it will do, and asks. */
export function withConfirmation(made: Command, description = "do it without asking"): Command {
  return made.option("--yes", description);
}

/**
 * Asks the user at the terminal, unless `--yes` was given. Nothing may have been changed before.
 *
 * @param what the action in numbers, as sentences
 * @throws Failure if the user does not agree, or there is no terminal
 */
export async function confirm(context: CommandContext, { yes }: ConfirmOption, what: string): Promise<void> {
  if (yes === true) return;
  const { stdin, stderr, signal } = context;
  requireConfirmable(context, { yes }, what);
  // Not with readline's terminal mode, in which Ctrl-C would end only the question.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const asked = lines.question(`${what} Go on? [y/N] `, { signal });
    // Ctrl-D ends the input without an answer.
    const answer = await Promise.race([asked, once(lines, "close").then(() => "")]);
    if (!/^y(es)?$/i.test(answer.trim())) throw refusal("You did not confirm.");
  } finally {
    lines.close();
  }
}

/** For a command that prepares something before it can ask. @throws Failure if there is nobody to ask */
export function requireConfirmable({ stdin }: CommandContext, { yes }: ConfirmOption, what: string): void {
  if (yes !== true && stdin.isTTY !== true) throw refusal(`${what} There is no terminal to confirm it.`);
}

function refusal(why: string): Failure {
  return new Failure(`${why} Nothing was changed.`, { code: "not_confirmed", remedy: "Use --yes to confirm it." });
}

/** Such as "1 command" or "3 commands". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
