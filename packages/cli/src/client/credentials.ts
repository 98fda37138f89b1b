import { chmod, readFile, realpath, rename, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  type Cipher,
  ciphers,
  type Encoding,
  encodings,
  type FieldSet,
  fieldSets,
  type Signing,
  signingProblems,
  type WireNames,
  wireNames,
} from "@paybell/contract";
import type { Keys, VersionedKey } from "@paybell/partner";
import type { CommandContext } from "../shell/context.ts";
import { Failure } from "../shell/failure.ts";
import { whyUnreadable, writePrivateFile } from "../shell/files.ts";
import { anyOf } from "../shell/options.ts";

/** Environment variables of the commands for partners and operators that the service itself does not read. */
export const clientVariables = {
  PAYBELL_URL: "Where Paybell is, as https://paybell.example",
  PAYBELL_CREDENTIALS: "A file of credentials, as --credentials names it",
  PAYBELL_API_KEY: "The partner's API key",
  PAYBELL_ENCRYPTION_KEY: "The partner's encryptionKey; several versions are separated by commas",
  PAYBELL_SIGNING_KEY: "The partner's signingKey; several versions are separated by commas",
  PAYBELL_WEBHOOK_SECRET: "The partner's webhookSecret; several versions are separated by commas",
  PAYBELL_CIPHER: `${anyOf(ciphers)}, as registered`,
  PAYBELL_ENCODING: `${anyOf(encodings)}, as registered`,
  PAYBELL_SIGNING: "fields, whole, or the agreed lists as JSON, as registered",
  PAYBELL_FIELDS: `${anyOf(fieldSets)}, as registered; both, separated by a comma, while that changes`,
  PAYBELL_WIRE_NAMES: `${anyOf(wireNames)}, as registered`,
} as const;

/** The caller's ids, keys and agreed settings. Each may come from another source. */
export interface Credentials {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly operatorToken?: string;
  readonly partnerId?: string;
  readonly encryptionKey?: Keys;
  readonly signingKey?: Keys;
  readonly webhookSecret?: Keys;
  readonly cipher?: Cipher;
  readonly encoding?: Encoding;
  readonly signing?: Signing;
  readonly fields?: FieldSet | readonly FieldSet[];
  readonly wireNames?: WireNames;
}

/** The environment's part. Several versions of a key, as during a rotation, are separated by commas. */
export function credentialsOfEnvironment(env: CommandContext["env"]): Credentials {
  const texts = {
    baseUrl: env["PAYBELL_URL"],
    apiKey: env["PAYBELL_API_KEY"],
    operatorToken: env["PAYBELL_OPERATOR_TOKEN"],
    encryptionKey: env["PAYBELL_ENCRYPTION_KEY"],
    signingKey: env["PAYBELL_SIGNING_KEY"],
    webhookSecret: env["PAYBELL_WEBHOOK_SECRET"],
    cipher: env["PAYBELL_CIPHER"],
    encoding: env["PAYBELL_ENCODING"],
    signing: env["PAYBELL_SIGNING"],
    fields: env["PAYBELL_FIELDS"],
    wireNames: env["PAYBELL_WIRE_NAMES"],
  };
  // An empty variable counts as not set.
  const set = Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== undefined && text !== ""));
  return readCredentials(set, "the environment");
}

export interface CredentialsFile {
  readonly path: string;
  /** The user did not name it: it is the sandbox's, found in this folder. */
  readonly isSandbox: boolean;
  readonly credentials: Credentials;
}

/** The named file, otherwise that of the sandbox in this folder; undefined if there is neither. */
export async function credentialsOfFile(context: CommandContext, named?: string): Promise<CredentialsFile | undefined> {
  const path = named ?? (context.env["PAYBELL_CREDENTIALS"] || undefined);
  const isSandbox = path === undefined;
  const home = context.env["PAYBELL_HOME"] || ".paybell";
  const shown = path ?? join(home, "sandbox.json");
  const text = await readFile(resolve(context.workingDirectory, shown), "utf8").catch(
    (error: NodeJS.ErrnoException) => {
      if (isSandbox && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined;
      throw badFile(shown, `cannot be read: ${whyUnreadable(error)}`);
    },
  );
  if (text === undefined) return undefined;
  const written = parse(text, shown);
  const content = inOneShape(written);
  if (content !== written) await rewrite(context, shown, content);
  return { path: shown, isSandbox, credentials: readCredentials(content, shown) };
}

const keyNames = ["encryptionKey", "signingKey", "webhookSecret"] as const;

/** The same content, unless the file is older: then it has `encryptionKeys` and the like, or `kind` and `secret`. */
function inOneShape(written: Values): Values {
  const { kind, secret, ...more } = written;
  if (typeof kind === "string" && typeof secret === "string")
    return kind === "apiKey" ? { apiKey: secret } : { [kind]: [{ ...more, key: secret }] };
  const older = keyNames.filter((name) => Array.isArray(written[`${name}s`]));
  if (older.length === 0) return written;
  const content: Record<string, unknown> = { ...written };
  for (const name of older) {
    const versions = written[`${name}s`] as readonly unknown[];
    content[name] = versions.map((one) => (typeof one === "string" ? { key: one } : one));
    delete content[`${name}s`];
  }
  return content;
}

async function rewrite(context: CommandContext, path: string, content: Values): Promise<void> {
  try {
    const place = await realpath(resolve(context.workingDirectory, path));
    const draft = `${place}.new`;
    await writePrivateFile(context, draft, async () => content);
    await chmod(draft, (await stat(place)).mode & 0o777);
    await rename(draft, place);
    context.stderr.write(`Warning: ${path} was in an older shape, and is rewritten.\n`);
  } catch (error) {
    const why = error instanceof Failure ? error.message : whyUnreadable(error as NodeJS.ErrnoException);
    context.stderr.write(`Warning: ${path} is in an older shape, and cannot be rewritten: ${why}\n`);
  }
}

function parse(text: string, path: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own words quote the file, and it holds keys.
    throw badFile(path, "is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw badFile(path, "is not a JSON object");
  return value as Readonly<Record<string, unknown>>;
}

function badFile(path: string, what: string): Failure {
  return new Failure(`${path} ${what}.`, {
    code: "bad_credentials_file",
    remedy: 'It is JSON as `paybell partner add` writes it: {"baseUrl": …, "apiKey": …, "encryptionKey": …}.',
  });
}

/**
 * Reads values by their names: `id` is a partner's id in the answer to its registration. Anything else in the file is
 * ignored.
 */
export function readCredentials(values: Readonly<Record<string, unknown>>, where: string): Credentials {
  const partnerId = textIn(values, "partnerId", where) ?? textIn(values, "id", where);
  const found = {
    baseUrl: textIn(values, "baseUrl", where),
    apiKey: textIn(values, "apiKey", where),
    operatorToken: textIn(values, "operatorToken", where),
    partnerId,
    encryptionKey: keysIn(values, "encryptionKey", where),
    signingKey: keysIn(values, "signingKey", where),
    webhookSecret: keysIn(values, "webhookSecret", where),
    cipher: oneOf(values, "cipher", ciphers, where),
    encoding: oneOf(values, "encoding", encodings, where),
    signing: signingIn(values, where),
    fields: fieldsIn(values, where),
    wireNames: oneOf(values, "wireNames", wireNames, where),
  };
  return definedOf(found);
}

/** Without what is undefined, so that one source does not hide another's. */
export function definedOf<Values extends object>(
  values: Values,
): { [Name in keyof Values]?: Exclude<Values[Name], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Values]?: Exclude<Values[Name], undefined>;
  };
}

type Values = Readonly<Record<string, unknown>>;

function textIn(values: Values, name: string, where: string): string | undefined {
  const value = values[name];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw badValue(where, `${name} is not a string`);
}

function keysIn(values: Values, name: string, where: string): Keys | undefined {
  const value = values[name];
  if (Array.isArray(value)) return value as VersionedKey[];
  const text = textIn(values, name, where);
  if (text === undefined || !text.includes(",")) return text;
  return text.split(",").map((key) => ({ key: key.trim() }));
}

function oneOf<Value extends string>(
  values: Values,
  name: string,
  allowed: readonly Value[],
  where: string,
): Value | undefined {
  const value = values[name];
  if (value === undefined) return undefined;
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw badValue(where, `${name} must be one of ${allowed.join(", ")}`);
}

/** One of them, both in a list, or both separated by a comma. */
function fieldsIn(values: Values, where: string): Credentials["fields"] {
  const value = values["fields"];
  const list: unknown[] = typeof value === "string" ? value.split(",") : [value].flat();
  if (value === undefined) return undefined;
  const found = list.flatMap((one) => fieldSets.filter((known) => known === one));
  if (found.length === 0 || found.length !== list.length)
    throw badValue(where, `fields must be ${fieldSets.join(" or ")}, or both separated by a comma`);
  return found;
}

/** `fields`, `whole`, or the agreed setting as JSON. */
function signingIn(values: Values, where: string): Signing | undefined {
  const value = values["signing"];
  if (value === undefined) return undefined;
  if (value === "fields" || value === "whole") return { mode: value };
  const signing = typeof value === "string" ? parseSigning(value, where) : value;
  const [problem] = signingProblems(Object(signing) as Signing, "extended");
  if (problem !== undefined) throw badValue(where, problem);
  return signing as Signing;
}

function parseSigning(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badValue(where, 'signing must be fields, whole, or JSON as {"mode": "fields", "card": ["id", …]}');
  }
}

function badValue(where: string, what: string): Failure {
  return new Failure(`in ${where}: ${what}.`, { code: "bad_configuration" });
}
