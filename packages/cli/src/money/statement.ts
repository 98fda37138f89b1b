import type { BatchPage, SettlementPage, Statement, StatementLine, StatementTotals } from "@paybell/partner/client";
import { type Command, Option } from "commander";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../client/connection.ts";
import { readPages } from "../client/lists.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { exitCodes } from "../shell/failure.ts";
import { agoReader, readDay, wholeNumber } from "../shell/options.ts";
import { fieldColumns, type JsonOption, listed, print, type TableColumn } from "../shell/output.ts";

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
    .argument("<date>", "such as 2026-11-21", readDay)
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
      const { lines, totals, isComplete } = statement;
      const end = isComplete ? [] : ["The day is not over: lines may follow."];
      print(context, options, statement, [...listed(lines, lineColumns), "", ...listed(totals, totalColumns), ...end]);
      return exitCodes.ok;
    }),
  );
}

const lineColumns: readonly TableColumn<StatementLine>[] = [
  ["at", ({ at }) => at],
  ["command", (one) => (one.kind === "reversal" ? `${one.command} reversed` : one.command)],
  ...fieldColumns<StatementLine>("status", "currency", "movement"),
  ["reference", ({ merchantTransId }) => merchantTransId],
  ["id", ({ id }) => id],
  ["notification", ({ notificationId }) => notificationId],
];

const totalColumns: readonly TableColumn<StatementTotals>[] = [
  ["currency", ({ currency }) => currency],
  ["net", ({ netAmount }) => netAmount],
  ["sold", (one) => `${one.saleQuantity} for ${one.saleTotalAmount}`],
  ["voided", (one) => `${one.voidQuantity} for ${one.voidTotalAmount}`],
  ["refunded", (one) => `${one.refundQuantity} for ${one.refundTotalAmount}`],
  ["reversed", (one) => `${one.reversedQuantity} for ${one.reversedTotalAmount}`],
];

type Batch = BatchPage["items"][number];
type Settlement = SettlementPage["items"][number];

function batchesCommand(context: CommandContext): Command {
  return listing<Batch>(context, "batches", "list your settled batches, the latest first", [
    ...fieldColumns<Batch>("closedAt", "tid", "batchNo", "currency", "netAmount"),
    ["sold", ({ saleQuantity }) => saleQuantity],
    ["voided", ({ voidQuantity }) => voidQuantity],
    ["refunded", ({ refundQuantity }) => refundQuantity],
    ["id", ({ id }) => id],
  ]);
}

function settlementsCommand(context: CommandContext): Command {
  return listing<Settlement>(context, "settlements", "list your settlements, the newest first", [
    ...fieldColumns<Settlement>("createdAt", "status", "isoResponseCode", "tid", "batchNo", "currency"),
    ["sold", ({ saleTotalAmount }) => saleTotalAmount],
    ["voided", ({ voidTotalAmount }) => voidTotalAmount],
    ["id", ({ id }) => id],
  ]);
}

function listing<Item>(
  context: CommandContext,
  name: string,
  summary: string,
  columns: readonly TableColumn<Item>[],
): Command {
  const made = command(name, { summary, examples: [`paybell statement ${name} --tid T0000001 --from 2026-11-01`] })
    .option("--tid <tid>", "of one terminal")
    .option("--from <time>", "then or later: 2d ago, a day, or a time with its zone", agoReader(context))
    .option("--to <time>", "earlier: 2d ago, a day, which is included, or a time with its zone", agoReader(context))
    .addOption(new Option("--limit <n>", "at most this many").default(50).argParser(wholeNumber(1, 9_999_999)));
  return withAccessOptions(made).action(
    ends(context, async ({ limit, ...options }: ListOptions) => {
      const { tid, from, to } = options;
      const api = (await readClientSettings(context, options)).partner();
      const items = await readPages<Item>(api, `/v1/${name}`, { tid, from, to }, { itemsMax: limit });
      print(context, options, { items }, listed(items, columns));
      return exitCodes.ok;
    }),
  );
}
