import type { BatchPage, SettlementPage, Statement, StatementLine, StatementTotals } from "@paybell/partner/client";
import { calls } from "../client/connection.ts";
import { readPages, untilLimit } from "../client/lists.ts";
import { type AnyCommand, command, group } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes } from "../shell/failure.ts";
import { agoReader, limitOption, readDay } from "../shell/options.ts";
import { fieldColumns, itemsOf, listed, type TableColumn } from "../shell/output.ts";

/** The partner's own books. The operator has `paybell batch` and `paybell settlement`, of every partner. */
export function statementCommand(context: CommandContext): AnyCommand {
  return group("statement", "your books: the statement of a day, settled batches, settlements", [
    dayCommand(context),
    listCommand<Batch>(context, "batches", "list your settled batches, the latest first", [
      ...fieldColumns<Batch>("closedAt", "tid", "batchNo", "currency", "netAmount"),
      ["sold", ({ saleQuantity }) => saleQuantity],
      ["voided", ({ voidQuantity }) => voidQuantity],
      ["refunded", ({ refundQuantity }) => refundQuantity],
      ["id", ({ id }) => id],
    ]),
    listCommand<Settlement>(context, "settlements", "list your settlements, the newest first", [
      ...fieldColumns<Settlement>("createdAt", "status", "isoResponseCode", "tid", "batchNo", "currency"),
      ["sold", ({ saleTotalAmount }) => saleTotalAmount],
      ["voided", ({ voidTotalAmount }) => voidTotalAmount],
      ["id", ({ id }) => id],
    ]),
  ]);
}

type Batch = BatchPage["items"][number];
type Settlement = SettlementPage["items"][number];

function dayCommand(context: CommandContext): AnyCommand {
  const made = command("day", {
    summary: "print the statement of a day: each transaction with its IPN, and totals by currency",
    description:
      "The day is one of your time zone. What changes later is a line of its own day: a Void, a Refund, a Reversal, " +
      "or that it stands although its Reversal was refused.",
    examples: ["paybell statement day 2026-11-21", "paybell statement day 2026-11-21 --csv > 2026-11-21.csv"],
  })
    .argument("<date>", "such as 2026-11-21", readDay)
    .option("--csv", "as CSV, as the service writes it");
  return calls(context, made, async (settings, { csv }, date) => {
    const api = settings.partner();
    const path = `/v1/statements/${date}`;
    if (csv === true) {
      for await (const chunk of await api.stream(path, {}, { accept: "text/csv" })) context.stdout.write(chunk);
      return exitCodes.ok;
    }
    const statement = await api.get<Statement>(path);
    const { lines, totals, isComplete } = statement;
    const end = isComplete ? [] : ["The day is not over: lines may follow."];
    return { value: statement, lines: [...listed(lines, lineColumns), "", ...listed(totals, totalColumns), ...end] };
  });
}

const lineColumns: readonly TableColumn<StatementLine>[] = [
  ["at", ({ at }) => at],
  [
    "command",
    ({ command: name, kind }) => (kind === "transaction" ? name : `${name} ${kind === "reversal" ? "reversed" : kind}`),
  ],
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

function listCommand<Item>(
  context: CommandContext,
  name: string,
  summary: string,
  columns: readonly TableColumn<Item>[],
): AnyCommand {
  const made = command(name, { summary, examples: [`paybell statement ${name} --tid T0000001 --from 2026-11-01`] })
    .option("--tid <tid>", "of one terminal")
    .option(
      "--from <time>",
      "then or later: 2d ago, a day of your time zone, or a time with its zone",
      agoReader(context),
    )
    .option(
      "--to <time>",
      "earlier: 2d ago, a day of your time zone, which is included, or a time with its zone",
      agoReader(context),
    )
    .addOption(limitOption());
  return calls(context, made, async (settings, { tid, from, to, ...options }) => {
    const query = { tid, from, to };
    return itemsOf(
      await readPages<Item>(settings.partner(), `/v1/${name}`, query, untilLimit(context, options)),
      columns,
    );
  });
}
