import { isDeepStrictEqual } from "node:util";
import { overlapHours } from "@paybell/contract";
import type { Figures } from "@paybell/partner/client";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Api } from "../client/api.ts";
import {
  type AccessOptions,
  type ClientSettings,
  callsAsPartner,
  ofPartner,
  partnerIdOf,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import { definedOf, readCredentials } from "../client/credentials.ts";
import { readPages } from "../client/lists.ts";
import type { RegisteredPartner } from "../client/names.ts";
import { propose, proposeOption } from "../operators/propose.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, counted, requireConfirmable, withConfirmation } from "../shell/confirm.ts";
import { type ExitCode, exitCodes, Failure } from "../shell/failure.ts";
import { streamToPrivateFile, writePrivateFile } from "../shell/files.ts";
import { columns, type JsonOption, listed, print, printable, type TableColumn } from "../shell/output.ts";
import { figuresLines } from "../status/overview.ts";
import { readSettings, settingsHelp, withPartnerSettings } from "./settings.ts";

const keyKinds = ["apiKey", "encryptionKey", "signingKey", "webhookSecret"] as const;

/** Settings one on a line, then the key versions, which never show a key. */
function partnerLines({ id, state, settings, keys, createdAt }: RegisteredPartner): string[] {
  const width = Math.max(...Object.keys(settings).map((name) => name.length));
  return [
    printable(`${settings.name}  ${id}  ${state}, since ${createdAt}`),
    "",
    ...Object.entries(settings).map(([name, value]) => `  ${name.padEnd(width)}  ${printable(text(value))}`),
    "",
    "Keys",
    ...keys.map(({ kind, id: version, activeFrom, expiresAt }) => {
      const end = expiresAt === null ? "" : `, ends ${expiresAt}`;
      return `  ${kind.padEnd(13)}  ${version}  from ${activeFrom}${end}`;
    }),
  ];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function partnerCommand(context: CommandContext): Command {
  const commands = [
    addCommand(context),
    listCommand(context),
    showCommand(context),
    setCommand(context),
    ...stateChanges.map((change) => stateCommand(context, change)),
    statisticsCommand(context),
    rotateCommand(context),
    archiveCommand(context),
  ];
  return group("partner", "register partners, show and change them, pause them, and rotate their keys", commands);
}

interface AddOptions extends AccessOptions, JsonOption {
  readonly out?: string;
  readonly partnerUrl?: string;
}

function addCommand(context: CommandContext): Command {
  const made = command("add", {
    summary: "register a partner",
    description:
      "Its keys are shown only once: --out writes them to a file that only you can read, which --credentials " +
      `takes. ${settingsHelp}`,
    examples: [
      'paybell partner add --name "Corner Shop" --call-back-url https://192.0.2.10/ipn \\\n' +
        "      --callback-addresses 192.0.2.10/32 --calling-addresses 192.0.2.0/24 --out corner-shop.json",
    ],
  })
    .option("--out <file>", "write its keys to a new file that only you can read (0600)")
    .option("--partner-url <url>", "where partners call, for the file; default: --url where that serves them too");
  return withAccessOptions(withPartnerSettings(made)).action(
    ends(context, (options: AddOptions) => add(context, options)),
  );
}

async function add(context: CommandContext, options: AddOptions): Promise<ExitCode> {
  const { out } = options;
  // The sealing options are the new partner's: they say nothing of the connection.
  const api = (await readClientSettings(context, connectionOf(options))).operator();
  const settings = await readSettings(context, { ...options });
  const baseUrl = options.partnerUrl ?? ((await servesPartners(api)) ? api.baseUrl : undefined);
  async function register() {
    const { id, ...keys } = await api.post<{ id: string }>("/operator/v1/partners", settings);
    const sealing = readCredentials(definedOf(pickSealing(settings)), "the answer");
    return { ...(baseUrl !== undefined && { baseUrl }), partnerId: id, ...keys, ...sealing };
  }
  const partner = out === undefined ? await register() : await writePrivateFile(context, out, register);
  const { partnerId } = partner;
  const lacksUrl = baseUrl === undefined ? ["It lacks baseUrl, where partners call: --partner-url adds it."] : [];
  if (out === undefined) {
    const shown = columns(Object.entries(partner).map(([name, value]) => [name, textOf(value)]));
    print(context, options, partner, [...shown, "", "Keep the keys: they are shown only once.", ...lacksUrl]);
  } else {
    print(context, options, { partnerId, file: out }, [
      `Registered ${partnerId}. Its keys are in ${out}, and nowhere else.`,
      ...lacksUrl,
    ]);
  }
  return exitCodes.ok;
}

/** In production operators have a listener of their own, which a partner cannot call. */
async function servesPartners(api: Api): Promise<boolean> {
  const { status } = await api.look("/v1/self");
  return status !== 404;
}

function pickSealing({ cipher, encoding, signing, fields, wireNames }: Readonly<Record<string, unknown>>) {
  return { cipher, encoding, signing, fields, wireNames };
}

function connectionOf({ url, credentials, allowHttp }: AccessOptions): AccessOptions {
  return definedOf({ url, credentials, allowHttp });
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface ListOptions extends AccessOptions, JsonOption {}

function listCommand(context: CommandContext): Command {
  const made = command("list", { summary: "list the partners", examples: ["paybell partner list"] });
  return withAccessOptions(made).action(
    ends(context, async (options: ListOptions) => {
      const api = (await readClientSettings(context, options)).operator();
      const partners = await readPages<RegisteredPartner>(api, "/operator/v1/partners");
      print(context, options, { items: partners }, listed(partners, partnerColumns));
      return exitCodes.ok;
    }),
  );
}

const partnerColumns: readonly TableColumn<RegisteredPartner>[] = [
  ["id", ({ id }) => id],
  ["state", ({ state }) => state],
  ["name", ({ settings }) => settings.name],
];

function showCommand(context: CommandContext): Command {
  const made = command("show", {
    summary: "show a partner's settings and key versions, never a key",
    description: "With a partner's API key and no operator token it shows that partner itself.",
    examples: ["paybell partner show", 'paybell partner show "Corner Shop"'],
  }).argument(...thePartner);
  return withAccessOptions(made).action(
    ends(context, async (id: string | undefined, options: AccessOptions & JsonOption) => {
      const partner = await readPartner(await readClientSettings(context, options), id);
      print(context, options, partner, partnerLines(partner));
      return exitCodes.ok;
    }),
  );
}

async function readPartner(connection: ClientSettings, id: string | undefined): Promise<RegisteredPartner> {
  if (callsAsPartner(connection, id)) return connection.partner().get<RegisteredPartner>("/v1/self");
  return connection.operator().get<RegisteredPartner>(await pathOf(connection, id));
}

const thePartner = ["[partner]", "its id or name; default: the partner of the credentials"] as const;

async function pathOf(connection: ClientSettings, named: string | undefined): Promise<string> {
  return `/operator/v1/partners/${encodeURIComponent(await partnerIdOf(connection, named))}`;
}

interface SetOptions extends AccessOptions, JsonOption {
  readonly propose?: true;
}

function setCommand(context: CommandContext): Command {
  const made = command("set", {
    summary: "change a partner's settings",
    description: `What is not named stays as it is. ${settingsHelp}`,
    examples: [
      'paybell partner set "Corner Shop" --max-in-flight 64 --retry 10 60 600',
      'paybell partner set "Corner Shop" --call-back-url-by-command SETTLEMENT=https://books.example/ipn',
      'paybell partner set "Corner Shop" --settings change.json',
    ],
    exitCodes: { 0: "it is changed", 1: "nothing changes: the settings were so before" },
  })
    .argument(...thePartner)
    .option(...proposeOption);
  return withAccessOptions(withPartnerSettings(made)).action(
    ends(context, async (id: string | undefined, options: SetOptions) => {
      const changes = await readSettings(context, { ...options });
      if (Object.keys(changes).length === 0) {
        throw new Failure("no change is given.", {
          code: "bad_usage",
          remedy: "`paybell partner set --help` lists the settings, such as --max-in-flight 64.",
        });
      }
      const connection = await readClientSettings(context, connectionOf(options));
      const [api, path] = [connection.operator(), await pathOf(connection, id)];
      if (options.propose) return await propose(context, { api, path, input: changes }, options);
      const before = await api.get<RegisteredPartner>(path);
      const partner = await api.patch<RegisteredPartner>(path, changes);
      const isUnchanged = isDeepStrictEqual(before.settings, partner.settings);
      const note = isUnchanged ? ["Nothing changes: the settings were so before.", ""] : [];
      print(context, options, partner, [...note, ...partnerLines(partner)]);
      return isUnchanged ? exitCodes.negative : exitCodes.ok;
    }),
  );
}

const stateChanges = [
  { name: "pause", summary: "pause deliveries to a partner; commands and reports continue", done: "is paused" },
  { name: "resume", summary: "resume deliveries to a paused partner", done: "is active" },
  { name: "disable", summary: "refuse a partner's calls, and pause deliveries to it", done: "is disabled" },
] as const;

function stateCommand(context: CommandContext, { name, summary, done }: (typeof stateChanges)[number]): Command {
  const made = command(name, {
    summary,
    examples: [`paybell partner ${name} "Corner Shop"`],
    exitCodes: { 0: `it ${done} now`, 1: `it ${done} already` },
  }).argument(...thePartner);
  return withAccessOptions(made).action(
    ends(context, async (id: string | undefined, options: AccessOptions & JsonOption) => {
      const connection = await readClientSettings(context, options);
      const [api, path] = [connection.operator(), await pathOf(connection, id)];
      const isAlready = `is ${(await api.get<RegisteredPartner>(path)).state}` === done;
      const partner = await api.post<RegisteredPartner>(`${path}/${name}`, {});
      print(context, options, partner, [`${printable(partner.settings.name)} ${done}${isAlready ? " already" : ""}.`]);
      return isAlready ? exitCodes.negative : exitCodes.ok;
    }),
  );
}

interface StatisticsOptions extends AccessOptions, JsonOption {
  readonly span: string;
}

function statisticsCommand(context: CommandContext): Command {
  const made = command("statistics", {
    summary: "show the statistics of deliveries to a partner: outcomes and latencies",
    description: "With a partner's API key and no operator token it shows that partner's own.",
    examples: ["paybell partner statistics --span day"],
  })
    .argument(...thePartner)
    .addOption(new Option("--span <span>", "the time up to now").choices(["hour", "day", "week"]).default("hour"));
  return withAccessOptions(made).action(
    ends(context, async (id: string | undefined, options: StatisticsOptions) => {
      const connection = await readClientSettings(context, options);
      const query = { span: options.span };
      const figures = callsAsPartner(connection, id)
        ? await connection.partner().get<Figures>("/v1/figures", query)
        : await connection.operator().get<Figures>(`${await pathOf(connection, id)}/figures`, query);
      print(context, options, figures, figuresLines(figures, context.stdout.columns ?? 80));
      return exitCodes.ok;
    }),
  );
}

interface RotateOptions extends AccessOptions, JsonOption, ConfirmOption {
  readonly partner?: string;
  readonly overlapHours: number;
  readonly out?: string;
  readonly propose?: true;
}

interface Rotated {
  readonly id: string;
  readonly kind: string;
  readonly secret: string;
  readonly activeFrom: string;
  readonly expiresOld: string;
}

function rotateCommand(context: CommandContext): Command {
  const made = command("rotate", {
    summary: "replace a partner's key",
    description:
      "encryptionKey, signingKey: the old version is used until the overlap ends, and the partner installs the new " +
      "one before that. webhookSecret, apiKey: both are valid during the overlap. The new one is shown only once.",
    examples: [
      "paybell partner rotate encryptionKey --out new-key.json",
      'paybell partner rotate apiKey --partner "Corner Shop" --overlap-hours 0',
    ],
  })
    .argument("<key>", `one of ${keyKinds.join(", ")}`)
    .option(...ofPartner)
    .addOption(
      new Option("--overlap-hours <hours>", `0 to ${overlapHours.max}; 0 after a leak`)
        .default(overlapHours.initial)
        .argParser(readHours),
    )
    .option("--out <file>", "write the new version to a new file that only you can read (0600)")
    .option(...proposeOption);
  return withAccessOptions(withConfirmation(made, "with --overlap-hours 0: do it without asking")).action(
    ends(context, (key: string, options: RotateOptions) => rotate(context, key, options)),
  );
}

function readHours(text: string): number {
  const hours = Number(text);
  if (text.trim() !== "" && hours >= 0 && hours <= overlapHours.max) return hours;
  throw new InvalidArgumentError(`It must be a number from 0 to ${overlapHours.max}.`);
}

async function rotate(context: CommandContext, key: string, options: RotateOptions): Promise<ExitCode> {
  const { out, overlapHours: hours } = options;
  if (!keyKinds.some((kind) => kind === key)) {
    throw new Failure(`there is no key ${JSON.stringify(key)}: it is one of ${keyKinds.join(", ")}.`, {
      code: "unknown_key_kind",
    });
  }
  const connection = await readClientSettings(context, options);
  const api = connection.operator();
  const path = `${await pathOf(connection, options.partner)}/keys/rotate`;
  if (options.propose) return propose(context, { api, path, input: { key, overlapHours: hours } }, options);
  if (hours === 0) await confirm(context, options, `The present ${key} is not valid any more from then on.`);
  const post = () => api.post<Rotated>(path, { key, overlapHours: hours });
  const rotated = out === undefined ? await post() : await writePrivateFile(context, out, post, asKeyFile);
  const { secret, ...rest } = rotated;
  print(context, options, out === undefined ? rotated : { ...rest, file: out }, [
    `${rotated.kind}, version ${rotated.id}`,
    ...(out === undefined ? [secret, "Keep it: it is shown only once."] : [`It is in ${out}, and nowhere else.`]),
    `Used from ${rotated.activeFrom}; the old version ends ${rotated.expiresOld}.`,
  ]);
  return exitCodes.ok;
}

/** In the shape of every file of keys, so that a receiver reads it beside the one of the registration. */
function asKeyFile({ id, kind, secret, ...times }: Rotated): object {
  if (kind === "apiKey") return { apiKey: secret, ...times };
  return { [kind]: [{ id, key: secret, ...times }] };
}

interface ArchiveOptions extends AccessOptions, JsonOption, ConfirmOption {
  readonly out: string;
}

function archiveCommand(context: CommandContext): Command {
  const made = command("archive", {
    summary: "write all that is stored of a partner to a file, then delete the partner",
    description:
      "The partner must be disabled, with nothing pending, no command in flight and no open batch; otherwise the " +
      "error says what prevents it. Each line of the file is a JSON object {table, row}; keys and cards are left " +
      "out. Nothing is deleted before the file is complete and on disk. After an interruption run it again, with " +
      "another file for the rest.",
    examples: ['paybell partner archive "Corner Shop" --out corner-shop.jsonl'],
  })
    .argument("<partner>", "its id or name")
    .requiredOption("--out <file>", "a new file that only you can read (0600)");
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, async (named: string, options: ArchiveOptions) => {
      const { out } = options;
      requireConfirmable(context, options, `The partner ${printable(named)} is deleted, with all its records.`);
      const connection = await readClientSettings(context, options);
      const id = await partnerIdOf(connection, named);
      const api = connection.operator();
      const path = `/operator/v1/partners/${encodeURIComponent(id)}`;
      const records = await streamToPrivateFile(context, out, () => api.stream(`${path}/archive`));
      await confirm(context, options, `The partner is deleted: its ${counted(records, "record")} are in ${out}.`);
      await api.delete(`${path}?records=${records}`);
      print(context, options, { id, file: out, records }, [
        `Deleted the partner. Its ${records} records are in ${out}, and nowhere else.`,
      ]);
      return exitCodes.ok;
    }),
  );
}
