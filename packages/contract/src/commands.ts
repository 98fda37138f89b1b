/** Every command the service processes: section 1, and REFUND, which the specification does not name. */
export const commands = [
  "SALE",
  "VOID",
  "PREAUTH",
  "PREAUTH_COMPLETE",
  "REFUND",
  "SETTLEMENT",
  "LOGON",
  "REVERSAL",
  "BATCH_UPLOAD",
] as const;
export type Command = (typeof commands)[number];

/** Commands whose completion is notified: section 1, rule 1. A REFUND is notified if its partner agreed to it. */
export const notifiedCommands = [
  "SALE",
  "VOID",
  "PREAUTH",
  "PREAUTH_COMPLETE",
  "REFUND",
  "SETTLEMENT",
] as const satisfies readonly Command[];
export type NotifiedCommand = (typeof notifiedCommands)[number];

/** Commands that are never notified: section 1, rule 2. */
export const systemCommands = ["LOGON", "REVERSAL", "BATCH_UPLOAD"] as const satisfies readonly Command[];
export type SystemCommand = (typeof systemCommands)[number];
