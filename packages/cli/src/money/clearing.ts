import { createReadStream } from "node:fs";
import { basename, resolve } from "node:path";
import { Option } from "@commander-js/extra-typings";
import { calls } from "../client/connection.ts";
import { readPages, untilLimit } from "../client/lists.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { whyUnreadable } from "../shell/files.ts";
import { limitOption } from "../shell/options.ts";
import {
  fieldColumns,
  itemsOf,
  printable,
  recordLines,
  type Shown,
  type TableColumn,
  textOf,
} from "../shell/output.ts";

const filesPath = "/operator/v1/clearing-files";
const exceptionsPath = "/operator/v1/clearing-exceptions";
const exampleId = "01a1fc40-577c-728c-bd54-142edc79a51f";

export function clearingCommand(context: CommandContext): AnyCommand {
  const send = command("send", {
    summary: "hand over a clearing file",
    description:
      "The acquirer's profile describes the file, in `clearing`. One that cannot be read changes nothing: the error " +
      "names line and column. The same file again changes nothing. `paybell clearing show` has the result.",
    examples: ["paybell clearing send 2026-11-21.csv --acquirer first-bank"],
  })
    .argument("<file>", "as the acquirer sent it")
    .requiredOption("--acquirer <name>", "whose file it is; `default` names that of the settings");
  const files = command("files", {
    summary: "list clearing files, newest first",
    examples: ["paybell clearing files --acquirer first-bank"],
  })
    .option(...ofAcquirer)
    .addOption(limitOption());
  const show = command("show", {
    summary: "show how a clearing file compares with the ledger",
    examples: [`paybell clearing show ${exampleId}`],
  }).argument("<id>", "as `paybell clearing send` and `files` show it");
  const exceptions = command("exceptions", {
    summary: "list what differs between clearing files and the ledger, newest first",
    examples: ["paybell clearing exceptions --state open", "paybell clearing exceptions --acquirer first-bank --json"],
  })
    .option(...ofAcquirer)
    .addOption(limitOption())
    .addOption(new Option("--state <state>", "only those in this state").choices(["open", "resolved"] as const));

  return group("clearing", "compare acquirers' clearing files with the ledger, and work off the differences", [
    calls(context, send, async (settings, { acquirer }, path) => {
      const bytes = createReadStream(resolve(context.workingDirectory, path));
      const opened = new Promise<void>((open, fail) => bytes.once("ready", open).once("error", fail));
      await opened.catch((error: NodeJS.ErrnoException) => {
        throw new Failure(`${path} cannot be read: ${whyUnreadable(error)}.`, { code: "bad_file" });
      });
      const { id } = await settings.operator().upload<Shown>(filesPath, { acquirer, name: basename(path) }, bytes);
      return { value: { id }, lines: [`It was read as ${id}: \`paybell clearing show ${id}\` has the result.`] };
    }),
    calls(context, files, async (settings, { acquirer, ...options }) =>
      itemsOf(
        await readPages<Shown>(settings.operator(), filesPath, { acquirer }, untilLimit(context, options)),
        fieldColumns(...["receivedAt", "acquirer", "name", "state"], ...found, "id"),
      ),
    ),
    calls(context, show, async (settings, _, id) => {
      const file = await settings.operator().get<Shown>(`${filesPath}/${encodeURIComponent(id)}`);
      return { value: file, lines: recordLines(file) };
    }),
    calls(context, exceptions, async (settings, { acquirer, state, ...options }) =>
      itemsOf(
        await readPages<Shown>(settings.operator(), exceptionsPath, { acquirer, state }, untilLimit(context, options)),
        exceptionColumns,
      ),
    ),
    resolveCommand(context),
  ]);
}

const ofAcquirer = ["--acquirer <name>", "of one acquirer; `default` names that of the settings"] as const;
const found = ["lines", "matched", "missingHere", "missingThere", "different"];

const exceptionColumns: readonly TableColumn<Shown>[] = [
  ...fieldColumns<Shown>("createdAt", "kind", "state", "acquirer"),
  ["ref id", ({ line, here }) => textOf(Object(line ?? here)["refId"])],
  [
    "differences",
    ({ differences = [] }) =>
      (differences as readonly { field: string; here: string; there: string }[])
        .map(({ field, here, there }) => `${field} ${here}, there ${there}`)
        .join("; "),
  ],
  ...fieldColumns<Shown>("transactionId", "id"),
];

function resolveCommand(context: CommandContext): AnyCommand {
  const made = command("resolve", {
    summary: "mark an exception as worked off",
    examples: [`paybell clearing resolve ${exampleId} --reason "the bank corrected it on 22 November"`],
  })
    .argument("<id>", "as `paybell clearing exceptions` shows it")
    .requiredOption("--reason <text>", "why, for the audit");
  return calls(context, withConfirmation(made), async (settings, options, id) => {
    const api = settings.operator();
    const path = `${exceptionsPath}/${encodeURIComponent(id)}`;
    const exception = await api.get<Shown>(path);
    if (exception["state"] === "resolved") {
      return {
        value: exception,
        lines: [`The exception ${id} is resolved already.`],
        code: exitCodes.negative,
      };
    }
    const shown = exceptionColumns.map(([header, cell]) => `${header} ${cell(exception)}`).join(", ");
    await confirm(context, options, `The exception is resolved, and cannot be opened again: ${shown}.`);
    const resolved = await api.post<Shown>(`${path}/resolve`, { reason: options.reason });
    return { value: resolved, lines: [`The exception ${printable(resolved.id)} is resolved.`] };
  });
}
