import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { NotificationDetail } from "@paybell/partner/client";
import type { Api } from "./client/api.ts";
import { calls, isLoopback } from "./client/connection.ts";
import { definedOf } from "./client/credentials.ts";
import { attemptLines, statusText } from "./notifications/notifications.ts";
import { type AnyCommand, command } from "./shell/command.ts";
import type { CommandContext } from "./shell/context.ts";
import { exitCodes, Failure } from "./shell/failure.ts";
import { columns } from "./shell/output.ts";

/** One thing that can be made to happen, with all it needs first: the last command is the one that it is about. */
export interface Scenario {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly MakeCommand[];
  /** The last command ends as ERROR. */
  readonly fails?: true;
}

/** Makes the body of a command. @param before the command that ran before it */
type MakeCommand = (options: ScenarioOptions, before: RanCommand | undefined) => object;

interface ScenarioOptions {
  readonly amount: string;
  readonly currency: string;
  readonly tid: string;
  readonly mid: string;
  readonly merchantTransId: string;
  readonly callBackUrl: string | undefined;
  /** With which a card is declined. */
  readonly code: string;
}

/** A Sale or PreAuth with a test card. */
function pay(command: "SALE" | "PREAUTH", token: string | ((code: string) => string) = "tok_approve"): MakeCommand {
  return ({ code, callBackUrl, ...fields }) => {
    const card = { number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
    const of = { ...card, token: typeof token === "string" ? token : token(code) };
    return { command, ...fields, ...definedOf({ callBackUrl }), card: of };
  };
}

const voids: MakeCommand = ({ callBackUrl }, before) => ({
  ...{ command: "VOID", transactionId: before?.id },
  ...definedOf({ callBackUrl }),
});
const completes: MakeCommand = ({ amount, callBackUrl }, before) => ({
  ...{ command: "PREAUTH_COMPLETE", transactionId: before?.id, amount },
  ...definedOf({ callBackUrl }),
});
const reverses: MakeCommand = (_, before) => ({ command: "REVERSAL", transactionId: before?.id });
const settles: MakeCommand = ({ tid, mid, callBackUrl }) => ({
  ...{ command: "SETTLEMENT", tid, mid },
  ...definedOf({ callBackUrl }),
});

function system(command: "LOGON" | "BATCH_UPLOAD"): MakeCommand {
  return ({ tid, mid }) => ({ command, tid, mid });
}

export const scenarios: readonly Scenario[] = [
  { name: "sale", summary: "a Sale that is approved", commands: [pay("SALE")] },
  {
    name: "decline",
    summary: "a Sale that the bank declines, with --code (05)",
    commands: [pay("SALE", (code) => `tok_decline_${code}`)],
    fails: true,
  },
  {
    name: "timeout",
    summary: "a Sale that the bank never answers: ERROR 68",
    commands: [pay("SALE", "tok_timeout")],
    fails: true,
  },
  {
    name: "late",
    summary: "a Sale that the bank approves too late: ERROR 68",
    commands: [pay("SALE", "tok_late")],
    fails: true,
  },
  { name: "void", summary: "a Sale, and its Void", commands: [pay("SALE"), voids] },
  { name: "preauth", summary: "a PreAuth that is approved", commands: [pay("PREAUTH")] },
  { name: "preauth-complete", summary: "a PreAuth, and its PreAuth-Complete", commands: [pay("PREAUTH"), completes] },
  {
    name: "preauth-void",
    summary: "a PreAuth, and its Void: transaction_type CANCEL",
    commands: [pay("PREAUTH"), voids],
  },
  {
    name: "settlement",
    summary: "two Sales, the Void of one, and the terminal's Settlement",
    commands: [pay("SALE"), pay("SALE"), voids, settles],
  },
  { name: "reversal", summary: "a Sale, and its Reversal, which has no IPN", commands: [pay("SALE"), reverses] },
  { name: "logon", summary: "a Logon, which has no IPN", commands: [system("LOGON")] },
  { name: "batch-upload", summary: "a Batch Upload, which has no IPN", commands: [system("BATCH_UPLOAD")] },
];

const list = columns(scenarios.map(({ name, summary }) => [`  ${name}`, summary]));

export function triggerCommand(context: CommandContext): AnyCommand {
  const made = command("trigger", {
    summary: "run a Sale, a Void, a Settlement … in the sandbox, and show where its IPN was sent",
    description: `It runs the commands with test cards, after those that they need:\n\n${list.join("\n")}`,
    examples: [
      "paybell trigger sale",
      "paybell trigger decline --code 51",
      "paybell trigger void --call-back-url http://127.0.0.1:3000/ipn",
    ],
    exitCodes: { 0: "the command ended as expected; its IPN may still be pending", 1: "it ended differently" },
  })
    .argument("<what>", "one of the list")
    .option("--amount <amount>", "in the major unit", "150000")
    .option("--currency <code>", "ISO 4217", "VND")
    .option("--tid <tid>", "terminal; default: one of its own for each currency")
    .option("--mid <mid>", "merchant", "M00000001")
    .option("--merchant-trans-id <id>", "the merchant's transaction code", "triggered")
    .option("--call-back-url <url>", "for these commands, in place of the registered one")
    .addOption(
      new Option("--code <code>", "with decline: the response code, ISO 8583 field 39")
        .default("05")
        .argParser(responseCode),
    )
    .option("--anywhere", "also on another machine, if its acquirer is simulated");
  return calls(context, made, async (settings, options, what) => {
    const scenario = scenarios.find(({ name }) => name === what);
    if (scenario === undefined) {
      throw new Failure(`there is no scenario ${JSON.stringify(what)}.`, { code: "unknown_happening", lines: list });
    }
    const api = settings.partner();
    if (!isLoopback(new URL(api.baseUrl)) && options.anywhere !== true) {
      throw new Failure(`${api.baseUrl} is not on this machine, and so not a sandbox.`, {
        code: "not_a_sandbox",
        remedy: "Use --anywhere if you know that its acquirer is simulated.",
      });
    }
    // A batch has one currency, so each currency has its own terminal, other than those of the documents' examples.
    const { amount, currency, mid, merchantTransId, callBackUrl, code } = options;
    const tid = options.tid ?? `TRIG${currency.slice(0, 4)}`;
    if (scenario.name === "timeout" || scenario.name === "late") {
      context.stderr.write("The bank does not answer in time: this takes half a minute.\n");
    }
    const ran: RanCommand[] = [];
    for (const make of scenario.commands) {
      const body = make({ amount, currency, tid, mid, merchantTransId, callBackUrl, code }, ran.at(-1));
      ran.push(await outcome(context, api, await api.post("/v1/commands", { reqId: randomUUID(), ...body })));
    }
    const last = ran.at(-1);
    const notification = last?.notification ? await delivered(context, api, last.notification.id) : null;
    return {
      value: { transaction: last, before: ran.slice(0, -1), notification },
      lines: linesOf(ran, notification),
      code: last?.status === (scenario.fails ? "ERROR" : "SUCCESS") ? exitCodes.ok : exitCodes.negative,
    };
  });
}

/** A command whose outcome is not known in time is answered INIT. */
async function outcome({ signal }: CommandContext, api: Api, answered: RanCommand): Promise<RanCommand> {
  let transaction = answered;
  while (transaction.status === "INIT") {
    await sleep(askEveryMs, undefined, { signal });
    transaction = await api.get<RanCommand>(`/v1/transactions/${answered.id}`);
  }
  return transaction;
}

const askEveryMs = 250;
const deliveryWaitMs = 5_000;

/** Its status after its first attempt, or after a few seconds without one. */
async function delivered(context: CommandContext, api: Api, id: string): Promise<NotificationDetail> {
  const deadlineMs = context.nowMs() + deliveryWaitMs;
  for (;;) {
    const detail = await api.get<NotificationDetail>(`/v1/notifications/${id}`);
    // Status and attempts are read one after the other: an attempt may be listed before it is counted.
    const { attempts, attemptsMade, state } = detail;
    const tried = attempts.length > 0 && attemptsMade >= attempts.length;
    if (tried || state !== "pending" || context.nowMs() > deadlineMs) return detail;
    await sleep(askEveryMs, undefined, { signal: context.signal });
  }
}

function linesOf(ran: readonly RanCommand[], notification: NotificationDetail | null): string[] {
  return [
    ...columns(ran.map(cellsOf)),
    "",
    ...(notification === null
      ? ["No IPN: this command is not notified (section 1, rule 2)"]
      : [
          `IPN ${notification.id}: ${statusText(notification)}`,
          ...notification.attempts.flatMap(attemptLines).map((line) => `  ${line}`),
        ]),
  ];
}

function cellsOf({ command: name, amount, currency, totalAmount, quantity, ...rest }: RanCommand): string[] {
  const { status, isoResponseCode = "", batchNo, refId = "", id } = rest;
  const money =
    totalAmount === undefined ? `${amount ?? ""} ${currency ?? ""}`.trim() : `${quantity} for ${totalAmount}`;
  const batch = batchNo === "" ? "" : `batch ${batchNo}`;
  return [name, money, `${status} ${isoResponseCode}`.trim(), batch, refId === "" ? "" : `refId ${refId}`, `id ${id}`];
}

/** 00 is not a decline. */
function responseCode(text: string): string {
  if (/^[0-9A-Z]{2}$/.test(text) && text !== "00") return text;
  throw new InvalidArgumentError("It must be two digits or capitals such as 51, and not 00.");
}

/** The fields of the answer of POST /v1/commands that are shown. */
interface RanCommand {
  readonly id: string;
  readonly command: string;
  readonly status: "INIT" | "SUCCESS" | "ERROR";
  readonly isoResponseCode?: string;
  readonly amount?: string;
  readonly currency?: string;
  readonly totalAmount?: string;
  readonly quantity?: string;
  readonly batchNo: string;
  readonly refId?: string;
  readonly reqId: string;
  readonly transaction_type: string;
  readonly notification: { readonly id: string; readonly state: string } | null;
}
