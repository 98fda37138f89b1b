import { randomBytes } from "node:crypto";
import { Option } from "@commander-js/extra-typings";
import { type ClientSettings, calls, callsAsPartner, ofPartner, partnerPathOf } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { meant, type RegisteredPartner } from "../client/lists.ts";
import { propose, proposeOption } from "../operators/proposal.ts";
import { type AnyCommand, acts, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { Failure } from "../shell/failure.ts";
import { makeSecret, writePrivateFile } from "../shell/files.ts";
import { outOption, wholeNumber } from "../shell/options.ts";
import { itemsOf, printable } from "../shell/output.ts";

type KeyVersion = RegisteredPartner["keys"][number];

const asWhom = "With an API key and no operator token, it is about that key's partner.";

export function apiKeyCommand(context: CommandContext): AnyCommand {
  return group("api-key", "give each of a partner's programs an API key of its own, and revoke it", [
    addCommand(context),
    listCommand(context),
    revokeCommand(context),
  ]);
}

/** The routes of the keys: the caller's own, or those of a partner that the operator names. */
async function keysOf(settings: ClientSettings, partner: string | undefined) {
  if (callsAsPartner(settings, partner)) {
    return { api: settings.partner(), record: "/v1/self", keys: "/v1/api-keys", isOwn: true };
  }
  const record = await partnerPathOf(settings, partner);
  return { api: settings.operator(), record, keys: `${record}/api-keys`, isOwn: false };
}

/** The API keys that are valid now. */
async function validKeys({ api, record }: Awaited<ReturnType<typeof keysOf>>, nowMs: number): Promise<KeyVersion[]> {
  const { keys } = await api.get<RegisteredPartner>(record);
  return keys.filter(
    ({ kind, expiresAt }) => kind === "apiKey" && (expiresAt === null || Date.parse(expiresAt) > nowMs),
  );
}

function addCommand(context: CommandContext): AnyCommand {
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
    .addOption(
      new Option("--scopes <scope...>", "what it may do")
        .choices(["read", "pull", "commands", "manage"] as const)
        .makeOptionMandatory(),
    )
    .option("--expires-in-days <days>", "1 to 3660; default: until it is revoked", wholeNumber(1, 3_660))
    .option(...ofPartner)
    .option(...outOption)
    .option(...proposeOption);
  return calls(context, made, async (settings, { scopes, expiresInDays, out, ...options }, name) => {
    const { api, record, keys, isOwn } = await keysOf(settings, options.partner);
    const input = definedOf({ name, scopes, expiresInDays });
    if (options.propose && isOwn) {
      throw new Failure("a partner's own API key needs no second admin.", {
        code: "nothing_to_propose",
        remedy: "Leave --propose out.",
      });
    }
    if (options.propose) return propose({ api, path: keys, input });
    return makeSecret(context, out, {
      async make() {
        const { id: partnerId } = await api.get<RegisteredPartner>(record);
        const { id, apiKey } = await api.post<{ id: string; apiKey: string }>(keys, input);
        // Operators may have a listener of their own, which no partner can call.
        return { ...(isOwn && { baseUrl: api.baseUrl }), partnerId, apiKeyId: id, apiKey };
      },
      secrets: ["apiKey"],
      lines: (added, place) => [`${printable(name)} may ${scopes.join(", ")}, as ${added.apiKeyId}.`, ...place],
    });
  });
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", {
    summary: "list the API keys that are valid, with scopes and last use; never a key itself",
    description: asWhom,
    examples: ["paybell api-key list", 'paybell api-key list --partner "Corner Shop"'],
  }).option(...ofPartner);
  return calls(context, made, async (settings, { partner }) =>
    itemsOf(await validKeys(await keysOf(settings, partner), context.nowMs()), [
      ["id", ({ id }) => id],
      ["name", ({ name }) => name ?? firstName],
      ["scopes", ({ scopes }) => scopes?.join(", ") ?? "everything"],
      ["use", statusOf],
    ]),
  );
}

/** The name of the key of the registration, which has none. */
const firstName = "(the first)";

function statusOf({ expiresAt, lastUsedAt }: KeyVersion): string {
  const used = typeof lastUsedAt === "string" ? `last used ${lastUsedAt}` : "never used";
  return expiresAt === null ? used : `${used}, ends ${expiresAt}`;
}

function revokeCommand(context: CommandContext): AnyCommand {
  const made = command("revoke", {
    summary: "revoke an API key, within five seconds everywhere",
    description: asWhom,
    examples: ["paybell api-key revoke till", "paybell api-key revoke 01a1fc39-e58e-73fb-a49a-dce132454876"],
  })
    .argument("<key>", "its id or name, as `paybell api-key list` shows them")
    .option(...ofPartner);
  return calls(context, withConfirmation(made), async (settings, options, text) => {
    const routes = await keysOf(settings, options.partner);
    const valid = await validKeys(routes, context.nowMs());
    const named = valid.map((key) => ({ id: key.id, names: [key.name ?? firstName], key }));
    const { id, names, key } = meant(named, text, "valid API key", "paybell api-key list");
    const what = `The API key ${printable(names.join())}, ${id} (${statusOf(key)}), is refused from then on.`;
    await confirm(context, options, what);
    const path = `${routes.keys}/${encodeURIComponent(id)}/revoke`;
    const revoked = await routes.api.post<{ id: string }>(path, {});
    return { value: revoked, lines: [`The API key ${revoked.id} is revoked.`] };
  });
}

/** Keys for tests. */
export function keysCommand(context: CommandContext): AnyCommand {
  const generate = command("generate", {
    summary: "make an encryption key, a signing key and a webhook secret",
    description:
      "They have the form of a partner's keys, and are for tests of your own receiver: a real partner gets its " +
      "keys by its registration. Without --out they are printed, as `NAME=value` for a shell's environment.",
    examples: ["paybell keys generate --out test-keys.json", "export $(paybell keys generate)"],
  }).option(...outOption);
  return group("keys", "make keys", [
    acts(context, generate, async ({ out }) => {
      if (out !== undefined) {
        await writePrivateFile(context, out, async () => generateKeys());
        return { value: { file: out }, lines: [`${out}: encryptionKey, signingKey, webhookSecret`] };
      }
      const keys = generateKeys();
      const lines = [
        `PAYBELL_ENCRYPTION_KEY=${keys.encryptionKey}`,
        `PAYBELL_SIGNING_KEY=${keys.signingKey}`,
        `PAYBELL_WEBHOOK_SECRET=${keys.webhookSecret}`,
      ];
      return { value: keys, lines };
    }),
  ]);
}

/** A partner's three keys, each of 32 random bytes and none shared, under the names of a registration. */
function generateKeys() {
  const key = () => randomBytes(32).toString("base64");
  return { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
}
