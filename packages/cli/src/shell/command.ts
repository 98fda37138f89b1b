import type { Readable, Writable } from "node:stream";
import { Command } from "commander";
import { type ExitCode, exitCodes, Failure } from "./failure.ts";

/** A stream that may be a terminal. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** Everything that a command may use of its machine: a test passes its own. */
export interface HostEnvironment {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** The requested output, and nothing else. */
  readonly stdout: Output;
  /** Errors, progress, and incidental messages. */
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Relative paths begin here. */
  readonly workingDirectory: string;
  readonly fetch: typeof fetch;
  /** Aborted at Ctrl-C; its reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** For the commands that run the service: they end by signals of their own. */
  readonly process: NodeJS.Process;
}

export interface CommandContext extends HostEnvironment {
  /** Sets the exit code, once everything is written. */
  conclude(code: ExitCode): void;
}

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

const descriptions = new WeakMap<Command, CommandDescription>();
const defaults = new WeakMap<Command, Command>();

/** The description of a command; undefined if it was not made by `command()`. */
export function describedOf(command: Command): CommandDescription | undefined {
  return descriptions.get(command);
}

/** The command that the word of a group alone runs. */
export function defaultOf(command: Command): Command | undefined {
  return defaults.get(command);
}

/** A command with its help, an example, and `--json`. Arguments, options and the action are added to what it is. */
export function command(name: string, described: CommandDescription): Command {
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
  return made;
}

/** Several commands under one word. @param whenUnnamed what the word alone runs; absent: the help */
export function group(name: string, summary: string, commands: readonly Command[], whenUnnamed?: Command): Command {
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
 * Wraps an action that resolves to its exit code. Ctrl-C ends it at once.
 *
 * @param ctrlC `finishes`: the action watches `context.signal` itself, and may end in another way
 */
export function ends<Args extends unknown[]>(
  context: CommandContext,
  action: (...args: Args) => Promise<ExitCode>,
  ctrlC: "ends" | "finishes" = "ends",
): (...args: Args) => Promise<void> {
  const { signal } = context;
  return async (...args) => {
    try {
      const done = action(...args);
      const code = await (ctrlC === "finishes" ? done : Promise.race([done, aborted(signal)]));
      context.conclude(code);
    } catch (error) {
      // Work in progress fails because it was interrupted, which is not reported as a failure.
      if (!signal.aborted) throw error;
      throw new Failure("interrupted", { code: "interrupted", exitCode: exitCodes.interrupted });
    }
  };
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

function codeLines(codes: NonNullable<CommandDescription["exitCodes"]>): string[] {
  return Object.entries(codes).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
}
