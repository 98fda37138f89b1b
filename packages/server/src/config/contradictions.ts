import { historyMarginDays, scheduleDays } from "./retry-schedule.ts";
import { type Config, type SettingKey, settings } from "./settings.ts";

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
export function contradictions(config: Config): string[] {
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
