import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { descriptionOf, type HostAndPort, type Setting } from "./kinds.ts";
import { historyMarginDays, scheduleDays } from "./retry-schedule.ts";
import { type Config, type SettingKey, settings } from "./settings.ts";

export type { Config, SettingKey };

/** Every invalid setting, one line each. No line contains the value of a secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/**
 * Reads every setting from the environment. An empty variable counts as not set.
 *
 * @param required settings without which this command does not start, such as `masterKey` for `paybell serve`
 * @throws ConfigError naming every problem at once.
 */
export function readConfig(given: NodeJS.ProcessEnv, required: readonly SettingKey[] = []): Config {
  const problems = unknownNames(given);
  const env = withSecretsOfFiles(given, problems);
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, env, problems)] as const);
  // The type follows the list: each key has the value that its kind read, or its default.
  const config = hideSecrets(Object.fromEntries(entries) as Config);
  for (const key of required) {
    if (isUnset(env[settings[key].name])) problems.push(`${settings[key].name} is required: ${settings[key].meaning}`);
  }
  problems.push(...contradictions(config));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** Every secret may be in a file, which `<name>_FILE` names: it is read as if it were in the environment. */
function withSecretsOfFiles(given: NodeJS.ProcessEnv, problems: string[]): NodeJS.ProcessEnv {
  const env = { ...given };
  for (const name of secretNames) {
    const path = env[fileOf(name)];
    if (isUnset(path)) continue;
    if (!isUnset(env[name])) {
      problems.push(`${name} and ${fileOf(name)} are both set: set one of them`);
      continue;
    }
    try {
      env[name] = readFileSync(path.trim(), "utf8");
    } catch (error) {
      // The message has the path and the reason, but nothing of the file's content.
      problems.push(`${fileOf(name)} cannot be read: ${(error as Error).message}`);
    }
  }
  return env;
}

export function settingNames(): readonly string[] {
  return [...Object.values(settings).map(({ name }) => name), ...secretNames.map(fileOf)];
}

const secretNames = Object.values(settings)
  .filter(({ isSecret }) => isSecret)
  .map(({ name }) => name);

function fileOf(secret: string): string {
  return `${secret}_FILE`;
}

function isUnset(value: string | undefined): value is undefined | "" {
  return value === undefined || value.trim() === "";
}

function readSetting(setting: Setting<unknown>, env: NodeJS.ProcessEnv, problems: string[]): unknown {
  const { name, kind, isSecret } = setting;
  const value = env[name];
  if (isUnset(value)) return setting.default;
  const { data, success } = kind.safeParse(value.trim());
  if (success) return data;
  const found = isSecret ? "found something else" : `found ${JSON.stringify(value)}`;
  problems.push(`${name} must be ${descriptionOf(kind).description}, ${found}`);
  return setting.default;
}

/** Settings of earlier versions, and what replaced them. */
const replaced: Readonly<Record<string, string>> = {
  PAYBELL_DELIVERY_WORKERS: "to use more processors, start more instances (docs/scaling.md)",
};

function unknownNames(env: NodeJS.ProcessEnv): string[] {
  const known = settingNames();
  return Object.keys(env)
    .filter((name) => name.startsWith("PAYBELL_") && !known.includes(name))
    .map((name) => {
      const instead = replaced[name];
      if (instead !== undefined) return `${name} is no longer a setting: ${instead}`;
      const suggestion = nearest(name, known);
      return suggestion === undefined
        ? `${name} is not a setting`
        : `${name} is not a setting; did you mean ${suggestion}?`;
    });
}

/** A copy has these as well, because they are enumerable. */
function hideSecrets(config: Config): Config {
  const hidden = { value: withoutSecrets, enumerable: true };
  return Object.defineProperties(config, { toJSON: hidden, [Symbol.for("nodejs.util.inspect.custom")]: hidden });
}

function withoutSecrets(this: Config) {
  const entries = Object.entries(settings).map(
    ([key, { isSecret }]) => [key, this[key as SettingKey], isSecret] as const,
  );
  return Object.fromEntries(entries.map(([key, value, isSecret]) => [key, isSecret && value !== null ? "set" : value]));
}

/** The known name with the smallest edit distance; undefined if even that is too different. */
function nearest(name: string, known: readonly string[]): string | undefined {
  // The prefix of every name does not count as similarity.
  const mostDistance = Math.ceil((name.length - "PAYBELL_".length) / 3);
  const ranked = known.map((candidate) => ({ candidate, distance: editDistance(name, candidate) }));
  return ranked.filter(({ distance }) => distance <= mostDistance).sort((a, b) => a.distance - b.distance)[0]
    ?.candidate;
}

/** Levenshtein: insertions, deletions and replacements of one letter. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

export interface ShownSetting {
  readonly name: string;
  /** Its topic. */
  readonly section: string;
  /** Null: not set. For a secret only whether it is set. */
  readonly value: string | null;
  readonly default: string | null;
  readonly source: "environment" | "default";
  readonly unit: string | null;
  readonly meaning: string;
}

/** Every setting without its secrets, in the order of the reference. */
export function shownSettings(config: Config): readonly ShownSetting[] {
  return Object.entries(settings).map(([key, setting]) => {
    const value: unknown = config[key as keyof Config];
    const isDefault = JSON.stringify(value) === JSON.stringify(setting.default);
    return {
      name: setting.name,
      section: setting.section,
      value: setting.isSecret && !isDefault ? "set" : shown(value),
      default: shown(setting.default),
      source: isDefault ? "default" : "environment",
      unit: descriptionOf(setting.kind).unit ?? null,
      meaning: setting.meaning,
    };
  });
}

function shown(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((item: unknown) => shown(item)).join(", ");
  return typeof value === "object" && "host" in value ? hostText(value as HostAndPort) : String(value);
}

/** As it is written in a setting. */
function hostText({ host, port }: HostAndPort): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Reads a file that a setting names. @throws ConfigError naming the setting and the file */
export async function readNamedFile(setting: string, path: string): Promise<Buffer> {
  return await readFile(path).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === "ENOENT" ? "does not exist" : `cannot be read: ${error.code ?? error.message}`;
    throw new ConfigError([`${setting} (${path}) ${why}`]);
  });
}

/** The files of a TLS connection; null: not set. */
interface TlsFiles {
  readonly ca: string | null;
  readonly certificate: string | null;
  readonly key: string | null;
}

/** Reads the PEM files of `PREFIX_CA_FILE`, `PREFIX_CERTIFICATE_FILE` and `PREFIX_KEY_FILE`. @throws ConfigError */
export async function readTlsFiles(
  prefix: string,
  files: TlsFiles,
): Promise<{ readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer }> {
  const read = async (name: string, path: string | null) =>
    path === null ? undefined : await readNamedFile(`${prefix}_${name}_FILE`, path);
  const [ca, cert, key] = await Promise.all([
    read("CA", files.ca),
    read("CERTIFICATE", files.certificate),
    read("KEY", files.key),
  ]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

/** What is required with a setting that has this value, or has any; and why, where that is not plain. */
const requirements: readonly (readonly [
  key: SettingKey,
  value: string | undefined,
  needs: readonly SettingKey[],
  why?: string,
])[] = [
  ["kms", "vault", ["kmsUrl", "kmsTokenFile"]],
  ["kms", "aws", ["kmsKey", "awsRegion"]],
  ["oidcIssuer", undefined, ["oidcClientId", "oidcClientSecret", "consoleUrl"]],
  ["consoleSignIn", "oidc", ["oidcIssuer"]],
  ["acquirer", "iso8583", ["acquirerProfile", "acquirerHosts"]],
  ["kafkaBrokers", undefined, ["kafkaTopic"]],
  ["kafkaSasl", undefined, ["kafkaUser", "kafkaPassword"]],
  ["alertUrl", undefined, ["alertSecret"], ": alerts are signed"],
  ["alertMailUrl", undefined, ["alertMailFrom", "alertMailTo"]],
];

/** One of each pair alone has no meaning. */
const pairs: readonly (readonly [one: SettingKey, other: SettingKey, of?: (config: Config) => boolean])[] = [
  ["awsAccessKeyId", "awsSecretAccessKey", ({ kms }) => kms === "aws"],
  ["kafkaCertificateFile", "kafkaKeyFile"],
  ["acquirerCertificateFile", "acquirerKeyFile", ({ acquirer }) => acquirer === "iso8583"],
];

const orders: readonly (readonly [key: SettingKey, rule: "at least" | "at most", other: SettingKey])[] = [
  ["ledgerDays", "at least", "historyDays"],
  ["ledgerDays", "at least", "preAuthDays"],
  ["headersTimeoutMs", "at most", "requestTimeoutMs"],
  ["connectTimeoutMs", "at most", "attemptTimeoutMs"],
];

/** Settings that are right alone and wrong together, one line each. */
function contradictions(config: Config): string[] {
  return [
    ...requirements
      .filter(([key, value]) => (value === undefined ? !isMissing(config[key]) : config[key] === value))
      .flatMap(([key, value, needs, why = ""]) => {
        const because = `with ${settings[key].name}${value === undefined ? "" : `=${value}`}${why}`;
        return needs
          .filter((one) => isMissing(config[one]))
          .map((one) => `${settings[one].name} is required ${because}`);
      }),
    ...pairs
      .filter(([one, other, of]) => (config[one] === null) !== (config[other] === null) && (of?.(config) ?? true))
      .map(([one, other]) => `${settings[one].name} and ${settings[other].name} are required together`),
    ...orders
      .filter(([key, rule, other]) => {
        const [least, most] = rule === "at least" ? [other, key] : [key, other];
        return Number(config[least]) > Number(config[most]);
      })
      .map(
        ([key, rule, other]) =>
          `${settings[key].name} must be ${rule} ${settings[other].name} (${String(config[other])}), ` +
          `found ${String(config[key])}`,
      ),
    ...insecureUrls(config),
    ...otherContradictions(config),
  ];
}

function isMissing(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

function insecureUrls(config: Config): string[] {
  const keys: readonly SettingKey[] = [
    ...(config.kms === null ? [] : (["kmsUrl"] as const)),
    ...(config.oidcIssuer === null ? [] : (["oidcIssuer", "consoleUrl"] as const)),
  ];
  return keys
    .filter((key) => config[key] !== null && !isSecure(String(config[key])))
    .map((key) => `${settings[key].name} must begin with https://, except on localhost`);
}

function isSecure(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || ["127.0.0.1", "[::1]", "localhost"].includes(hostname);
}

function otherContradictions(config: Config): string[] {
  const { historyDays, retrySeconds, oidcIssuer, oidcScopes, kafkaTopic, kafkaDeadLetterTopic } = config;
  const historyDaysMin = Math.ceil(scheduleDays(retrySeconds) + historyMarginDays);
  const problems: string[] = [];
  if (config.kms === null && [config.masterKey, ...config.masterKeyOthers].some((key) => typeof key === "string"))
    problems.push("PAYBELL_KMS is required with a master key that a key service wrapped");
  if (historyDays < historyDaysMin) {
    problems.push(
      `PAYBELL_HISTORY_DAYS must be at least ${historyDaysMin} (the length of PAYBELL_RETRY_SECONDS, ` +
        `and ${historyMarginDays} days), found ${historyDays}`,
    );
  }
  if (oidcIssuer !== null && !oidcScopes.includes("openid")) problems.push("PAYBELL_OIDC_SCOPES must hold openid");
  if (kafkaTopic !== null && kafkaTopic === kafkaDeadLetterTopic) {
    problems.push("PAYBELL_KAFKA_DEAD_LETTER_TOPIC must differ from PAYBELL_KAFKA_TOPIC");
  }
  return problems;
}
