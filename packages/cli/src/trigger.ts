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
    const { amount, currency, mid, merchantTransId, callBackUrl } = options;
    // A batch has one currency, so each currency has its own terminal, other than those of the documents' examples.
    const tid = options.tid ?? `TRIG${currency.slice(0, 4)}`;
    const fields = { amount, currency, tid, mid, merchantTransId, ...definedOf({ callBackUrl }) };
    const commander = new Commander(context, api, fields);
    if (scenario.name === "timeout" || scenario.name === "late") {
      context.stderr.write("The bank does not answer in time: this takes half a minute.\n");
    }
    const last = await scenario.run(commander, options.code);
    const notification = last.notification && (await delivered(context, api, last.notification.id));
    return {
      value: { transaction: last, before: commander.ran.slice(0, -1), notification },
      lines: linesOf(commander.ran, notification),
      code: isAsExpected(what, last) ? exitCodes.ok : exitCodes.negative,
    };
  });
}

/** Whether the scenario had its expected result, such as a declined or approved Sale. */
function isAsExpected(what: string, { status }: RanCommand): boolean {
  const fails = what === "decline" || what === "timeout" || what === "late";
  return status === (fails ? "ERROR" : "SUCCESS");
}

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

/** The common fields of the commands of one run. */
interface ScenarioFields {
  readonly amount: string;
  readonly currency: string;
  readonly tid: string;
  readonly mid: string;
  readonly merchantTransId: string;
  readonly callBackUrl?: string;
}

const askEveryMs = 250;

/** Runs commands as a partner does, each with a reqId of its own, and waits for their outcome. */
class Commander {
  readonly #context: CommandContext;
  readonly #api: Api;
  readonly #fields: ScenarioFields;
  readonly ran: RanCommand[] = [];

  constructor(context: CommandContext, api: Api, fields: ScenarioFields) {
    this.#context = context;
    this.#api = api;
    this.#fields = fields;
  }

  /** A Sale or PreAuth with a test card. */
  pay(command: "SALE" | "PREAUTH", token: string): Promise<RanCommand> {
    const card = { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
    return this.#run({ command, ...this.#fields, card });
  }

  void(original: RanCommand): Promise<RanCommand> {
    return this.#run({ command: "VOID", transactionId: original.id, ...this.#callBackUrl() });
  }

  complete(original: RanCommand): Promise<RanCommand> {
    const { amount } = this.#fields;
    return this.#run({ command: "PREAUTH_COMPLETE", transactionId: original.id, amount, ...this.#callBackUrl() });
  }

  reverse(original: RanCommand): Promise<RanCommand> {
    return this.#run({ command: "REVERSAL", transactionId: original.id });
  }

  settle(): Promise<RanCommand> {
    return this.#run({ command: "SETTLEMENT", ...this.#terminal(), ...this.#callBackUrl() });
  }

  system(command: "LOGON" | "BATCH_UPLOAD"): Promise<RanCommand> {
    return this.#run({ command, ...this.#terminal() });
  }

  #terminal() {
    const { tid, mid } = this.#fields;
    return { tid, mid };
  }

  #callBackUrl() {
    const { callBackUrl } = this.#fields;
    return definedOf({ callBackUrl });
  }

  async #run(body: Readonly<Record<string, unknown>>): Promise<RanCommand> {
    const answered = await this.#api.post<RanCommand>("/v1/commands", { reqId: randomUUID(), ...body });
    const transaction = await this.#outcome(answered);
    this.ran.push(transaction);
    return transaction;
  }

  /** A command whose outcome is not known in time is answered INIT. */
  async #outcome(answered: RanCommand): Promise<RanCommand> {
    let transaction = answered;
    while (transaction.status === "INIT") {
      await sleep(askEveryMs, undefined, { signal: this.#context.signal });
      transaction = await this.#api.get<RanCommand>(`/v1/transactions/${answered.id}`);
    }
    return transaction;
  }
}
