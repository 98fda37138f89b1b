import type { Command } from "@paybell/contract";

// Conditions that several statements share. `t` is the transaction.

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

/** Its Void succeeded. Until that is known, as with one in doubt, the transaction `t` stands. */
export const isVoided =
  "(t.successor_command IS NOT DISTINCT FROM 'VOID' AND t.successor_state IS NOT DISTINCT FROM 'done')";

/** An id of `t` that does not begin with its time: a switch assigned it. */
export const isUntimed = "get_byte(uuid_send(t.id), 6) >> 4 <> 7";
/** `t` completed later than its id says. The index transactions_slow has the same condition. */
export const isSlow = "t.completed_at - t.created_at > interval '10 minutes'";

/** For so long an answer that comes late can still be matched with its command, and the command's card is kept. */
export const answerable = "interval '2 days'";
