import { readFileSync } from "node:fs";
import { nearest } from "./config/nearest.ts";
import type { ServiceSetting } from "./config/setting.ts";
import { settings } from "./config/settings.ts";
import { historyMarginDays, scheduleDays } from "./retry-schedule.ts";

type ValueOf<It> = It extends ServiceSetting<infer Value, infer Default> ? Value | Default : never;
export type SettingKey = keyof typeof settings;

/** The configuration, read once at startup and passed in. Its secrets are printed and logged as "set". */
export type Config = { readonly [Key in SettingKey]: ValueOf<(typeof settings)[Key]> };

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

/** The variables that are settings. */
export function settingNames(): readonly string[] {
  return [...Object.values(settings).map(({ name }) => name), ...secretNames.map(fileOf)];
}

const secretNames = Object.values<ServiceSetting<unknown, unknown>>(settings)
  .filter(({ secret }) => secret === true)
  .map(({ name }) => name);

function fileOf(secret: string): string {
  return `${secret}_FILE`;
}

function isUnset(value: string | undefined): value is undefined | "" {
  return value === undefined || value.trim() === "";
}

function readSetting(setting: ServiceSetting<unknown, unknown>, env: NodeJS.ProcessEnv, problems: string[]): unknown {
  const value = env[setting.name];
  if (isUnset(value)) return setting.default;
  const read = setting.kind.read(value.trim());
  if (read !== undefined) return read;
  const found = setting.secret === true ? "found something else" : `found ${JSON.stringify(value)}`;
  problems.push(`${setting.name} must be ${setting.kind.description}, ${found}`);
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
      const suggestion = nearest(name, known, "PAYBELL_");
      return suggestion === undefined
        ? `${name} is not a setting`
        : `${name} is not a setting; did you mean ${suggestion}?`;
    });
}

function contradictions(config: Config): string[] {
  const historyDaysMin = Math.ceil(scheduleDays(config.retrySeconds) + historyMarginDays);
  const problems: string[] = [];
  if (config.historyDays < historyDaysMin) {
    problems.push(
      `PAYBELL_HISTORY_DAYS must be at least ${historyDaysMin} (the length of PAYBELL_RETRY_SECONDS, ` +
        `and ${historyMarginDays} days), found ${config.historyDays}`,
    );
  }
  if (config.ledgerDays < config.historyDays) {
    problems.push(
      `PAYBELL_LEDGER_DAYS must be at least PAYBELL_HISTORY_DAYS (${config.historyDays}), found ${config.ledgerDays}`,
    );
  }
  if (config.ledgerDays < config.preAuthDays) {
    problems.push(
      `PAYBELL_LEDGER_DAYS must be at least PAYBELL_PREAUTH_DAYS (${config.preAuthDays}), found ${config.ledgerDays}`,
    );
  }
  if (config.headersTimeoutMs > config.requestTimeoutMs) {
    problems.push(
      `PAYBELL_HEADERS_TIMEOUT_MS must be at most PAYBELL_REQUEST_TIMEOUT_MS (${config.requestTimeoutMs}), ` +
        `found ${config.headersTimeoutMs}`,
    );
  }
  if (config.connectTimeoutMs > config.attemptTimeoutMs) {
    problems.push(
      `PAYBELL_CONNECT_TIMEOUT_MS must be at most PAYBELL_ATTEMPT_TIMEOUT_MS (${config.attemptTimeoutMs}), ` +
        `found ${config.connectTimeoutMs}`,
    );
  }
  problems.push(...acquirerContradictions(config), ...keyServiceContradictions(config), ...oidcContradictions(config));
  problems.push(...kafkaContradictions(config));
  if (config.alertUrl !== null && config.alertSecret === null) {
    problems.push("PAYBELL_ALERT_SECRET is required with PAYBELL_ALERT_URL: alerts are signed");
  }
  if (config.alertMailUrl !== null && (config.alertMailFrom === null || config.alertMailTo.length === 0)) {
    problems.push("PAYBELL_ALERT_MAIL_FROM and PAYBELL_ALERT_MAIL_TO are required with PAYBELL_ALERT_MAIL_URL");
  }
  return problems;
}

function keyServiceContradictions(config: Config): string[] {
  const { masterKey, masterKeyOthers, kms, kmsUrl } = config;
  const problems: string[] = [];
  if (kms === null && [masterKey, ...masterKeyOthers].some((key) => typeof key === "string")) {
    problems.push("PAYBELL_KMS is required with a master key that a key service wrapped");
  }
  if (kms === null) return problems;
  if (kmsUrl !== null && !isSecure(kmsUrl)) {
    problems.push("PAYBELL_KMS_URL must begin with https://, except on localhost");
  }
  const needed: readonly SettingKey[] = kms === "aws" ? ["kmsKey", "awsRegion"] : ["kmsUrl", "kmsTokenFile"];
  for (const key of needed) {
    if (config[key] === null) problems.push(`${settings[key].name} is required with PAYBELL_KMS=${kms}`);
  }
  if (kms === "aws" && (config.awsAccessKeyId === null) !== (config.awsSecretAccessKey === null)) {
    problems.push("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are required together");
  }
  return problems;
}

function oidcContradictions(config: Config): string[] {
  const { oidcIssuer, consoleUrl, oidcScopes, consoleSignIn } = config;
  if (oidcIssuer === null) {
    return consoleSignIn === "oidc" ? ["PAYBELL_OIDC_ISSUER is required with PAYBELL_CONSOLE_SIGN_IN=oidc"] : [];
  }
  const problems = (["oidcClientId", "oidcClientSecret", "consoleUrl"] as const)
    .filter((key) => config[key] === null)
    .map((key) => `${settings[key].name} is required with PAYBELL_OIDC_ISSUER`);
  for (const [name, url] of Object.entries({ PAYBELL_OIDC_ISSUER: oidcIssuer, PAYBELL_CONSOLE_URL: consoleUrl })) {
    if (url !== null && !isSecure(url)) problems.push(`${name} must begin with https://, except on localhost`);
  }
  if (!oidcScopes.includes("openid")) problems.push("PAYBELL_OIDC_SCOPES must hold openid");
  return problems;
}

function kafkaContradictions(config: Config): string[] {
  const needs = (key: SettingKey, other: SettingKey) =>
    config[key] === null ? [`${settings[key].name} is required with ${settings[other].name}`] : [];
  const problems = config.kafkaBrokers.length > 0 ? needs("kafkaTopic", "kafkaBrokers") : [];
  if (config.kafkaSasl !== null) {
    problems.push(...needs("kafkaUser", "kafkaSasl"), ...needs("kafkaPassword", "kafkaSasl"));
  }
  if ((config.kafkaCertificateFile === null) !== (config.kafkaKeyFile === null)) {
    problems.push("PAYBELL_KAFKA_CERTIFICATE_FILE and PAYBELL_KAFKA_KEY_FILE are required together");
  }
  if (config.kafkaTopic !== null && config.kafkaTopic === config.kafkaDeadLetterTopic) {
    problems.push("PAYBELL_KAFKA_DEAD_LETTER_TOPIC must differ from PAYBELL_KAFKA_TOPIC");
  }
  return problems;
}

function isSecure(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || ["127.0.0.1", "[::1]", "localhost"].includes(hostname);
}

function acquirerContradictions(config: Config): string[] {
  if (config.acquirer !== "iso8583") return [];
  const problems: string[] = [];
  if (config.acquirerProfile === null) {
    problems.push("PAYBELL_ACQUIRER_PROFILE is required with PAYBELL_ACQUIRER=iso8583");
  }
  if (config.acquirerHosts.length === 0) {
    problems.push("PAYBELL_ACQUIRER_HOSTS is required with PAYBELL_ACQUIRER=iso8583");
  }
  if ((config.acquirerCertificateFile === null) !== (config.acquirerKeyFile === null)) {
    problems.push("PAYBELL_ACQUIRER_CERTIFICATE_FILE and PAYBELL_ACQUIRER_KEY_FILE are required together");
  }
  return problems;
}

function hideSecrets(config: Config): Config {
  const shown = () =>
    Object.fromEntries(
      Object.entries(config).map(([key, value]) => {
        const hidden = settings[key as SettingKey].secret === true && value !== null;
        return [key, hidden ? "set" : value];
      }),
    );
  return Object.defineProperties(config, {
    toJSON: { value: shown },
    [Symbol.for("nodejs.util.inspect.custom")]: { value: shown },
  });
}
