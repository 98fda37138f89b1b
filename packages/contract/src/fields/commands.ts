/** Commands of one card: their IPN is the card's. */
export const cardCommands = ["SALE", "VOID", "PREAUTH", "PREAUTH_COMPLETE", "REFUND"] as const;
export type CardCommand = (typeof cardCommands)[number];

/** Commands that charge the card: a batch counts them as sales, and only they can be refunded. */
export const chargingCommands = ["SALE", "PREAUTH_COMPLETE"] as const satisfies readonly CardCommand[];
export type ChargingCommand = (typeof chargingCommands)[number];

/** Commands that a VOID or a REVERSAL may refer to. */
export const voidableCommands = ["SALE", "PREAUTH", "PREAUTH_COMPLETE"] as const satisfies readonly CardCommand[];

/** Commands whose completion is notified: section 1, rule 1. A REFUND is notified if its partner agreed to it. */
export const notifiedCommands = [...cardCommands, "SETTLEMENT"] as const;
export type NotifiedCommand = (typeof notifiedCommands)[number];

/** Commands that are never notified: section 1, rule 2. */
export const systemCommands = ["LOGON", "REVERSAL", "BATCH_UPLOAD"] as const;
export type SystemCommand = (typeof systemCommands)[number];

/** Every command the service processes: section 1, and REFUND, which the specification does not name. */
export const commands = [...notifiedCommands, ...systemCommands] as const;
export type Command = (typeof commands)[number];

export function isCharging(command: Command): command is ChargingCommand {
  return chargingCommands.some((one) => one === command);
}

export function isVoidable(command: Command): boolean {
  return voidableCommands.some((one) => one === command);
}
