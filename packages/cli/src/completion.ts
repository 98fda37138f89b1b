import { Argument, type Option } from "@commander-js/extra-typings";
import { readClientSettings } from "./client/connection.ts";
import { type AnyCommand, acts, command, defaultOf } from "./shell/command.ts";
import type { CommandContext } from "./shell/context.ts";
import { exitCodes } from "./shell/failure.ts";

export function completionCommand(context: CommandContext): AnyCommand {
  const made = command("completion", {
    summary: "print a script with which the shell completes commands and options",
    description:
      "bash: add `source <(paybell completion bash)` to .bashrc. zsh: add `source <(paybell completion zsh)` to " +
      ".zshrc, after compinit. fish: add `paybell completion fish | source` to config.fish.",
    examples: ["paybell completion bash", "paybell completion zsh", "paybell completion fish"],
    json: false,
  }).addArgument(new Argument("<shell>", "the shell that reads it").choices(["bash", "zsh", "fish"] as const));
  return acts(context, made, async (_, shell) => {
    context.stdout.write(scripts[shell]);
    return exitCodes.ok;
  });
}

/** Hidden: the scripts call it. */
export function completeCommand(context: CommandContext, root: AnyCommand): AnyCommand {
  const made = command("complete", {
    summary: "print the possible completions, for the script of `paybell completion`",
    examples: ["paybell complete -- notifications l"],
    json: false,
  }).argument("[words...]");
  return acts(context, made, async (_, words) => {
    const all = await candidates(root, words, (placeholder) => {
      const path = lists[placeholder];
      return path === undefined ? undefined : namesAt(context, path);
    });
    for (const { value, description } of all) context.stdout.write(`${value}\t${oneLine(description)}\n`);
    return exitCodes.ok;
  });
}

/** The lists of named things, by the placeholder of their options and arguments. */
const lists: Readonly<Record<string, string>> = {
  partner: "/operator/v1/partners?limit=500",
  operator: "/operator/v1/operators",
  acquirer: "/operator/v1/acquirers",
};

interface Item {
  readonly id?: string;
  readonly name?: string;
  readonly settings?: { readonly name: string };
  readonly revokedAt?: string | null;
}

/**
 * Names as candidates; the id, described by the name, where several have the name, or a shell treats a character of it
 * as more than a letter. None if no answer comes while a person waits.
 */
async function namesAt(context: CommandContext, path: string): Promise<Candidate[]> {
  try {
    const operator = (await readClientSettings(context)).operator();
    const { items } = await operator.get<{ items: readonly Item[] }>(path, {}, { timeoutMs: 2_000 });
    const named = items.filter(({ revokedAt = null }) => revokedAt === null);
    const names = named.map(({ name, settings }) => name ?? settings?.name ?? "");
    return named.map(({ id = "" }, at) => {
      const name = names[at] ?? "";
      const isPlain = /^\w[\w.-]*$/.test(name) && names.indexOf(name) === names.lastIndexOf(name);
      return isPlain ? { value: name, description: id } : { value: id, description: name };
    });
  } catch {
    return [];
  }
}

/** A line of its own would be a candidate, and a control character could command the terminal. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ");
}

/** A word that may come next, and its meaning in one line; empty if it has none. */
interface Candidate {
  readonly value: string;
  readonly description: string;
}

/** The values of an option or argument by its placeholder, such as `partner`; undefined: there are none to look up. */
type LookUp = (placeholder: string) => Promise<readonly Candidate[]> | undefined;

/**
 * The possible values of the last word; the words before it are what was typed after `paybell`. None, if any value is
 * possible: then the shell completes the names of files.
 */
export async function candidates(root: AnyCommand, words: readonly string[], lookUp: LookUp): Promise<Candidate[]> {
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
  readonly command: AnyCommand;
  /** Words that are neither options nor names of commands. */
  readonly operands: number;
  /** Its value comes next. */
  readonly option: Option | undefined;
}

function read(root: AnyCommand, words: readonly string[]): Position {
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
function optionNamed(command: AnyCommand, flag: string): Option | undefined {
  return command.options.find(({ short, long, required, optional }) => {
    return (short === flag || long === flag) && (required || optional);
  });
}

function optionsOf(command: AnyCommand): Candidate[] {
  const all = command.createHelp().visibleOptions(command);
  return all.flatMap(({ long, description }) => (long == null ? [] : [{ value: long, description }]));
}

function subcommandsOf(command: AnyCommand): Candidate[] {
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

/**
 * A script for each shell. It calls `paybell complete -- <words>` and reads a line for each candidate: the value, a
 * tab, the description. No script evaluates a description or a word of the command line: both may hold backticks.
 */
const scripts: Readonly<Record<"bash" | "zsh" | "fish", string>> = {
  // bash shows no descriptions, so it reads none. `compgen -W` is not used: it evaluates the words that it gets.
  bash: `# The completion of paybell in bash.
_paybell() {
  local value description
  COMPREPLY=()
  while IFS=$'\\t' read -r value description; do
    COMPREPLY+=("$value")
  done < <(paybell complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _paybell paybell
`,
  zsh: `# The completion of paybell in zsh, after compinit.
_paybell() {
  local value description
  local -a candidates
  while IFS=$'\\t' read -r value description; do
    candidates+=("\${value//:/\\\\:}:$description")
  done < <(paybell complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then
    _describe -t candidates paybell candidates
  else
    _files
  fi
}
compdef _paybell paybell
`,
  fish: `# The completion of paybell in fish.
function __paybell_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l candidates (paybell complete -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\\n' $candidates
    else
        __fish_complete_path "$current"
    end
end
complete -c paybell -e
complete -c paybell -f -a '(__paybell_candidates)'
`,
};
