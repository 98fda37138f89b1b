import { Argument, type Command } from "commander";
import { command } from "../command.ts";
import { candidates } from "../completion/candidates.ts";
import { scripts } from "../completion/scripts.ts";
import type { CommandContext } from "../context.ts";

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
export function completeCommand({ stdout }: CommandContext, root: Command): Command {
  return command("complete", {
    summary: "print the possible completions, for the script of `paybell completion`",
    examples: ["paybell complete -- notifications l"],
    json: false,
  })
    .argument("[words...]")
    .action((words: readonly string[]) => {
      for (const { value, description } of candidates(root, words)) {
        stdout.write(`${value}\t${oneLine(description)}\n`);
      }
    });
}

/** A line of its own would be a candidate, and a control character could command the terminal. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ");
}
