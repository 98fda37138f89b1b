import type { Api } from "../client/api.ts";
import { calls, partnerFilter } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { type RegisteredPartner, readPages } from "../client/lists.ts";
import type { RestoreReport } from "../client/operator-api.ts";
import { type BulkFilter, countMatching, redeliverShares } from "../notifications/redeliver.ts";
import { type AnyCommand, command, confirm, counted, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { timeForms, timeReader } from "../shell/options.ts";
import { fieldColumns, listed, showing, type TableColumn } from "../shell/output.ts";
import { runs } from "./service.ts";

const commandsShownMax = 500;

export function restoreCommand(context: CommandContext): AnyCommand {
  const data = dataCommand(context);
  const commands = [data, holdCommand(context), reconcileCommand(context), releaseCommand(context)];
  return group("restore", "restore a backup, and reconcile what a restore holds", commands, data);
}

function dataCommand(context: CommandContext): AnyCommand {
  const made = command("data", {
    summary: "make a data directory of PostgreSQL from a backup, up to a point in time",
    description:
      "`paybell restore <backup>` is the same. The backup is verified and copied, not changed. Start PostgreSQL on " +
      "the folder: it replays its log up to the time, then takes connections. The first instance that starts on it " +
      "holds what was pending, because it may have been delivered since, until `paybell restore release`.",
    examples: [
      "paybell restore data /var/backups/paybell/paybell-20261122T030000Z --into /var/lib/postgresql/restored \\\n" +
        "      --wal /var/backups/wal --to 2026-11-22T14:05:00Z",
    ],
    exitCodes: { 0: "the directory is complete", 1: "the backup cannot be restored: nothing is left in the folder" },
  })
    .argument("<backup>", "a folder that `paybell backup` made")
    .requiredOption("--into <folder>", "PostgreSQL's data directory to make: missing or empty")
    .option("--wal <folder>", "the archive of the server's log; without it, the end of the backup is restored")
    .option("--to <time>", `up to this time: ${timeForms}; default: to the end of the archive`, timeReader(context));
  return runs(context, made, ({ runRestore }, { into, wal, to, json = false }, backup) =>
    runRestore(context, { backup, into, wal, to, json }),
  );
}

function holdCommand(context: CommandContext): AnyCommand {
  const made = command("hold", {
    summary: "hold what is pending in a database that another program restored",
    description:
      "After `paybell restore <backup>` it is not needed. Otherwise run it on DATABASE_URL before the first instance " +
      "starts: a database does not show that it was restored.",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell restore hold"],
    exitCodes: { 0: "it is held", 1: "an instance runs on this database, or it cannot be reached" },
  });
  return runs(context, made, ({ runRestoreHold }, { json = false }) => runRestoreHold(context, { json }));
}

function reconcileCommand(context: CommandContext): AnyCommand {
  const made = command("reconcile", {
    summary: "show what a restore holds, and since when the ledger has a gap",
    examples: ["paybell restore reconcile"],
    exitCodes: { 0: "nothing is held", 1: "something is held" },
  });
  return calls(context, made, async (settings) => {
    const api = settings.operator();
    const report = await api.get<RestoreReport>("/operator/v1/restore");
    const { partners = [], commands = [] } = report.restore ?? {};
    const code = partners.length + commands.length === 0 ? exitCodes.ok : exitCodes.negative;
    return { value: report, lines: await reportLines(api, report), code };
  });
}

async function reportLines(api: Api, { restore }: RestoreReport): Promise<string[]> {
  if (restore === null) return ["This database was never restored."];
  const { name, endsAt, heldAt, held, releasedAt, partners, commands } = restore;
  const known = partners.length === 0 ? [] : await readPages<RegisteredPartner>(api, "/operator/v1/partners");
  const names = new Map(known.map(({ id, settings }) => [id, settings.name]));
  return [
    `Restore ${name}: the first instance started on it at ${heldAt}, and held ${held} notifications.`,
    endsAt === null
      ? "No instance ran at the time of the backup."
      : `The ledger ends at ${endsAt}. What was accepted between then and the loss of the database is not here.`,
    ...(partners.length === 0 ? ["No notification is held any more."] : ["", "Held, and perhaps delivered since:"]),
    ...(partners.length === 0
      ? []
      : listed(partners, [["name", ({ partnerId }) => names.get(partnerId)], ...heldColumns])),
    ...(releasedAt === null
      ? commandLines(commands)
      : [`Commands that were in flight were released at ${releasedAt}.`]),
  ];
}

type Restore = NonNullable<RestoreReport["restore"]>;

const heldColumns: readonly TableColumn<Restore["partners"][number]>[] = [
  ["partner", ({ partnerId }) => partnerId],
  ["held", ({ count }) => count],
  ["tried", ({ attempted }) => attempted],
  ["oldest", ({ oldestAt }) => oldestAt],
  ["newest", ({ newestAt }) => newestAt],
];

type InFlight = Restore["commands"][number];

const inFlightColumns = fieldColumns<InFlight>("createdAt", "command", "partnerId", "transactionId", "reqId");

function commandLines(commands: Restore["commands"]): string[] {
  if (commands.length === 0) return ["No command was in flight."];
  return ["", "In flight: only the acquirer knows their outcome.", ...listed(commands, inFlightColumns)];
}

function releaseCommand(context: CommandContext): AnyCommand {
  const made = command("release", {
    summary: "send what a restore holds, and let commands end that were in flight",
    description:
      "Each held notification gets a whole new schedule, under the same webhook-id, by which partners deduplicate. A " +
      "command that was in flight ends as ERROR 96, with an IPN and a Reversal. Without an option it does both. It " +
      "shows how many there are, and asks.",
    examples: [
      'paybell restore release --partner "Corner Shop"',
      "paybell restore release --commands",
      "paybell restore release",
    ],
    exitCodes: { 0: "they are released", 1: "there was nothing to release" },
  })
    .option("--partner <partner>", "only the notifications of this partner: its id or name")
    .option("--commands", "only the commands");
  return calls(context, withConfirmation(made), async (settings, options) => {
    const { commands = false } = options;
    if (options.partner !== undefined && commands) {
      throw new Failure("--partner and --commands exclude each other.", {
        code: "bad_usage",
        remedy: "Commands in flight are released for all at once: `paybell restore release --commands`.",
      });
    }
    const [api, partner] = [settings.operator(), await partnerFilter(settings, options.partner)];
    const report = await api.get<RestoreReport>("/operator/v1/restore");
    const inFlight = partner === undefined ? (report.restore?.commands ?? []).length : 0;
    const filter: BulkFilter = { state: "parked", reason: "restored", ...definedOf({ partner }) };
    const shares = commands ? [] : await countMatching({ api, role: "operator" }, filter);
    const held = shares.reduce((sum, { matched }) => sum + matched, 0);
    if (held + inFlight === 0) {
      const value = { redelivered: 0, restore: report.restore };
      return { value, lines: ["There is nothing to release."], code: exitCodes.negative };
    }
    await confirm(context, options, effectOf(held, shares.length, inFlight));
    const { redelivered } = await showing(context, "redelivering", held, (onProgress) =>
      redeliverShares({ api, role: "operator" }, shares, filter, "original", onProgress),
    );
    const isReleasing = commands || partner === undefined;
    const { restore } = isReleasing ? await api.post<RestoreReport>("/operator/v1/restore/release", {}) : report;
    const lines = [
      ...(commands ? [] : [`${redelivered} notifications are due again.`]),
      ...(isReleasing ? ["Commands that were in flight end now."] : []),
    ];
    return { value: { redelivered, restore }, lines };
  });
}

function effectOf(held: number, partners: number, inFlight: number): string {
  const sent = `${counted(held, "held notification")} of ${counted(partners, "partner")} are sent.`;
  // The report names no more.
  const atLeast = inFlight === commandsShownMax ? "At least " : "";
  const ended = `${atLeast}${counted(inFlight, "command")} in flight end as ERROR 96, each with an IPN and a Reversal.`;
  return [...(held === 0 ? [] : [sent]), ...(inFlight === 0 ? [] : [ended])].join(" ");
}
