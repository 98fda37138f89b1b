import type { Commander, RanCommand } from "./commands.ts";

/** One thing that can be made to happen, with all it needs first. */
export interface Scenario {
  readonly name: string;
  readonly summary: string;
  run(commander: Commander, code: string): Promise<RanCommand>;
}

const approved = "tok_approve";

export const scenarios: readonly Scenario[] = [
  {
    name: "sale",
    summary: "a Sale that is approved",
    run: (commander) => commander.pay("SALE", approved),
  },
  {
    name: "decline",
    summary: "a Sale that the bank declines, with --code (05)",
    run: (commander, code) => commander.pay("SALE", `tok_decline_${code}`),
  },
  {
    name: "timeout",
    summary: "a Sale that the bank never answers: ERROR 68",
    run: (commander) => commander.pay("SALE", "tok_timeout"),
  },
  {
    name: "late",
    summary: "a Sale that the bank approves too late: ERROR 68",
    run: (commander) => commander.pay("SALE", "tok_late"),
  },
  {
    name: "void",
    summary: "a Sale, and its Void",
    run: async (commander) => commander.void(await commander.pay("SALE", approved)),
  },
  {
    name: "preauth",
    summary: "a PreAuth that is approved",
    run: (commander) => commander.pay("PREAUTH", approved),
  },
  {
    name: "preauth-complete",
    summary: "a PreAuth, and its PreAuth-Complete",
    run: async (commander) => commander.complete(await commander.pay("PREAUTH", approved)),
  },
  {
    name: "preauth-void",
    summary: "a PreAuth, and its Void: transaction_type CANCEL",
    run: async (commander) => commander.void(await commander.pay("PREAUTH", approved)),
  },
  {
    name: "settlement",
    summary: "two Sales, the Void of one, and the terminal's Settlement",
    async run(commander) {
      await commander.pay("SALE", approved);
      await commander.void(await commander.pay("SALE", approved));
      return commander.settle();
    },
  },
  {
    name: "reversal",
    summary: "a Sale, and its Reversal, which has no IPN",
    run: async (commander) => commander.reverse(await commander.pay("SALE", approved)),
  },
  {
    name: "logon",
    summary: "a Logon, which has no IPN",
    run: (commander) => commander.system("LOGON"),
  },
  {
    name: "batch-upload",
    summary: "a Batch Upload, which has no IPN",
    run: (commander) => commander.system("BATCH_UPLOAD"),
  },
];
