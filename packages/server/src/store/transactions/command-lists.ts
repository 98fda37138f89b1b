import type { Command } from "@paybell/contract";

/** What follows IN: the names are ours, and hold no quote. */
export function commandsInSql(commands: readonly Command[]): string {
  return `(${commands.map((command) => `'${command}'`).join(", ")})`;
}

/** The commands that the settler runs. */
export const settlementCommands = commandsInSql(["SETTLEMENT", "BATCH_UPLOAD"]);

/** The command that a Void `t` voids; null of others. A switch may say that it voided a PreAuth which it has not reported. */
export const voidedCommand = `
  CASE WHEN t.command <> 'VOID' THEN NULL
    WHEN t.facts ->> 'voidsPreAuth' = 'true' THEN 'PREAUTH'
    ELSE (SELECT o.command FROM transactions o WHERE o.partner_id = t.partner_id AND o.id = t.original_id)
  END`;
