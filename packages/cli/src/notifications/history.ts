import { type Command, Option } from "commander";
import {
  type AccessOptions,
  onlyPartner,
  partnerFilter,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { exitCodes } from "../shell/failure.ts";
import { streamToPrivateFile } from "../shell/files.ts";
import { readDay } from "../shell/options.ts";

const formats = ["json-lines", "csv"] as const;

interface ExportOptions extends AccessOptions {
  readonly day: string;
  readonly format: (typeof formats)[number];
  readonly partner?: string;
  readonly out: string;
}

export function historyCommand(context: CommandContext): Command {
  return group("history", "keep the history of notifications elsewhere", [exportCommand(context)]);
}

function exportCommand(context: CommandContext): Command {
  const made = command("export", {
    summary: "write a day of history to a file: notifications with their attempts",
    description:
      "Do this before the day is dropped, after PAYBELL_HISTORY_DAYS. Days are in UTC, and are exported once " +
      "they are over. Card data are masked. JSON lines have the whole content and every attempt; CSV has the fields " +
      "by which people search, and the last attempt. The file gets its name when it is complete.",
    examples: [
      "paybell history export --day 2026-11-21 --out 2026-11-21.jsonl",
      "paybell history export --day 2026-11-21 --format csv --out 2026-11-21.csv",
    ],
    json: false,
  })
    .requiredOption("--day <day>", "such as 2026-11-21", readDay)
    .addOption(new Option("--format <format>", "how a line is written").choices(formats).default("json-lines"))
    .option(...onlyPartner)
    .requiredOption("--out <file>", "a new file that only you can read (0600)");
  return withAccessOptions(made).action(
    ends(context, async ({ day, format, partner, out, ...options }: ExportOptions) => {
      const settings = await readClientSettings(context, options);
      const query = definedOf({ format, partner: await partnerFilter(settings, partner) });
      const api = settings.operator();
      const lines = await streamToPrivateFile(context, out, () => api.stream(`/operator/v1/history/${day}`, query));
      const notifications = format === "csv" ? lines - 1 : lines;
      context.stdout.write(`Wrote ${notifications} notifications of ${day} to ${out}.\n`);
      return exitCodes.ok;
    }),
  );
}
