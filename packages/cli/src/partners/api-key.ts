import { type Command, Option } from "commander";
import type { Api } from "../client/api.ts";
import {
  type AccessOptions,
  callsAsPartner,
  ofPartner,
  partnerIdOf,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import type { RegisteredPartner } from "../client/names.ts";
import { meant } from "../client/names.ts";
import { propose, proposeOption } from "../operators/propose.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { type ExitCode, exitCodes, Failure } from "../shell/failure.ts";
import { writePrivateFile } from "../shell/files.ts";
import { wholeNumber } from "../shell/options.ts";
import { type JsonOption, listed, print, printable, type TableColumn } from "../shell/output.ts";

interface OfPartner extends AccessOptions, JsonOption {
  readonly partner?: string;
}

type KeyVersion = RegisteredPartner["keys"][number];

const apiKeyScopes = ["read", "pull", "commands", "manage"];
const asWhom = "With an API key and no operator token, it is about that key's partner.";

export function apiKeyCommand(context: CommandContext): Command {
  return group("api-key", "give each of a partner's programs an API key of its own, and revoke it", [
    addCommand(context),
    listCommand(context),
    revokeCommand(context),
  ]);
}

/** The routes of the keys: the caller's own, or those of a partner that the operator names. */
async function keysOf(context: CommandContext, options: OfPartner) {
  const settings = await readClientSettings(context, options);
  const { partner } = options;
  if (callsAsPartner(settings, partner)) {
    return { api: settings.partner(), record: "/v1/self", keys: "/v1/api-keys", isOwn: true };
  }
  const record = `/operator/v1/partners/${encodeURIComponent(await partnerIdOf(settings, partner))}`;
  return { api: settings.operator(), record, keys: `${record}/api-keys`, isOwn: false };
}

interface AddOptions extends OfPartner {
  readonly scopes: readonly string[];
  readonly expiresInDays?: number;
  readonly out?: string;
  readonly propose?: true;
}

function addCommand(context: CommandContext): Command {
  const made = command("add", {
    summary: "make another API key, with scopes",
    description:
      "Scopes: read looks up transactions, notifications and endpoints. pull fetches notifications in the order of " +
      "their commits. commands runs commands. manage redelivers, sends test notifications, closes endpoints and " +
      `manages API keys. An API key cannot make one with a scope that it does not have itself. ${asWhom}`,
    examples: [
      "paybell api-key add till --scopes commands read --out till.json",
      'paybell api-key add reports --scopes read --partner "Corner Shop"',
    ],
  })
    .argument("<name>", "the program that it is for")
    .addOption(new Option("--scopes <scope...>", "what it may do").choices(apiKeyScopes).makeOptionMandatory())
    .option("--expires-in-days <days>", "1 to 3660; default: until it is revoked", wholeNumber(1, 3_660))
    .option(...ofPartner)
    .option("--out <file>", "write the key to a new file that only you can read (0600)")
    .option(...proposeOption);
  return withAccessOptions(made).action(
    ends(context, (name: string, options: AddOptions) => add(context, name, options)),
  );
}

async function add(context: CommandContext, name: string, options: AddOptions): Promise<ExitCode> {
  const { scopes, expiresInDays, out } = options;
  const { api, record, keys, isOwn } = await keysOf(context, options);
  const input = { name, scopes, ...(expiresInDays !== undefined && { expiresInDays }) };
  if (options.propose && isOwn) {
    throw new Failure("a partner's own API key needs no second admin.", {
      code: "nothing_to_propose",
      remedy: "Leave --propose out.",
    });
  }
  if (options.propose) return propose(context, { api, path: keys, input }, options);
  const post = async () => {
    const { id: partnerId } = await partnerAt(api, record);
    const { id, apiKey } = await api.post<{ id: string; apiKey: string }>(keys, input);
    // Operators may have a listener of their own, which no partner can call.
    return { ...(isOwn && { baseUrl: api.baseUrl }), partnerId, apiKeyId: id, apiKey };
  };
  const added = out === undefined ? await post() : await writePrivateFile(context, out, post);
  const { apiKey, ...rest } = added;
  print(context, options, out === undefined ? added : { ...rest, file: out }, [
    `${printable(name)} may ${scopes.join(", ")}, as ${added.apiKeyId}.`,
    ...(out === undefined ? [apiKey, "Keep it: it is shown this once."] : [`The key is in ${out}, and nowhere else.`]),
  ]);
  return exitCodes.ok;
}

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list the API keys that are valid, with scopes and last use; never a key itself",
    description: asWhom,
    examples: ["paybell api-key list", 'paybell api-key list --partner "Corner Shop"'],
  }).option(...ofPartner);
  return withAccessOptions(made).action(
    ends(context, async (options: OfPartner) => {
      const { api, record } = await keysOf(context, options);
      const { keys } = await partnerAt(api, record);
      const items = keys.filter((key) => key.kind === "apiKey" && isValid(key, context.nowMs()));
      print(context, options, { items }, listed(items, keyColumns));
      return exitCodes.ok;
    }),
  );
}

/** The name of the key of the registration, which has none. */
const firstName = "(the first)";

function isValid({ expiresAt }: KeyVersion, nowMs: number): boolean {
  return expiresAt === null || Date.parse(expiresAt) > nowMs;
}

const keyColumns: readonly TableColumn<KeyVersion>[] = [
  ["id", ({ id }) => id],
  ["name", ({ name }) => name ?? firstName],
  ["scopes", ({ scopes }) => scopes?.join(", ") ?? "everything"],
  ["use", statusOf],
];

function statusOf({ expiresAt, lastUsedAt }: KeyVersion): string {
  const used = typeof lastUsedAt === "string" ? `last used ${lastUsedAt}` : "never used";
  return expiresAt === null ? used : `${used}, ends ${expiresAt}`;
}

function revokeCommand(context: CommandContext): Command {
  const made = command("revoke", {
    summary: "revoke an API key, within five seconds everywhere",
    description: asWhom,
    examples: ["paybell api-key revoke till", "paybell api-key revoke 01a1fc39-e58e-73fb-a49a-dce132454876"],
  })
    .argument("<key>", "its id or name, as `paybell api-key list` shows them")
    .option(...ofPartner);
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, async (text: string, options: OfPartner & ConfirmOption) => {
      const { api, record, keys } = await keysOf(context, options);
      const valid = (await partnerAt(api, record)).keys.filter(
        (one) => one.kind === "apiKey" && isValid(one, context.nowMs()),
      );
      const named = valid.map((key) => ({ id: key.id, names: [key.name ?? firstName], key }));
      const { id, names, key } = meant(named, text, "valid API key", "paybell api-key list");
      await confirm(
        context,
        options,
        `The API key ${printable(names.join())}, ${id} (${statusOf(key)}), is refused from then on.`,
      );
      const revoked = await api.post<{ id: string }>(`${keys}/${encodeURIComponent(id)}/revoke`, {});
      print(context, options, revoked, [`The API key ${revoked.id} is revoked.`]);
      return exitCodes.ok;
    }),
  );
}

function partnerAt(api: Api, record: string): Promise<RegisteredPartner> {
  return api.get<RegisteredPartner>(record);
}
