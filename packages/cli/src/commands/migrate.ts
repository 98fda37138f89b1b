import type { Command } from "commander";
import { command } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";
import type { JsonOption } from "../output.ts";

export function migrateCommand(context: CommandContext): Command {
  return command("migrate", {
    summary: "bring the database's schema up to this version",
    description:
      "`serve` does the same when it starts. Run this first if the role of DATABASE_URL may only read and " +
      "write rows: PAYBELL_MIGRATION_DATABASE_URL names the role that owns the schema, and this command gives the " +
      "other one its rights.",
    examples: ["paybell migrate"],
    exitCodes: { 0: "the schema is this version's", 1: "it could not be changed" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runMigrate } = await loadServer(context);
    context.conclude((await runMigrate(context, { json })) as ExitCode);
  });
}
