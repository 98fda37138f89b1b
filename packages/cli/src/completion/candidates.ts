import type { Argument, Command, Option } from "commander";
import { defaultOf } from "../shell/command.ts";

/** A word that may come next, and its meaning in one line; empty if it has none. */
export interface Candidate {
  readonly value: string;
  readonly description: string;
}

/** The values of an option or argument by its placeholder, such as `partner`; undefined: there are none to look up. */
export type LookUp = (placeholder: string) => Promise<readonly Candidate[]> | undefined;

/**
 * The possible values of the last word; the words before it are what was typed after `paybell`. None, if any value is
 * possible: then the shell completes the names of files.
 */
export async function candidates(root: Command, words: readonly string[], lookUp: LookUp): Promise<Candidate[]> {
  const current = words.at(-1) ?? "";
  const { command, operands, option } = read(root, words.slice(0, -1));
  const [, flag, value = ""] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  if (flag !== undefined) return valuesOf(lookUp, optionNamed(command, flag), value, `${flag}=`);
  if (current.startsWith("-")) return starting(current, optionsOf(command));
  if (option !== undefined) return valuesOf(lookUp, option, current);
  const argument = command.registeredArguments[operands] ?? command.registeredArguments.findLast((one) => one.variadic);
  const named = [...(operands === 0 ? subcommandsOf(command) : []), ...(await choicesOf(lookUp, argument))];
  // A command that takes no further word has only options.
  return starting(current, named.length === 0 && argument === undefined ? optionsOf(command) : named);
}

interface Position {
  readonly command: Command;
  /** Words that are neither options nor names of commands. */
  readonly operands: number;
  /** Its value comes next. */
  readonly option: Option | undefined;
}

function read(root: Command, words: readonly string[]): Position {
  let command = root;
  let operands = 0;
  let option: Option | undefined;
  for (const word of words) {
    // bash makes a word of it.
    if (word === "=") continue;
    if (word.startsWith("--") && word.includes("=")) option = undefined;
    else if (word.startsWith("-") && word !== "-") option = optionNamed(command, word);
    else if (option !== undefined) option = option.variadic ? option : undefined;
    else {
      const named = operands === 0 ? command.commands.find((one) => one.name() === word) : undefined;
      operands += named === undefined ? 1 : 0;
      command = named ?? (operands === 1 ? defaultOf(command) : undefined) ?? command;
    }
  }
  return { command, operands, option };
}

/** An option that takes a value. */
function optionNamed(command: Command, flag: string): Option | undefined {
  return command.options.find(({ short, long, required, optional }) => {
    return (short === flag || long === flag) && (required || optional);
  });
}

function optionsOf(command: Command): Candidate[] {
  const all = command.createHelp().visibleOptions(command);
  return all.flatMap(({ long, description }) => (long == null ? [] : [{ value: long, description }]));
}

function subcommandsOf(command: Command): Candidate[] {
  const all = command.createHelp().visibleCommands(command);
  return all.map((one) => ({ value: one.name(), description: one.summary() || one.description() }));
}

async function choicesOf(lookUp: LookUp, of: Argument | Option | undefined): Promise<readonly Candidate[]> {
  if (of?.argChoices !== undefined) return of.argChoices.map((value) => ({ value, description: "" }));
  const placeholder = of !== undefined && "flags" in of ? /<([a-z]+)>$/.exec(of.flags)?.[1] : of?.name();
  return (placeholder === undefined ? undefined : await lookUp(placeholder)) ?? [];
}

async function valuesOf(lookUp: LookUp, option: Option | undefined, typed: string, before = ""): Promise<Candidate[]> {
  // In bash the word after `--option` may be the `=` itself.
  const all = starting(typed === "=" ? "" : typed, await choicesOf(lookUp, option));
  return all.map(({ value, description }) => ({ value: `${before}${value}`, description }));
}

function starting(typed: string, all: readonly Candidate[]): Candidate[] {
  return all.filter(({ value }) => value.startsWith(typed));
}
