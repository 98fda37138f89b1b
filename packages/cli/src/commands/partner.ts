import type { Figures } from "@paybell/partner/client";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Api } from "../api.ts";
import { command, ends, group } from "../command.ts";
import { type ConfirmOption, confirm, counted, requireConfirmable, withConfirmation } from "../confirm.ts";
import {
  type AccessOptions,
  type ClientSettings,
  callsAsPartner,
  partnerIdOf,
  readClientSettings,
  withAccessOptions,
  withSealing,
} from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { definedOf, readCredentials } from "../credentials.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import { streamToPrivateFile, writePrivateFile } from "../keys/private-file.ts";
import { columns, type JsonOption, print } from "../output.ts";
import { keyKinds, partnerLines, type RegisteredPartner } from "../partners/partner.ts";
import { type RegistrationOptions, readRegistration, readSettings } from "../partners/registration.ts";
import { printable } from "../printable.ts";
import { propose, proposeOption } from "../proposals/proposal.ts";
import { readPages } from "../read-pages.ts";
import { figuresLines } from "../status/overview.ts";

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

interface AddOptions extends AccessOptions, JsonOption, RegistrationOptions {
  readonly out?: string;
  readonly partnerUrl?: string;
}

function addCommand(context: CommandContext): Command {
  const made = command("add", {
    summary: "register a partner",
    description:
      "Its keys are shown only once: --out writes them to a file that only you can read, which --credentials " +
      "takes. Settings without their own option go into --settings, under the names of the operator API.",
    examples: [
      'paybell partner add --name "Corner Shop" --call-back-url https://192.0.2.10/ipn \\\n' +
        "      --callback-addresses 192.0.2.10/32 --calling-addresses 192.0.2.0/24 --out corner-shop.json",
    ],
  })
    .option("--name <name>", "as the operator calls it")
    .option("--call-back-url <url>", "where its IPNs go when a command names no other")
    .option("--callback-addresses <cidr...>", "the addresses that may be called")
    .option("--calling-addresses <cidr...>", "the addresses that it calls from")
    .option("--wire-names <names>", "table or sample")
    .option("--time-zone <zone>", "IANA name, as Asia/Ho_Chi_Minh")
    .option("--settings <file>", "any other setting, as JSON")
    .option("--out <file>", "write its keys to a new file that only you can read (0600)")
    .option("--partner-url <url>", "where partners call, for the file; default: --url where that serves them too");
  return withSealing(withAccessOptions(made)).action(ends(context, (options: AddOptions) => add(context, options)));
}

async function add(context: CommandContext, options: AddOptions): Promise<ExitCode> {
  const { out } = options;
  // The sealing options are the new partner's: they say nothing of the connection.
  const api = (await readClientSettings(context, connectionOf(options))).operator();
  const settings = await readRegistration(context, options);
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
      const rows = partners.map(({ id, state, settings }) => [id, state, printable(settings.name)]);
      print(context, options, { items: partners }, columns(rows));
      return exitCodes.ok;
    }),
  );
}

function showCommand(context: CommandContext): Command {
  const made = command("show", {
    summary: "show a partner's settings and key versions, never a key",
    description: "With a partner's API key and no operator token it shows that partner itself.",
    examples: ["paybell partner show", "paybell partner show 01a1fc39-e58e-73fb-a49a-dce132454876"],
  }).argument("[id]", "default: the partner of the credentials");
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
  return connection.operator().get<RegisteredPartner>(pathOf(connection, id));
}

function pathOf(connection: ClientSettings, id: string | undefined): string {
  return `/operator/v1/partners/${encodeURIComponent(partnerIdOf(connection, id))}`;
}

interface SetOptions extends AccessOptions, JsonOption {
  readonly settings?: string;
  readonly propose?: true;
}

function setCommand(context: CommandContext): Command {
  const made = command("set", {
    summary: "change a partner's settings",
    description: "The file names the settings that change, as the operator API names them; the others stay.",
    examples: ["paybell partner set 01a1fc39-e58e-73fb-a49a-dce132454876 --settings change.json"],
  })
    .argument("[id]", "default: the partner of the credentials")
    .option("--settings <file>", "what changes, as JSON")
    .option(...proposeOption);
  return withAccessOptions(made).action(
    ends(context, async (id: string | undefined, options: SetOptions) => {
      if (options.settings === undefined) {
        throw new Failure("no change is given.", {
          code: "bad_usage",
          remedy: 'Name a file with --settings, such as {"maxInFlight": 64}.',
        });
      }
      const connection = await readClientSettings(context, connectionOf(options));
      const changes = await readSettings(context, options.settings);
      const [api, path] = [connection.operator(), pathOf(connection, id)];
      if (options.propose) return await propose(context, { api, path, input: changes }, options);
      const partner = await api.patch<RegisteredPartner>(path, changes);
      print(context, options, partner, partnerLines(partner));
      return exitCodes.ok;
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
    examples: [`paybell partner ${name} 01a1fc39-e58e-73fb-a49a-dce132454876`],
  }).argument("[id]", "default: the partner of the credentials");
  return withAccessOptions(made).action(
    ends(context, async (id: string | undefined, options: AccessOptions & JsonOption) => {
      const connection = await readClientSettings(context, options);
      const partner = await connection.operator().post<RegisteredPartner>(`${pathOf(connection, id)}/${name}`, {});
      print(context, options, partner, [`${printable(partner.settings.name)} ${done}.`]);
      return exitCodes.ok;
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
    .argument("[id]", "default: the partner of the credentials")
    .addOption(new Option("--span <span>", "the time up to now").choices(["hour", "day", "week"]).default("hour"));
  return withAccessOptions(made).action(
    ends(context, async (id: string | undefined, options: StatisticsOptions) => {
      const connection = await readClientSettings(context, options);
      const query = { span: options.span };
      const figures = callsAsPartner(connection, id)
        ? await connection.partner().get<Figures>("/v1/figures", query)
        : await connection.operator().get<Figures>(`${pathOf(connection, id)}/figures`, query);
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
      "paybell partner rotate apiKey --partner 01a1fc39-e58e-73fb-a49a-dce132454876 --overlap-hours 0",
    ],
  })
    .argument("<key>", `one of ${keyKinds.join(", ")}`)
    .option("--partner <id>", "default: the partner of the credentials")
    .addOption(new Option("--overlap-hours <hours>", "0 to 720; 0 after a leak").default(24).argParser(readHours))
    .option("--out <file>", "write the new version to a new file that only you can read (0600)")
    .option(...proposeOption);
  return withAccessOptions(withConfirmation(made, "with --overlap-hours 0: do it without asking")).action(
    ends(context, (key: string, options: RotateOptions) => rotate(context, key, options)),
  );
}

function readHours(text: string): number {
  const hours = Number(text);
  if (text.trim() !== "" && hours >= 0 && hours <= 720) return hours;
  throw new InvalidArgumentError("It must be a number from 0 to 720.");
}

async function rotate(context: CommandContext, key: string, options: RotateOptions): Promise<ExitCode> {
  const { out, overlapHours } = options;
  if (!keyKinds.some((kind) => kind === key)) {
    throw new Failure(`there is no key ${JSON.stringify(key)}: it is one of ${keyKinds.join(", ")}.`, {
      code: "unknown_key_kind",
    });
  }
  const connection = await readClientSettings(context, options);
  const api = connection.operator();
  const path = `${pathOf(connection, options.partner)}/keys/rotate`;
  if (options.propose) return propose(context, { api, path, input: { key, overlapHours } }, options);
  if (overlapHours === 0) await confirm(context, options, `The present ${key} is not valid any more from then on.`);
  const post = () => api.post<Rotated>(path, { key, overlapHours });
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
    examples: ["paybell partner archive 01a1fc39-e58e-73fb-a49a-dce132454876 --out corner-shop.jsonl"],
  })
    .argument("<id>", "the partner's")
    .requiredOption("--out <file>", "a new file that only you can read (0600)");
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, async (id: string, options: ArchiveOptions) => {
      const { out } = options;
      requireConfirmable(context, options, `The partner ${printable(id)} is deleted, with all its records.`);
      const api = (await readClientSettings(context, options)).operator();
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
