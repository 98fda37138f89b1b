import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import { type CommandDescription, describe } from "../command.ts";

/** Adds `completion`, which prints a shell's script, and the hidden `complete` that the script calls. */
export function addCompletion(root: Command): void {
  const known = new Set(root.commands);
  root.commandsGroup("Your shell:");
  tab(root, { completionCommandName: "completion" });
  for (const added of root.commands.filter((one) => !known.has(one))) {
    const described = descriptions[added.name()];
    if (described !== undefined) describe(added, described);
  }
}

const descriptions: Readonly<Record<string, CommandDescription>> = {
  completion: {
    summary: "print a script with which the shell completes commands and options",
    description:
      "bash: add `source <(paybell completion bash)` to .bashrc. zsh: add `source <(paybell completion zsh)` to " +
      ".zshrc. fish: add `paybell completion fish | source` to config.fish.",
    examples: ["paybell completion bash", "paybell completion zsh", "paybell completion fish"],
    json: false,
  },
  complete: {
    summary: "print the possible completions, for the script of `paybell completion`",
    examples: ["paybell complete -- notifications l"],
    json: false,
  },
};
