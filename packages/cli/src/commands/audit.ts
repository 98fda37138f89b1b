import { type Command, InvalidArgumentError, Option } from "commander";
import { command, group } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";
import type { JsonOption } from "../output.ts";

export function auditCommand(context: CommandContext): Command {
  const verify = command("verify", {
    summary: "verify that the audit is complete: every entry follows from the one before it",
    description:
      "It reads the database of DATABASE_URL. Record the last hash elsewhere: it shows later whether entries " +
      "were cut off at the end.",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell audit verify"],
    exitCodes: { 0: "it is complete", 1: "an entry was changed or removed, or the database could not be read" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runAuditVerify } = await loadServer(context);
    context.conclude((await runAuditVerify(context, { json })) as ExitCode);
  });
  const exported = command("export", {
    summary: "write the audit for another system: JSON lines, or syslog (RFC 5424)",
    description: "It reads the database of DATABASE_URL, and writes the entries in their order, one a line.",
    examples: [
      "paybell audit export --after 1200 > audit.jsonl",
      "paybell audit export --format syslog --follow | nc logs.internal 601",
    ],
    exitCodes: { 0: "all was written", 1: "the database could not be read" },
    json: false,
  })
    .addOption(new Option("--format <format>", "how a line is written").choices(formats).default("json-lines"))
    .option("--after <number>", "begin after the entry of this number", entryNumber, 0)
    .option("--follow", "go on with what is added", false)
    .action(async (options: ExportOptions) => {
      const { runAuditExport } = await loadServer(context);
      context.conclude((await runAuditExport(context, options)) as ExitCode);
    });
  return group("audit", "look after the record of who did what", [verify, exported]);
}

const formats = ["json-lines", "syslog"] as const;

interface ExportOptions {
  readonly format: (typeof formats)[number];
  readonly after: number;
  readonly follow: boolean;
}

function entryNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be the number of an entry.");
}
