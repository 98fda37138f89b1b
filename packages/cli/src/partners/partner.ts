import { isDeepStrictEqual } from "node:util";
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { overlapHours } from "@paybell/contract";
import type { Figures, RotatedKey } from "@paybell/partner/client";
import type { Api } from "../client/api.ts";
import { calls, callsAsPartner, ofPartner, partnerIdOf, partnerPathOf } from "../client/connection.ts";
import { definedOf, readCredentials } from "../client/credentials.ts";
import { type RegisteredPartner, readPages } from "../client/lists.ts";
import { propose, proposeOption } from "../operators/proposal.ts";
import {
  type AnyCommand,
  command,
  confirm,
  counted,
  group,
  requireConfirmable,
  withConfirmation,
} from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { makeSecret, streamToPrivateFile, writePrivateFile } from "../shell/files.ts";
import { outOption } from "../shell/options.ts";
import { itemsOf, printable, recordLines, textOf } from "../shell/output.ts";
import { figuresLines } from "../status/top.ts";
import { readSettings, settingsHelp, withPartnerSettings } from "./settings.ts";

const keyKinds = ["apiKey", "encryptionKey", "signingKey", "webhookSecret"] as const;

/** Settings one on a line, then the key versions, which never show a key. */
function partnerLines({ id, state, settings, keys, createdAt }: RegisteredPartner): string[] {
  const width = Math.max(...Object.keys(settings).map((name) => name.length));
  return [
    printable(`${settings.name}  ${id}  ${state}, since ${createdAt}`),
    "",
    ...Object.entries(settings).map(([name, value]) => `  ${name.padEnd(width)}  ${textOf(value)}`),
    "",
    "Keys",
    ...keys.map(({ kind, id: version, activeFrom, expiresAt }) => {
      const end = expiresAt === null ? "" : `, ends ${expiresAt}`;
      return `  ${kind.padEnd(13)}  ${version}  from ${activeFrom}${end}`;
    }),
  ];
}

export function partnerCommand(context: CommandContext): AnyCommand {
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

function addCommand(context: CommandContext): AnyCommand {
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
    .option(...outOption)
    .option("--partner-url <url>", "where partners call, for the file; default: --url where that serves them too");
  return calls(context, withPartnerSettings(made), async (connection, options) => {
    const { out, partnerUrl } = options;
    const api = connection.operator();
    const settings = await readSettings(context, options);
    const baseUrl = partnerUrl ?? ((await servesPartners(api)) ? api.baseUrl : undefined);
    async function register() {
      const { id, ...keys } = await api.post<{ id: string }>("/operator/v1/partners", settings);
      const { cipher, encoding, signing, fields, wireNames } = settings;
      const sealing = readCredentials(definedOf({ cipher, encoding, signing, fields, wireNames }), "the answer");
      return { ...(baseUrl !== undefined && { baseUrl }), partnerId: id, ...keys, ...sealing };
    }
    const partner = out === undefined ? await register() : await writePrivateFile(context, out, register);
    const { partnerId } = partner;
    const lacksUrl = baseUrl === undefined ? ["It lacks baseUrl, where partners call: --partner-url adds it."] : [];
    if (out === undefined) {
      const keep = ["", "Keep the keys: they are shown only once.", ...lacksUrl];
      return { value: partner, lines: [...recordLines(partner), ...keep] };
    }
    const done = `Registered ${partnerId}. Its keys are in ${out}, and nowhere else.`;
    return { value: { partnerId, file: out }, lines: [done, ...lacksUrl] };
  });
}

/** In production operators have a listener of their own, which a partner cannot call. */
async function servesPartners(api: Api): Promise<boolean> {
  const { status } = await api.look("/v1/self");
  return status !== 404;
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", { summary: "list the partners", examples: ["paybell partner list"] });
  return calls(context, made, async (connection) =>
    itemsOf(await readPages<RegisteredPartner>(connection.operator(), "/operator/v1/partners"), [
      ["id", ({ id }) => id],
      ["state", ({ state }) => state],
      ["name", ({ settings }) => settings.name],
    ]),
  );
}

function showCommand(context: CommandContext): AnyCommand {
  const made = command("show", {
    summary: "show a partner's settings and key versions, never a key",
    description: "With a partner's API key and no operator token it shows that partner itself.",
    examples: ["paybell partner show", 'paybell partner show "Corner Shop"'],
  }).argument(...thePartner);
  return calls(context, made, async (connection, _, named) => {
    const partner = callsAsPartner(connection, named)
      ? await connection.partner().get<RegisteredPartner>("/v1/self")
      : await connection.operator().get<RegisteredPartner>(await partnerPathOf(connection, named));
    return { value: partner, lines: partnerLines(partner) };
  });
}

const thePartner = ["[partner]", "its id or name; default: the partner of the credentials"] as const;

function setCommand(context: CommandContext): AnyCommand {
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
  return calls(context, withPartnerSettings(made), async (connection, options, named) => {
    const changes = await readSettings(context, options);
    if (Object.keys(changes).length === 0) {
      throw new Failure("no change is given.", {
        code: "bad_usage",
        remedy: "`paybell partner set --help` lists the settings, such as --max-in-flight 64.",
      });
    }
    const [api, path] = [connection.operator(), await partnerPathOf(connection, named)];
    if (options.propose) return propose({ api, path, input: changes });
    const before = await api.get<RegisteredPartner>(path);
    const partner = await api.patch<RegisteredPartner>(path, changes);
    const lines = partnerLines(partner);
    if (!isDeepStrictEqual(before.settings, partner.settings)) return { value: partner, lines };
    const unchanged = ["Nothing changes: the settings were so before.", "", ...lines];
    return { value: partner, lines: unchanged, code: exitCodes.negative };
  });
}

const stateChanges = [
  { name: "pause", summary: "pause deliveries to a partner; commands and reports continue", done: "is paused" },
  { name: "resume", summary: "resume deliveries to a paused partner", done: "is active" },
  { name: "disable", summary: "refuse a partner's calls, and pause deliveries to it", done: "is disabled" },
] as const;

function stateCommand(context: CommandContext, { name, summary, done }: (typeof stateChanges)[number]): AnyCommand {
  const made = command(name, {
    summary,
    examples: [`paybell partner ${name} "Corner Shop"`],
    exitCodes: { 0: `it ${done} now`, 1: `it ${done} already` },
  }).argument(...thePartner);
  return calls(context, made, async (connection, _, named) => {
    const [api, path] = [connection.operator(), await partnerPathOf(connection, named)];
    const isAlready = `is ${(await api.get<RegisteredPartner>(path)).state}` === done;
    const partner = await api.post<RegisteredPartner>(`${path}/${name}`, {});
    const lines = [`${printable(partner.settings.name)} ${done}${isAlready ? " already" : ""}.`];
    return { value: partner, lines, code: isAlready ? exitCodes.negative : exitCodes.ok };
  });
}

function statisticsCommand(context: CommandContext): AnyCommand {
  const made = command("statistics", {
    summary: "show the statistics of deliveries to a partner: outcomes and latencies",
    description: "With a partner's API key and no operator token it shows that partner's own.",
    examples: ["paybell partner statistics --span day"],
  })
    .argument(...thePartner)
    .addOption(new Option("--span <span>", "the time up to now").choices(["hour", "day", "week"]).default("hour"));
  return calls(context, made, async (connection, { span }, named) => {
    const figures = callsAsPartner(connection, named)
      ? await connection.partner().get<Figures>("/v1/figures", { span })
      : await connection.operator().get<Figures>(`${await partnerPathOf(connection, named)}/figures`, { span });
    return { value: figures, lines: figuresLines(figures, context.stdout.columns ?? 80) };
  });
}

function rotateCommand(context: CommandContext): AnyCommand {
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
    .option(...outOption)
    .option(...proposeOption);
  const confirmed = withConfirmation(made, "with --overlap-hours 0: do it without asking");
  return calls(context, confirmed, async (connection, { out, overlapHours: hours, ...options }, key) => {
    if (!keyKinds.some((kind) => kind === key)) {
      throw new Failure(`there is no key ${JSON.stringify(key)}: it is one of ${keyKinds.join(", ")}.`, {
        code: "unknown_key_kind",
      });
    }
    const api = connection.operator();
    const path = `${await partnerPathOf(connection, options.partner)}/keys/rotate`;
    const input = { key, overlapHours: hours };
    if (options.propose) return propose({ api, path, input });
    if (hours === 0) await confirm(context, options, `The present ${key} is not valid any more from then on.`);
    return makeSecret(context, out, {
      make: () => api.post<RotatedKey>(path, input),
      secrets: ["secret"],
      lines: ({ kind, id, activeFrom, expiresOld }, place) => [
        `${kind}, version ${id}`,
        ...place,
        `Used from ${activeFrom}; the old version ends ${expiresOld}.`,
      ],
      written: asKeyFile,
    });
  });
}

function readHours(text: string): number {
  const hours = Number(text);
  if (text.trim() !== "" && hours >= 0 && hours <= overlapHours.max) return hours;
  throw new InvalidArgumentError(`It must be a number from 0 to ${overlapHours.max}.`);
}

/** In the shape of every file of keys, so that a receiver reads it beside the one of the registration. */
function asKeyFile({ id, kind, secret, ...times }: RotatedKey): object {
  if (kind === "apiKey") return { apiKey: secret, ...times };
  return { [kind]: [{ id, key: secret, ...times }] };
}

function archiveCommand(context: CommandContext): AnyCommand {
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
    .requiredOption(...outOption);
  return calls(context, withConfirmation(made), async (connection, options, named) => {
    const { out } = options;
    requireConfirmable(context, options, `The partner ${printable(named)} is deleted, with all its records.`);
    const id = await partnerIdOf(connection, named);
    const api = connection.operator();
    const path = await partnerPathOf(connection, id);
    const records = await streamToPrivateFile(context, out, () => api.stream(`${path}/archive`));
    await confirm(context, options, `The partner is deleted: its ${counted(records, "record")} are in ${out}.`);
    await api.delete(`${path}?records=${records}`);
    const done = `Deleted the partner. Its ${records} records are in ${out}, and nowhere else.`;
    return { value: { id, file: out, records }, lines: [done] };
  });
}
