import { setTimeout as sleep } from "node:timers/promises";
import type { NotificationDetail } from "@paybell/partner/client";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Api } from "../client/api.ts";
import { type AccessOptions, isLoopback, readClientSettings, withAccessOptions } from "../client/connection.ts";
import { attemptLines, statusText } from "../notifications/detail.ts";
import { type CommandContext, command, ends } from "../shell/command.ts";
import { type ExitCode, exitCodes, Failure } from "../shell/failure.ts";
import { columns, type JsonOption, print } from "../shell/output.ts";
import { Commander, lookEveryMs, type RanCommand, type ScenarioFields } from "./commands.ts";
import { scenarios } from "./scenarios.ts";

interface TriggerOptions extends AccessOptions, JsonOption {
  readonly amount: string;
  readonly currency: string;
  readonly tid?: string;
  readonly mid: string;
  readonly merchantTransId: string;
  readonly callBackUrl?: string;
  readonly code: string;
  readonly anywhere?: boolean;
}

const list = columns(scenarios.map(({ name, summary }) => [`  ${name}`, summary]));

export function triggerCommand(context: CommandContext): Command {
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
  return withAccessOptions(made).action(
    ends(context, (what: string, options: TriggerOptions) => trigger(context, what, options)),
  );
}

async function trigger(context: CommandContext, what: string, options: TriggerOptions): Promise<ExitCode> {
  const happening = scenarios.find(({ name }) => name === what);
  if (happening === undefined) {
    throw new Failure(`there is no scenario ${JSON.stringify(what)}.`, { code: "unknown_happening", lines: list });
  }
  const connection = await readClientSettings(context, options);
  const api = connection.partner();
  if (!isLoopback(new URL(api.baseUrl)) && options.anywhere !== true) {
    throw new Failure(`${api.baseUrl} is not on this machine, and so not a sandbox.`, {
      code: "not_a_sandbox",
      remedy: "Use --anywhere if you know that its acquirer is simulated.",
    });
  }
  const commander = new Commander(context, api, scenarioFieldsOf(options));
  if (happening.name === "timeout" || happening.name === "late") {
    context.stderr.write("The bank does not answer in time: this takes half a minute.\n");
  }
  const last = await happening.run(commander, options.code);
  const notification = last.notification && (await delivered(context, api, last.notification.id));
  const value = { transaction: last, before: commander.ran.slice(0, -1), notification };
  print(context, options, value, linesOf(commander.ran, notification));
  return asItShould(what, last) ? exitCodes.ok : exitCodes.negative;
}

function scenarioFieldsOf({
  amount,
  currency,
  tid,
  mid,
  merchantTransId,
  callBackUrl,
}: TriggerOptions): ScenarioFields {
  return {
    amount,
    currency,
    // A batch has one currency, so each currency has its own terminal, other than those of the documents' examples.
    tid: tid ?? `TRIG${currency.slice(0, 4)}`,
    mid,
    merchantTransId,
    ...(callBackUrl !== undefined && { callBackUrl }),
  };
}

/** Whether the scenario had its expected result, such as a declined or approved Sale. */
function asItShould(what: string, { status }: RanCommand): boolean {
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
    await sleep(lookEveryMs, undefined, { signal: context.signal });
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
