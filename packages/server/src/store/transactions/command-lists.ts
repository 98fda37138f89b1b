import type { Command } from "@paybell/contract";

/** What follows IN: the names are ours, and hold no quote. */
export function commandsInSql(commands: readonly Command[]): string {
  return `(${commands.map((command) => `'${command}'`).join(", ")})`;
}

/** The commands that the settler runs. */
export const settlementCommands = commandsInSql(["SETTLEMENT", "BATCH_UPLOAD"]);
