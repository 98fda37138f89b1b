import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { Command, type CommandUnknownOpts, type OptionValues } from "@commander-js/extra-typings";
import type { CommandContext } from "./context.ts";
import { type ExitCode, exitCodes, Failure } from "./failure.ts";
import { type JsonOption, print, type Result } from "./output.ts";

/** A command whose arguments and options are not known to the compiler. */
export type AnyCommand = CommandUnknownOpts;

export interface CommandDescription {
  /** One line, in the list of commands. */
  readonly summary: string;
  /** More, in its own help. */
  readonly description?: string;
  /** Each as it is typed, after the `$`; `#` begins what it is for. The first one is the simplest. */
  readonly examples: readonly string[];
  /** The meaning of its exit codes, if more specific than the general list. */
  readonly exitCodes?: Partial<Readonly<Record<ExitCode, string>>>;
  /** False for a command that only ends when it is stopped, and has no output for programs. */
  readonly json?: boolean;
}

const descriptions = new WeakMap<object, CommandDescription>();
const defaults = new WeakMap<object, AnyCommand>();

/** The description of a command; undefined if it was not made by `command()`. */
export function describedOf(command: AnyCommand): CommandDescription | undefined {
  return descriptions.get(command);
}

/** The command that the word of a group alone runs. */
export function defaultOf(command: AnyCommand): AnyCommand | undefined {
  return defaults.get(command);
}

/** A command with its help, an example, and `--json`. Arguments, options and the action are added to what it is. */
export function command(name: string, described: CommandDescription): Command<[], JsonOption> {
  const { summary, description, examples, exitCodes: codes = {}, json = true } = described;
  const sections = [
    examplesText(examples),
    Object.keys(codes).length === 0 ? "" : `\nExit codes:\n${codeLines(codes).join("\n")}`,
  ];
  const made = new Command(name)
    .summary(summary)
    .description(description === undefined ? sentence(summary) : `${sentence(summary)}\n\n${description}`)
    .addHelpText("after", sections.filter((section) => section !== "").join("\n"));
  if (json) made.option("--json", "print JSON, and errors as JSON to stderr");
  descriptions.set(made, described);
  return made as Command<[], JsonOption>;
}

/** Several commands under one word. @param whenUnnamed what the word alone runs; absent: the help */
export function group(
  name: string,
  summary: string,
  commands: readonly AnyCommand[],
  whenUnnamed?: AnyCommand,
): AnyCommand {
  const examples = commands.flatMap((one) => describedOf(one)?.examples[0] ?? []);
  const made = new Command(name)
    .summary(summary)
    .description(sentence(summary))
    .addHelpText("after", examplesText(examples));
  for (const one of commands) made.addCommand(one, { isDefault: one === whenUnnamed });
  if (whenUnnamed !== undefined) defaults.set(made, whenUnnamed);
  return made;
}

/**
 * Sets the action of a command: it gets the options, then the arguments, and its result is printed. Ctrl-C ends it at
 * once.
 *
 * @param action resolves to an exit code if it prints by itself
 * @param ctrlC `finishes`: the action watches `context.signal` itself, and may end in another way
 */
export function acts<Args extends unknown[], Options extends OptionValues>(
  context: CommandContext,
  made: Command<Args, Options>,
  action: (options: Options & JsonOption, ...args: Args) => Promise<Result | ExitCode>,
  ctrlC: "ends" | "finishes" = "ends",
): AnyCommand {
  const { signal } = context;
  const untyped = made as unknown as AnyCommand;
  return untyped.action(async (...given) => {
    const count = untyped.registeredArguments.length;
    const options = given[count] as Options & JsonOption;
    try {
      const done = action(options, ...(given.slice(0, count) as Args));
      const result = await (ctrlC === "finishes" ? done : Promise.race([done, aborted(signal)]));
      if (typeof result !== "number") print(context, options, result);
      context.conclude(typeof result === "number" ? result : (result.code ?? exitCodes.ok));
    } catch (error) {
      // Work in progress fails because it was interrupted, which is not reported as a failure.
      if (!signal.aborted) throw error;
      throw new Failure("interrupted", { code: "interrupted", exitCode: exitCodes.interrupted });
    }
  });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(new Error("interrupted"));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

function examplesText(examples: readonly string[]): string {
  return `\nExample${examples.length > 1 ? "s" : ""}:\n${examples.map((example) => `  $ ${example}`).join("\n")}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

export function codeLines(codes: NonNullable<CommandDescription["exitCodes"]>): string[] {
  return Object.entries(codes).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
}

export type ConfirmOption = {
  readonly yes?: boolean | undefined;
};

/** For a command whose action cannot be taken back: it shows what it will do, and asks. */
export function withConfirmation<Args extends unknown[], Options extends OptionValues>(
  made: Command<Args, Options>,
  description = "do it without asking",
): Command<Args, Options & ConfirmOption> {
  return made.option("--yes", description) as unknown as Command<Args, Options & ConfirmOption>;
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
