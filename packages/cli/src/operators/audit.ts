import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { calls } from "../client/connection.ts";
import { newest, withNewest } from "../client/lists.ts";
import type { AuditPage } from "../client/operator-api.ts";
import { runs } from "../service/service.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { timeForms, timeReader } from "../shell/options.ts";
import { fieldColumns } from "../shell/output.ts";

export function auditCommand(context: CommandContext): AnyCommand {
  const verify = command("verify", {
    summary: "verify that the audit is complete: every entry follows from the one before it",
    description:
      "It reads the database of DATABASE_URL. With the master key it also verifies the MACs, and names " +
      "each operator and API key that is not as its last entry left it. The service sends the last number and hash " +
      "to its log and alerts: with --expect, entries that were cut off since are found.",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell audit verify"],
    exitCodes: {
      0: "it is complete",
      1: "an entry or a row was changed or removed, the expected entry is missing, or the database could not be read",
    },
  }).option("--expect <number:hash>", "the entry of this number must have this hash", auditHead);
  const rotate = command("rotate-key", {
    summary: "make a new version of the key of the audit's MACs",
    description:
      "It reads the database of DATABASE_URL, and needs the master key. Services keep running, and use the new " +
      "version five minutes later. Entries keep their MACs: older versions verify them, and cannot continue the " +
      "audit any more.",
    examples: ["paybell audit rotate-key"],
    exitCodes: { 0: "there is a new version", 1: "there is none, or the audit or the database could not be read" },
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
    .addOption(
      new Option("--format <format>", "how a line is written")
        .choices(["json-lines", "syslog"] as const)
        .default("json-lines" as const),
    )
    .option("--after <number>", "begin after the entry of this number", entryNumber, 0)
    .option("--follow", "then go on with what is added, until Ctrl-C", false);
  return group("audit", "look after the record of who did what", [
    listCommand(context),
    runs(context, verify, ({ runAuditVerify }, { json = false, expect }) => runAuditVerify(context, { json, expect })),
    runs(context, withConfirmation(rotate), async ({ runAuditRotateKey }, { json = false, yes }) => {
      await confirm(context, { yes }, "The versions before the new one continue the audit no more.");
      return runAuditRotateKey(context, { json });
    }),
    runs(context, exported, ({ runAuditExport }, options) => runAuditExport(context, options)),
  ]);
}

type AuditRecord = AuditPage["items"][number];

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", {
    summary: "list who did what, newest first",
    description: "It asks the service. With --json each entry also has the values before and after.",
    examples: ["paybell audit list --since 1h", "paybell audit list --actor Ada --follow"],
  })
    .option("--actor <name>", "only of this operator, or `partner <id>`")
    .option("--subject <id>", "only what was done to this")
    .option("--action <action>", "only this one, such as rotateKey")
    .option("--until <time>", `before this time: ${timeForms}`, timeReader(context));
  return calls(
    context,
    withNewest(context, made),
    async (settings, { actor, subject, action, until, ...options }) =>
      newest<AuditRecord>(context, options, {
        ...{ plural: "the audit", api: settings.operator(), path: "/operator/v1/audit" },
        columns: [
          ["number", ({ seq }) => seq],
          ...fieldColumns<AuditRecord>("at", "actor", "role", "action", "subject", "address"),
        ],
        query: { actor, subject, action, from: options.since, to: until },
        idOf: ({ seq }) => String(seq),
        timeOf: ({ at }) => at,
      }),
    "finishes",
  );
}

function auditHead(text: string): { readonly seq: number; readonly hash: string } {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash };
  throw new InvalidArgumentError("It must be an entry's number and hash, such as 12:ab34….");
}

function entryNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be the number of an entry.");
}
