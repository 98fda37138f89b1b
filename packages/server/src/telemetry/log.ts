import { type Logger, pino } from "pino";
import { messageOf } from "../errors.ts";

export type Log = Logger;

/** The logger of a part that only logs failures. */
export interface TroubleLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Values under these names are never logged, at any depth. Lower case, without separators. */
const secretNames = new Set([
  "authorization",
  "apikey",
  "token",
  "operatortoken",
  "operatortokens",
  "key",
  "keys",
  "masterkey",
  "encryptionkey",
  "signingkey",
  "webhooksecret",
  "alertsecret",
  "secret",
  "secrets",
  "password",
  "cookie",
  "databaseurl",
  "connectionstring",
  "card",
  "cardnumber",
  "cardholder",
  "cardtoken",
  "expdate",
  "track2",
  "pinblock",
  "emv",
  "data",
  "extradata",
  "facts",
  "body",
]);

/** The shapes of secrets inside a text, such as another library's error message. */
const secretShapes = /whsec_[\w+/=-]{16,}|\bpb[ov]?_[\w-]{16,}|(?<=\bBearer )[^\s"\\]+/g;
/**
 * The password in a URL, if an @ ends it. It also consumes text without an @: a pattern that requires it would read the
 * rest of the line again at each `://`, measured 25 s for 100 kB of them.
 */
const urlPassword = /(:\/\/[^:/@\s"]{0,64}:)[^@\s"]+(@?)/g;

const removed = "[removed]";
/** Deeper than anything that is logged on purpose. */
const depthMax = 6;

/**
 * Creates the log: one JSON object per line. Secrets and card data are removed by name at every depth, and by shape in
 * texts.
 *
 * @param stream receives the lines
 */
export function createLog(level: string, stream: { write(line: string): void }): Log {
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withoutSecrets },
      serializers: { err: describeError },
      hooks: { streamWrite: withoutSecretShapes },
    },
    stream,
  );
  // The bindings of a child bypass the formatters: pino removes its own one after the first logger.
  const child = log.child;
  log.child = function (this: Log, bindings, options) {
    return child.call(this, withoutSecrets(bindings), options) as never;
  };
  return log;
}

function withoutSecretShapes(line: string): string {
  const withoutPasswords = line.replace(urlPassword, (read: string, lead: string, at: string) =>
    at === "" ? read : `${lead}${removed}${at}`,
  );
  return withoutPasswords.replace(secretShapes, removed);
}

function withoutSecrets(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, isSecret(name) ? removed : shown(value, 1)]),
  );
}

function isSecret(name: string): boolean {
  return secretNames.has(name.replaceAll(/[-_]/g, "").toLowerCase());
}

function shown(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error) return describeError(value);
  if (value instanceof Date) return value.toISOString();
  if (depth === depthMax) return "[deep]";
  if (Array.isArray(value)) return value.map((item: unknown) => shown(item, depth + 1));
  if (Object.getPrototypeOf(value) !== Object.prototype) return `[${value.constructor?.name ?? "object"}]`;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, isSecret(name) ? removed : shown(item, depth + 1)]),
  );
}

/** An error without its other properties, because a database's error contains the refused row. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return shown(error, 1);
  const { name, stack, cause } = error;
  const message = messageOf(error);
  const code = "code" in error ? error.code : undefined;
  return {
    type: name,
    message,
    ...((typeof code === "string" || typeof code === "number") && { code }),
    stack,
    ...(cause !== undefined && { cause: describeError(cause) }),
  };
}
