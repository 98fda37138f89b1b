import type { Command } from "commander";
import { type CommandContext, command, group } from "../shell/command.ts";
import type { JsonOption } from "../shell/output.ts";
import { runs } from "./run.ts";

export function migrateCommand(context: CommandContext): Command {
  return command("migrate", {
    summary: "bring the database's schema up to this version",
    description:
      "`serve` does the same when it starts. Run this first if the role of DATABASE_URL may only read and " +
      "write rows: PAYBELL_MIGRATION_DATABASE_URL names the role that owns the schema, and this command gives the " +
      "other one its rights.",
    examples: ["paybell migrate"],
    exitCodes: { 0: "the schema is this version's", 1: "it could not be changed" },
  }).action(runs(context, ({ runMigrate }, { json = false }: JsonOption) => runMigrate(context, { json })));
}

export function masterKeyCommand(context: CommandContext): Command {
  const made = command("new", {
    summary: "print a new master key; with PAYBELL_KMS, wrapped by the key service",
    examples: ["paybell master-key new > master.key"],
    exitCodes: { 0: "it is printed", 1: "the key service could not be asked" },
    json: false,
  }).action(runs(context, ({ runMasterKeyNew }) => runMasterKeyNew(context)));
  const rotate = command("rotate", {
    summary: "encrypt again, under PAYBELL_MASTER_KEY, what other master keys encrypted",
    description:
      "Services keep running meanwhile; each needs both keys. If it is interrupted, it continues when it is run " +
      "again.",
    examples: ["paybell master-key rotate"],
    exitCodes: { 0: "nothing is left under another key", 1: "something is, or the database could not be read" },
  }).action(
    runs(context, ({ runMasterKeyRotate }, { json = false }: JsonOption) => runMasterKeyRotate(context, { json })),
  );
  return group("master-key", "make and rotate the key that protects all others", [made, rotate]);
}

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
    .action(
      runs(context, ({ runBackup }, folder: string, { json = false }: JsonOption) =>
        runBackup(context, { folder, json }),
      ),
    );
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
    .action(
      runs(context, ({ runVerify }, backup: string, { wal, json = false }: VerifyOptions) =>
        runVerify(context, { backup, wal, json }),
      ),
    );
}
