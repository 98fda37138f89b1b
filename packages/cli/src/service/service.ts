import { type Command, Option, type OptionValues } from "@commander-js/extra-typings";
import { clientVariables } from "../client/credentials.ts";
import { type AnyCommand, acts, command, group } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { type ExitCode, Failure } from "../shell/failure.ts";
import type { JsonOption } from "../shell/output.ts";

/** The service lives in a package of its own: a partner's machine needs none of it. */
export async function loadServer({ process }: Pick<CommandContext, "process">) {
  if (!runsService(process.versions.node))
    throw new Failure(`the service needs Node 22.22 or newer, and this is ${process.versions.node}.`, {
      code: "node_too_old",
      remedy: "Install a newer Node. The commands for partners and operators run on this one.",
    });
  // The service refuses every PAYBELL_ name that it does not know, and these are ours.
  for (const name of Object.keys(clientVariables)) delete process.env[name];
  try {
    return await import("@paybell/server");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Failure("this command runs the service, which is not installed.", {
      code: "server_not_installed",
      remedy: "npm install @paybell/server",
    });
  }
}

/** A command that the service's package runs: it gets the package, the options, and the arguments. */
export function runs<Args extends unknown[], Options extends OptionValues>(
  context: CommandContext,
  made: Command<Args, Options>,
  run: (
    server: Awaited<ReturnType<typeof loadServer>>,
    options: Options & JsonOption,
    ...args: Args
  ) => Promise<number>,
): AnyCommand {
  return acts(
    context,
    made,
    async (options, ...args) => (await run(await loadServer(context), options, ...args)) as ExitCode,
    "finishes",
  );
}

function runsService(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 22);
}

export function sandboxCommand(context: CommandContext): AnyCommand {
  const made = command("sandbox", {
    summary: "run the service on localhost, with a partner and its receiver",
    description:
      "On its own PostgreSQL in .paybell/ (PAYBELL_HOME moves it). No card is charged. The keys are in " +
      ".paybell/sandbox.json, where the other commands find them.",
    examples: ["paybell sandbox", "PAYBELL_PORT=7500 paybell sandbox"],
    json: false,
  });
  return runs(context, made, ({ runSandbox }) => runSandbox(context));
}

export function serveCommand(context: CommandContext): AnyCommand {
  const made = command("serve", {
    summary: "run the service on DATABASE_URL",
    exitCodes: {
      0: "stopped by SIGTERM, SIGINT or SIGHUP",
      1: "it could not start, for example because a setting is wrong",
    },
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell serve", "paybell serve --role delivery"],
    json: false,
  }).addOption(
    new Option("--role <role>", "api: only commands and reports; delivery: only notifications")
      .choices(["all", "api", "delivery"] as const)
      .default("all" as const),
  );
  return runs(context, made, ({ runServe }, { role }) => runServe(context, role));
}

export function checkCommand(context: CommandContext): AnyCommand {
  const made = command("check", {
    summary: "check whether the service can run with these settings, and name what to fix",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell check"],
    exitCodes: { 0: "it can", 1: "something is an error, such as a setting that cannot be read" },
  });
  return runs(context, made, ({ runCheck }, { json = false }) => runCheck(context, { json }));
}

export function alertsCommand(context: CommandContext): AnyCommand {
  const test = command("test", {
    summary: "send a test alert to every target of these settings: webhook, Slack, mail",
    examples: ["PAYBELL_ALERT_SLACK_URL=https://hooks.example/T0/B0/x paybell alerts test"],
    exitCodes: { 0: "each target accepted it", 1: "one did not, or there is none" },
  });
  return group("alerts", "see whether alerts arrive", [
    runs(context, test, ({ runAlertsTest }, { json = false }) => runAlertsTest(context, { json })),
  ]);
}

export function migrateCommand(context: CommandContext): AnyCommand {
  const made = command("migrate", {
    summary: "bring the database's schema up to this version",
    description:
      "`serve` does the same when it starts. Run this first if the role of DATABASE_URL may only read and " +
      "write rows: PAYBELL_MIGRATION_DATABASE_URL names the role that owns the schema, and this command gives the " +
      "other one its rights.",
    examples: ["paybell migrate"],
    exitCodes: { 0: "the schema is this version's", 1: "it could not be changed" },
  });
  return runs(context, made, ({ runMigrate }, { json = false }) => runMigrate(context, { json }));
}

export function masterKeyCommand(context: CommandContext): AnyCommand {
  const made = command("new", {
    summary: "print a new master key; with PAYBELL_KMS, wrapped by the key service",
    examples: ["paybell master-key new > master.key"],
    exitCodes: { 0: "it is printed", 1: "the key service could not be asked" },
    json: false,
  });
  const rotate = command("rotate", {
    summary: "encrypt again, under PAYBELL_MASTER_KEY, what other master keys encrypted",
    description:
      "Services keep running meanwhile; each needs both keys. If it is interrupted, it continues when it is run " +
      "again.",
    examples: ["paybell master-key rotate"],
    exitCodes: { 0: "nothing is left under another key", 1: "something is, or the database could not be read" },
  });
  return group("master-key", "make and rotate the key that protects all others", [
    runs(context, made, ({ runMasterKeyNew }) => runMasterKeyNew(context)),
    runs(context, rotate, ({ runMasterKeyRotate }, { json = false }) => runMasterKeyRotate(context, { json })),
  ]);
}

export function backupCommand(context: CommandContext): AnyCommand {
  const made = command("backup", {
    summary: "take a backup of the database, and verify it",
    description:
      "It calls pg_basebackup and pg_verifybackup, of the server's version, and makes a folder within the named " +
      "one. PAYBELL_BACKUP_DATABASE_URL is the server of DATABASE_URL as a role with the attribute REPLICATION. The " +
      "master key is in no backup.",
    examples: ["paybell backup /var/backups/paybell"],
    exitCodes: { 0: "it was taken, and is whole", 1: "it could not be taken: nothing is left of it" },
  }).argument("<folder>", "gets a folder for each backup");
  return runs(context, made, ({ runBackup }, { json = false }, folder) => runBackup(context, { folder, json }));
}

export function verifyCommand(context: CommandContext): AnyCommand {
  const made = command("verify", {
    summary: "verify a backup, and that the archived log of the server continues it",
    description: "It calls pg_verifybackup, which reads every file, and needs neither the database nor a setting.",
    examples: [
      "paybell verify /var/backups/paybell/paybell-20261122T030000Z",
      "paybell verify /var/backups/paybell/paybell-20261122T030000Z --wal /var/backups/wal",
    ],
    exitCodes: { 0: "it can be restored", 1: "a file was changed or is missing, or the archive has a gap" },
  })
    .argument("<backup>", "a folder that `paybell backup` made")
    .option("--wal <folder>", "the archive of the server's log");
  return runs(context, made, ({ runVerify }, { wal, json = false }, backup) =>
    runVerify(context, { backup, wal, json }),
  );
}
