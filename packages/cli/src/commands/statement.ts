import type { BatchPage, SettlementPage, Statement } from "@paybell/partner/client";
import { type Command, InvalidArgumentError, Option } from "commander";
import { command, ends, group } from "../command.ts";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { wholeNumber } from "../numbers.ts";
import { type JsonOption, listed, print } from "../output.ts";
import { printable } from "../printable.ts";
import { readPages } from "../read-pages.ts";

interface StatementOptions extends AccessOptions, JsonOption {
  readonly csv?: true;
}

interface ListOptions extends AccessOptions, JsonOption {
  readonly tid?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
}

/** The partner's own books. The operator has `paybell batch` and `paybell settlement`, of every partner. */
export function statementCommand(context: CommandContext): Command {
  return group("statement", "your books: the statement of a day, settled batches, settlements", [
    dayCommand(context),
    batchesCommand(context),
    settlementsCommand(context),
  ]);
}

function dayCommand(context: CommandContext): Command {
  const made = command("day", {
    summary: "print the statement of a day: each transaction with its IPN, and totals by currency",
    description:
      "The day is one of your time zone. What changes later is a line of its own day: a Void, a Refund, a Reversal.",
    examples: ["paybell statement day 2026-11-21", "paybell statement day 2026-11-21 --csv > 2026-11-21.csv"],
  })
    .argument("<date>", "such as 2026-11-21", readDate)
    .option("--csv", "as CSV, as the service writes it");
  return withAccessOptions(made).action(
    ends(context, async (date: string, options: StatementOptions) => {
      const api = (await readClientSettings(context, options)).partner();
      const path = `/v1/statements/${date}`;
      if (options.csv === true) {
        for await (const chunk of await api.stream(path, {}, { accept: "text/csv" })) context.stdout.write(chunk);
        return exitCodes.ok;
      }
      const statement = await api.get<Statement>(path);
      const lines = statement.lines.map((line) => [
        line.at,
        line.kind === "reversal" ? `${line.command} reversed` : line.command,
        line.status,
        line.currency,
        line.movement,
        printable(line.merchantTransId),
        line.id,
        line.notificationId ?? "",
      ]);
      const totals = statement.totals.map((one) => [
        `${one.currency} ${one.netAmount}`,
        `${one.saleQuantity} sold ${one.saleTotalAmount}`,
        `${one.voidQuantity} voided ${one.voidTotalAmount}`,
        `${one.refundQuantity} refunded ${one.refundTotalAmount}`,
        `${one.reversedQuantity} reversed ${one.reversedTotalAmount}`,
      ]);
      const end = statement.isComplete ? [] : ["The day is not over: lines may follow."];
      print(context, options, statement, [...listed(lines), "", ...listed(totals), ...end]);
      return exitCodes.ok;
    }),
  );
}

function batchesCommand(context: CommandContext): Command {
  const made = listing("batches", "list your settled batches, the latest first");
  return withAccessOptions(made).action(
    ends(context, async ({ limit, ...options }: ListOptions) => {
      const { tid, from, to } = options;
      const api = (await readClientSettings(context, options)).partner();
      type Item = BatchPage["items"][number];
      const items = await readPages<Item>(api, "/v1/batches", { tid, from, to }, { itemsMax: limit });
      const rows = items.map((one) => [
        one.closedAt,
        one.tid,
        one.batchNo,
        one.currency ?? "",
        one.netAmount,
        `${one.saleQuantity} sold`,
        `${one.voidQuantity} voided`,
        `${one.refundQuantity} refunded`,
        one.id,
      ]);
      print(context, options, { items }, listed(rows));
      return exitCodes.ok;
    }),
  );
}

function settlementsCommand(context: CommandContext): Command {
  const made = listing("settlements", "list your settlements, the newest first");
  return withAccessOptions(made).action(
    ends(context, async ({ limit, ...options }: ListOptions) => {
      const { tid, from, to } = options;
      const api = (await readClientSettings(context, options)).partner();
      type Item = SettlementPage["items"][number];
      const items = await readPages<Item>(api, "/v1/settlements", { tid, from, to }, { itemsMax: limit });
      const rows = items.map((one) => [
        one.createdAt,
        one.status,
        one.isoResponseCode,
        one.tid,
        one.batchNo,
        one.currency ?? "",
        one.saleTotalAmount,
        one.voidTotalAmount,
        one.id,
      ]);
      print(context, options, { items }, listed(rows));
      return exitCodes.ok;
    }),
  );
}

function listing(name: string, summary: string): Command {
  return command(name, { summary, examples: [`paybell statement ${name} --tid T0000001 --from 2026-11-01`] })
    .option("--tid <tid>", "of one terminal")
    .option("--from <time>", "then or later: a day, or a time with its zone")
    .option("--to <time>", "earlier: a day, which is included, or a time with its zone")
    .addOption(new Option("--limit <n>", "at most this many").default(50).argParser(wholeNumber(1, 9_999_999)));
}

function readDate(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError("It is a day as 2026-11-21.");
}
