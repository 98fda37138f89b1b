import type { Command } from "commander";
import { command } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";
import type { JsonOption } from "../output.ts";

export function backupCommand(context: CommandContext): Command {
  return command("backup", {
    summary: "take a backup of the database, and verify it",
    description:
      "It calls pg_basebackup and pg_verifybackup, of the server's version, and makes a folder within the named " +
      "one. PAYBELL_BACKUP_DATABASE_URL is the server of DATABASE_URL as a role with the attribute REPLICATION. The " +
      "master key is in no backup.",
    examples: ["paybell backup /var/backups/paybell"],
    exitCodes: { 0: "it was taken, and is whole", 1: "it could not be taken: nothing is left of it" },
  })
    .argument("<folder>", "gets a folder for each backup")
    .action(async (folder: string, { json = false }: JsonOption) => {
      const { runBackup } = await loadServer(context);
      context.conclude((await runBackup(context, { folder, json })) as ExitCode);
    });
}

interface VerifyOptions extends JsonOption {
  readonly wal?: string;
}

export function verifyCommand(context: CommandContext): Command {
  return command("verify", {
    summary: "verify a backup, and that the archived log of the server continues it",
    description: "It calls pg_verifybackup, which reads every file, and needs neither the database nor a setting.",
    examples: [
      "paybell verify /var/backups/paybell/paybell-20261122T030000Z",
      "paybell verify /var/backups/paybell/paybell-20261122T030000Z --wal /var/backups/wal",
    ],
    exitCodes: { 0: "it can be restored", 1: "a file was changed or is missing, or the archive has a gap" },
  })
    .argument("<backup>", "a folder that `paybell backup` made")
    .option("--wal <folder>", "the archive of the server's log")
    .action(async (backup: string, { wal, json = false }: VerifyOptions) => {
      const { runVerify } = await loadServer(context);
      context.conclude((await runVerify(context, { backup, wal, json })) as ExitCode);
    });
}
