import { createReadStream } from "node:fs";
import { basename, resolve } from "node:path";
import { type Command, Option } from "commander";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../client/connection.ts";
import { readPages } from "../client/lists.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { whyUnreadable } from "../shell/files.ts";
import { wholeNumber } from "../shell/options.ts";
import {
  columns,
  fieldColumns,
  type JsonOption,
  listed,
  print,
  printable,
  type Shown,
  type TableColumn,
  textOf,
} from "../shell/output.ts";

interface Options extends AccessOptions, JsonOption {
  readonly acquirer?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly limit: number;
}

const filesPath = "/operator/v1/clearing-files";
const exceptionsPath = "/operator/v1/clearing-exceptions";
const exampleId = "01a1fc40-577c-728c-bd54-142edc79a51f";

export function clearingCommand(context: CommandContext): Command {
  return group("clearing", "compare acquirers' clearing files with the ledger, and work off the differences", [
    sendCommand(context),
    filesCommand(context),
    showCommand(context),
    exceptionsCommand(context),
    resolveCommand(context),
  ]);
}

function sendCommand(context: CommandContext): Command {
  const made = command("send", {
    summary: "hand over a clearing file",
    description:
      "The acquirer's profile describes the file, in `clearing`. One that cannot be read changes nothing: the error " +
      "names line and column. The same file again changes nothing. `paybell clearing show` has the result.",
    examples: ["paybell clearing send 2026-11-21.csv --acquirer first-bank"],
  })
    .argument("<file>", "as the acquirer sent it")
    .requiredOption("--acquirer <name>", "whose file it is; default: that of the settings");
  return withAccessOptions(made).action(
    ends(context, async (path: string, options: Options) => {
      const { acquirer = "" } = options;
      const api = (await readClientSettings(context, options)).operator();
      const bytes = createReadStream(resolve(context.workingDirectory, path));
      const opened = new Promise<void>((open, fail) => bytes.once("ready", open).once("error", fail));
      await opened.catch((error: NodeJS.ErrnoException) => {
        throw new Failure(`${path} cannot be read: ${whyUnreadable(error)}.`, { code: "bad_file" });
      });
      const { id } = await api.upload<Shown>(filesPath, { acquirer, name: basename(path) }, bytes);
      print(context, options, { id }, [`It was read as ${id}: \`paybell clearing show ${id}\` has the result.`]);
      return exitCodes.ok;
    }),
  );
}

function filesCommand(context: CommandContext): Command {
  const made = listing("files", {
    summary: "list clearing files, newest first",
    examples: ["paybell clearing files --acquirer first-bank"],
  });
  const found = ["lines", "matched", "missingHere", "missingThere", "different"];
  const shown = fieldColumns<Shown>("receivedAt", "acquirer", "name", "state", ...found, "id");
  return withAccessOptions(made).action(
    ends(context, async (options: Options) => {
      const { acquirer, limit } = options;
      const api = (await readClientSettings(context, options)).operator();
      const items = await readPages<Shown>(api, filesPath, { acquirer }, { itemsMax: limit });
      print(context, options, { items }, listed(items, shown));
      return exitCodes.ok;
    }),
  );
}

function showCommand(context: CommandContext): Command {
  const made = command("show", {
    summary: "show how a clearing file compares with the ledger",
    examples: [`paybell clearing show ${exampleId}`],
  }).argument("<id>", "as `paybell clearing send` and `files` show it");
  return withAccessOptions(made).action(
    ends(context, async (id: string, options: Options) => {
      const api = (await readClientSettings(context, options)).operator();
      const found = await api.get<Shown>(`${filesPath}/${encodeURIComponent(id)}`);
      print(context, options, found, columns(Object.entries(found).map(([name, value]) => [name, textOf(value)])));
      return exitCodes.ok;
    }),
  );
}

function exceptionsCommand(context: CommandContext): Command {
  const made = listing("exceptions", {
    summary: "list what differs between clearing files and the ledger, newest first",
    examples: ["paybell clearing exceptions --state open", "paybell clearing exceptions --acquirer first-bank --json"],
  }).addOption(new Option("--state <state>", "only those in this state").choices(["open", "resolved"]));
  return withAccessOptions(made).action(
    ends(context, async (options: Options) => {
      const { acquirer, state, limit } = options;
      const api = (await readClientSettings(context, options)).operator();
      const items = await readPages<Shown>(api, exceptionsPath, { acquirer, state }, { itemsMax: limit });
      print(context, options, { items }, listed(items, exceptionColumns));
      return exitCodes.ok;
    }),
  );
}

const exceptionColumns: readonly TableColumn<Shown>[] = [
  ...fieldColumns<Shown>("createdAt", "kind", "state", "acquirer"),
  ["ref id", ({ line }) => textOf(Object(line)["refId"])],
  [
    "differences",
    ({ differences = [] }) =>
      (differences as readonly { field: string; here: string; there: string }[])
        .map(({ field, here, there }) => `${field} ${here}, there ${there}`)
        .join("; "),
  ],
  ...fieldColumns<Shown>("transactionId", "id"),
];

function resolveCommand(context: CommandContext): Command {
  const made = command("resolve", {
    summary: "mark an exception as worked off",
    examples: [`paybell clearing resolve ${exampleId} --reason "the bank corrected it on 22 November"`],
  })
    .argument("<id>", "as `paybell clearing exceptions` shows it")
    .requiredOption("--reason <text>", "why, for the audit");
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, async (id: string, options: Options & ConfirmOption) => {
      const { reason } = options;
      const api = (await readClientSettings(context, options)).operator();
      const path = `${exceptionsPath}/${encodeURIComponent(id)}`;
      const found = await api.get<Shown>(path);
      if (found["state"] === "resolved") {
        print(context, options, found, [`The exception ${id} is resolved already.`]);
        return exitCodes.negative;
      }
      const shown = exceptionColumns.map(([header, cell]) => `${header} ${cell(found)}`).join(", ");
      await confirm(context, options, `The exception is resolved, and cannot be opened again: ${shown}.`);
      const resolved = await api.post<Shown>(`${path}/resolve`, { reason });
      print(context, options, resolved, [`The exception ${printable(resolved.id)} is resolved.`]);
      return exitCodes.ok;
    }),
  );
}

function listing(name: string, about: Parameters<typeof command>[1]): Command {
  return command(name, about)
    .option("--acquirer <name>", "of one acquirer; default: that of the settings")
    .addOption(new Option("--limit <n>", "at most this many").default(50).argParser(wholeNumber(1, 9_999_999)));
}
