import { Argument, type Command } from "commander";
import { readClientSettings } from "../client/connection.ts";
import { type CommandContext, command } from "../shell/command.ts";
import { type Candidate, candidates } from "./candidates.ts";
import { scripts } from "./scripts.ts";

export function completionCommand({ stdout }: CommandContext): Command {
  return command("completion", {
    summary: "print a script with which the shell completes commands and options",
    description:
      "bash: add `source <(paybell completion bash)` to .bashrc. zsh: add `source <(paybell completion zsh)` to " +
      ".zshrc, after compinit. fish: add `paybell completion fish | source` to config.fish.",
    examples: ["paybell completion bash", "paybell completion zsh", "paybell completion fish"],
    json: false,
  })
    .addArgument(new Argument("<shell>", "the shell that reads it").choices(Object.keys(scripts)))
    .action((shell: keyof typeof scripts) => void stdout.write(scripts[shell]));
}

/** Hidden: the scripts call it. */
export function completeCommand(context: CommandContext, root: Command): Command {
  return command("complete", {
    summary: "print the possible completions, for the script of `paybell completion`",
    examples: ["paybell complete -- notifications l"],
    json: false,
  })
    .argument("[words...]")
    .action(async (words: readonly string[]) => {
      const all = await candidates(root, words, (placeholder) => {
        const path = lists[placeholder];
        return path === undefined ? undefined : namesAt(context, path);
      });
      for (const { value, description } of all) context.stdout.write(`${value}\t${oneLine(description)}\n`);
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
