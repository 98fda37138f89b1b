import type { Command, OptionValues } from "@commander-js/extra-typings";
import { ciphers, encodings, fieldSets } from "@paybell/contract";
import type { ReceiverOptions } from "@paybell/partner";
import { type AnyCommand, acts } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { type ExitCode, Failure } from "../shell/failure.ts";
import { anyOf } from "../shell/options.ts";
import type { JsonOption, Result } from "../shell/output.ts";
import { type Api, api, type Key } from "./api.ts";
import {
  type Credentials,
  credentialsOfEnvironment,
  credentialsOfFile,
  definedOf,
  readCredentials,
} from "./credentials.ts";
import { partnerIdNamed } from "./lists.ts";

/** Whether a URL leads to this machine by its own name: no other name is asked of DNS. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

export type AccessOptions = {
  readonly url?: string | undefined;
  readonly credentials?: string | undefined;
  readonly allowHttp?: true | undefined;
};

/** Adds the options that say which service is meant. Keys are never options: a process list shows those. */
export function withAccessOptions<Args extends unknown[], Options extends OptionValues>(made: Command<Args, Options>) {
  return made
    .option("--url <url>", "URL of Paybell (PAYBELL_URL)")
    .option(...credentialsOption)
    .option(...allowHttpOption) as unknown as Command<Args, Options & AccessOptions>;
}

export const credentialsOption = [
  "--credentials <file>",
  "JSON with the keys, as registration gives them (PAYBELL_CREDENTIALS)",
] as const;
export const allowHttpOption = ["--allow-http", "allow http:// to other machines"] as const;

/**
 * A command that calls the service: adds the options that say which one, and sets the action, as `acts` does.
 *
 * @param action gets the connection, the options, and the arguments
 */
export function calls<Args extends unknown[], Options extends OptionValues>(
  context: CommandContext,
  made: Command<Args, Options>,
  action: (
    settings: ClientSettings,
    options: Options & AccessOptions & JsonOption,
    ...args: Args
  ) => Promise<Result | ExitCode>,
  ctrlC?: "finishes",
): AnyCommand {
  const command = withAccessOptions(made);
  const act = async (options: Options & AccessOptions & JsonOption, ...args: Args) => {
    // Options of the same names as a partner's settings say nothing of the connection.
    const { url, credentials, allowHttp } = options;
    return action(await readClientSettings(context, { url, credentials, allowHttp }), options, ...args);
  };
  return acts(context, command, act, ctrlC);
}

/** The option of a command about one partner, see `partnerIdOf`. */
export const ofPartner = ["--partner <partner>", "id or name; default: the partner of the credentials"] as const;
/** The option of a list, see `partnerFilter`. */
export const onlyPartner = ["--partner <partner>", "only those of this partner: its id or name"] as const;

export type SealingOptions = {
  readonly cipher?: string | undefined;
  readonly encoding?: string | undefined;
  readonly signing?: string | undefined;
  readonly fields?: string | undefined;
};

/** Adds the options that say how a partner's IPNs are sealed and signed, as registered. */
export function withSealing<Args extends unknown[], Options extends OptionValues>(made: Command<Args, Options>) {
  return made
    .option("--cipher <cipher>", `${anyOf(ciphers)} (PAYBELL_CIPHER)`)
    .option("--encoding <encoding>", `${anyOf(encodings)} (PAYBELL_ENCODING)`)
    .option("--signing <mode>", "fields, whole, or the agreed lists as JSON (PAYBELL_SIGNING)")
    .option("--fields <fields>", `${anyOf(fieldSets)} (PAYBELL_FIELDS)`) as unknown as Command<
    Args,
    Options & SealingOptions
  >;
}

/** The service's URL, and the caller's credentials. */
export interface ClientSettings {
  /** Flags, environment and file combined; the earlier one wins. */
  readonly credentials: Credentials;
  /** The partner API. @throws Failure where no URL or no API key is known */
  partner(): Api;
  /** The operator API. @throws Failure where no URL or no operator token is known */
  operator(): Api;
  /** Calls without any key, such as /readyz. @throws Failure where no URL is known */
  anyone(): Api;
}

/** @throws Failure naming what cannot be read, and never the value of a key */
export async function readClientSettings(
  context: CommandContext,
  options: AccessOptions & SealingOptions = {},
): Promise<ClientSettings> {
  const { url, cipher, encoding, signing, fields, allowHttp = false } = options;
  const flags = readCredentials(definedOf({ baseUrl: url, cipher, encoding, signing, fields }), "the options");
  const named = { ...credentialsOfEnvironment(context.env), ...flags };
  const file = await credentialsOfFile(context, options.credentials);
  // The sandbox's keys are for the sandbox: they are never sent elsewhere because of the current folder.
  const isOfAnother =
    file?.isSandbox === true && named.baseUrl !== undefined && !isSame(named.baseUrl, file.credentials.baseUrl);
  const credentials = isOfAnother ? named : { ...file?.credentials, ...named };
  const unused = isOfAnother ? ` (${file.path} is for ${file.credentials.baseUrl} and was not used)` : "";

  function callWith(what: string, variable: string, field: "apiKey" | "operatorToken"): Api {
    const baseUrl = readBaseUrl(credentials.baseUrl, allowHttp);
    const text = credentials[field];
    const place = named[field] === undefined ? file?.path : variable;
    const maker = field === "apiKey" ? "partner rotate apiKey" : "operator add";
    if (text !== undefined) return api(context, baseUrl, { ...keyOf(text, `the ${what} in ${place}`), maker });
    throw new Failure(`there is no ${what}${unused}.`, {
      code: "no_credentials",
      remedy: `Set ${variable}, or name a file that has it with --credentials.`,
    });
  }

  return {
    credentials,
    partner: () => callWith("API key", "PAYBELL_API_KEY", "apiKey"),
    operator: () => callWith("operator token", "PAYBELL_OPERATOR_TOKEN", "operatorToken"),
    anyone: () => api(context, readBaseUrl(credentials.baseUrl, allowHttp)),
  };
}

/** The error of a header that cannot be sent would quote the key. */
function keyOf(text: string, name: string): Omit<Key, "maker"> {
  if (/^[\x21-\x7e]+$/.test(text)) return { text, name };
  throw new Failure(`${name} has a line break, a space, or another character that is in no key.`, {
    code: "bad_credentials",
    remedy: "Copy it again, without quotation marks and without what follows it.",
  });
}

/** Whether two URLs lead to the same service: this machine has several names. */
function isSame(one: string, other = ""): boolean {
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const [a, b] = [new URL(one), new URL(other)];
  const sameHost = a.host === b.host || (isLoopback(a) && isLoopback(b) && a.port === b.port);
  return a.protocol === b.protocol && sameHost;
}

/** Whether a command is the partner's own: none is named, and the credentials have an API key and no operator token. */
export function callsAsPartner({ credentials }: ClientSettings, named: string | undefined): boolean {
  const { operatorToken, apiKey } = credentials;
  return named === undefined && apiKey !== undefined && operatorToken === undefined;
}

/**
 * The id of the partner that an operator names by id or name, or else of the one that the credentials are of.
 *
 * @throws Failure where neither is known, or the name is not that of one partner
 */
export async function partnerIdOf(settings: ClientSettings, named: string | undefined): Promise<string> {
  const known = named === undefined ? settings.credentials.partnerId : await partnerIdNamed(settings.operator(), named);
  if (known !== undefined) return known;
  throw new Failure("no partner is named.", {
    code: "no_partner",
    remedy: "`paybell partner list` lists them.",
  });
}

/** The path of that partner in the operator API. @throws Failure as `partnerIdOf` */
export async function partnerPathOf(settings: ClientSettings, named: string | undefined): Promise<string> {
  return `/operator/v1/partners/${encodeURIComponent(await partnerIdOf(settings, named))}`;
}

/** The id of the partner that a filter names; undefined for every partner. */
export async function partnerFilter(settings: ClientSettings, named: string | undefined): Promise<string | undefined> {
  return named === undefined ? undefined : partnerIdNamed(settings.operator(), named);
}

/** The receiver options for opening a partner's IPNs. @throws Failure naming each missing key */
export function receiverOptionsOf(credentials: Credentials): ReceiverOptions {
  const { encryptionKey, signingKey, webhookSecret, cipher, encoding, signing, fields } = credentials;
  if (encryptionKey !== undefined && signingKey !== undefined && webhookSecret !== undefined) {
    return { encryptionKey, signingKey, webhookSecret, ...definedOf({ cipher, encoding, signing, fields }) };
  }
  const missing = [
    ...(encryptionKey === undefined ? ["PAYBELL_ENCRYPTION_KEY"] : []),
    ...(signingKey === undefined ? ["PAYBELL_SIGNING_KEY"] : []),
    ...(webhookSecret === undefined ? ["PAYBELL_WEBHOOK_SECRET"] : []),
  ];
  throw new Failure(`there is no ${missing.join(", no ")}.`, {
    code: "no_credentials",
    remedy: "Set them, name a file that has them with --credentials, or work in the folder of a sandbox.",
  });
}

function readBaseUrl(text: string | undefined, allowHttp: boolean): string {
  if (text === undefined) {
    throw new Failure("the URL of Paybell is not set.", {
      code: "no_url",
      remedy: "Give --url or PAYBELL_URL, or work in the folder in which `paybell sandbox` runs.",
    });
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw badUrl("begins with neither https:// nor http://");
  }
  if (`${url.username}${url.password}${url.search}${url.hash}` !== "") throw badUrl("has more than a host and a port");
  if (url.protocol === "http:" && !isLoopback(url) && !allowHttp) {
    throw new Failure(`${url.origin} is another machine: over http:// anybody on the network could read the key.`, {
      code: "insecure_url",
      remedy: "Use https://, or --allow-http if you trust the network.",
    });
  }
  return text.replace(/(?<!\/)\/+$/, "");
}

/** The text itself is not shown, because it may be a pasted key. */
function badUrl(what: string): Failure {
  return new Failure(`the URL of Paybell ${what}.`, {
    code: "bad_url",
    remedy: "Give it as https://paybell.example or http://127.0.0.1:7420.",
  });
}
