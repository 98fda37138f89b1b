import { defaultRetrySeconds, retryBounds } from "../retry-schedule.ts";
import { accessSettings } from "./access-settings.ts";
import { hostAndPort, keyInHex } from "./acquirer-kind.ts";
import { alertSettings } from "./alert-settings.ts";
import { egressSettings } from "./egress-settings.ts";
import { intakeSettings } from "./intake-settings.ts";
import { addressRange, listOf, oneOf, postgresUrl, text, url, wholeNumber } from "./kind.ts";
import { oidcSettings } from "./oidc-settings.ts";
import { optional, setting } from "./setting.ts";
import { traceSettings } from "./trace-settings.ts";

/** Every setting. `Config`, the errors at startup and the reference page are derived from this list. */
export const settings = {
  home: setting({
    name: "PAYBELL_HOME",
    kind: text,
    default: ".paybell",
    meaning: "Folder of the sandbox's PostgreSQL and credentials, and of an operator token that `serve` creates.",
  }),
  host: setting({
    name: "PAYBELL_HOST",
    kind: text,
    default: "0.0.0.0",
    meaning:
      "Address on which `paybell serve` listens; `::` listens on IPv6 too. The sandbox listens " +
      "on 127.0.0.1 and ::1 only.",
  }),
  port: setting({
    name: "PAYBELL_PORT",
    kind: wholeNumber(1, 65_535),
    default: 7420,
    meaning: "Port on which the service listens for partners.",
  }),
  operatorHost: setting({
    name: "PAYBELL_OPERATOR_HOST",
    kind: text,
    default: "127.0.0.1",
    meaning:
      "Address on which `paybell serve` listens for operators: only there are the operator API, `/metrics` and " +
      "`/readyz`. The sandbox serves them on its only port.",
  }),
  operatorPort: setting({
    name: "PAYBELL_OPERATOR_PORT",
    kind: wholeNumber(1, 65_535),
    default: 7421,
    meaning: "Port of the operators' listener.",
  }),
  operatorAddresses: setting({
    name: "PAYBELL_OPERATOR_ADDRESSES",
    kind: listOf(addressRange, "IP addresses or CIDR ranges"),
    default: ["127.0.0.0/8", "::1/128"],
    meaning: "Addresses that may call the operators' listener.",
  }),
  partnersUrl: optional({
    name: "PAYBELL_PARTNERS_URL",
    kind: url("https:", "http:"),
    meaning:
      "Origin at which partners reach the service, such as https://paybell.example, for links that show a partner's " +
      "pages. Not set: such a link has no origin, and the operator adds it.",
  }),
  connectionsMax: setting({
    name: "PAYBELL_CONNECTIONS_MAX",
    kind: wholeNumber(8, 1_000_000),
    default: 4_096,
    unit: "connections",
    meaning:
      "Maximum connections of callers. A further one closes the one that has waited longest for a request or for the " +
      "rest of one. At most a quarter of them may be requests that wait for a partner's next notification.",
  }),
  headersTimeoutMs: setting({
    name: "PAYBELL_HEADERS_TIMEOUT_MS",
    kind: wholeNumber(100, 600_000),
    default: 10_000,
    unit: "milliseconds",
    meaning: "How long a caller may take to send the headers of a request.",
  }),
  requestTimeoutMs: setting({
    name: "PAYBELL_REQUEST_TIMEOUT_MS",
    kind: wholeNumber(100, 600_000),
    default: 30_000,
    unit: "milliseconds",
    meaning: "How long a caller may take to send a whole request, including its body.",
  }),
  keepAliveTimeoutMs: setting({
    name: "PAYBELL_KEEP_ALIVE_TIMEOUT_MS",
    kind: wholeNumber(1_000, 600_000),
    default: 72_000,
    unit: "milliseconds",
    meaning:
      "How long an idle connection stays open. It must be longer than in the proxy in front, or the proxy may " +
      "send a request into a connection that closes.",
  }),
  answerTimeoutMs: setting({
    name: "PAYBELL_ANSWER_TIMEOUT_MS",
    kind: wholeNumber(100, 3_600_000),
    default: 60_000,
    unit: "milliseconds",
    meaning: "How long a caller may take to read an answer. Then the connection is closed.",
  }),
  unreadBytesMax: setting({
    name: "PAYBELL_UNREAD_BYTES_MAX",
    kind: wholeNumber(1_048_576, 17_179_869_184),
    default: 64 * 1024 * 1024,
    unit: "bytes",
    meaning:
      "Maximum of answers that callers have not read yet, in total. Beyond it, connections of the caller with the " +
      "most are closed, the longest unread ones first.",
  }),
  partnerRequestsPerMinute: setting({
    name: "PAYBELL_PARTNER_REQUESTS_PER_MINUTE",
    kind: wholeNumber(1, 100_000_000),
    default: 600_000,
    unit: "requests",
    meaning: "Requests of one partner to one instance per minute. Further requests are answered 429.",
  }),
  partnerPullsPerMinute: setting({
    name: "PAYBELL_PARTNER_PULLS_PER_MINUTE",
    kind: wholeNumber(100, 100_000_000),
    default: 6_000,
    unit: "pages of 50 notifications",
    meaning: "Of these requests, pages of notifications. A page of 500 counts as ten.",
  }),
  partnerAsyncPerMinute: setting({
    name: "PAYBELL_PARTNER_ASYNC_PER_MINUTE",
    kind: wholeNumber(1, 100_000_000),
    default: 60_000,
    unit: "commands",
    meaning: "Of these requests, commands with `Prefer: respond-async`.",
  }),
  partnerRedeliveriesPerMinute: setting({
    name: "PAYBELL_PARTNER_REDELIVERIES_PER_MINUTE",
    kind: wholeNumber(1, 100_000_000),
    default: 600,
    unit: "requests",
    meaning:
      "Of these requests, redeliveries, test notifications, manual closings of endpoints, and changes of API keys " +
      "and of callback URLs.",
  }),
  partnerProcessorPercent: setting({
    name: "PAYBELL_PARTNER_PROCESSOR_PERCENT",
    kind: wholeNumber(1, 100),
    default: 20,
    unit: "percent",
    meaning:
      "Part of one instance's time that reading the requests of one partner, refusing them and making its pages may " +
      "take. Beyond it, its requests wait for up to a second, and then are answered 429.",
  }),
  anonymousPerMinute: setting({
    name: "PAYBELL_ANONYMOUS_PER_MINUTE",
    kind: wholeNumber(1, 100_000_000),
    default: 6_000,
    unit: "requests",
    meaning:
      "Requests without a key from one address (IPv6: one /64) per minute: health, metrics, documents. " +
      "Each 16 KiB of an answer count as one more.",
  }),
  docs: setting({
    name: "PAYBELL_DOCS",
    kind: oneOf(["on", "off"]),
    default: "on" as const,
    meaning: "Whether `/docs` and `/openapi.json` are served.",
  }),
  databaseUrl: optional({
    name: "DATABASE_URL",
    kind: postgresUrl,
    meaning: "PostgreSQL, version 15 or later, for the service. The sandbox brings its own, in PAYBELL_HOME.",
    secret: true,
  }),
  databaseConnections: setting({
    name: "PAYBELL_DATABASE_CONNECTIONS",
    kind: wholeNumber(4, 1_000),
    default: 16,
    unit: "connections",
    meaning:
      "Maximum connections to PostgreSQL of one process: a third for queries of people, the others for commands and " +
      "delivery. The lease has one in addition.",
  }),
  ...accessSettings,
  ...oidcSettings,
  trustedProxies: setting({
    name: "PAYBELL_TRUSTED_PROXIES",
    kind: listOf(addressRange, "IP addresses or CIDR ranges"),
    default: [],
    meaning:
      "Proxies whose X-Forwarded-For names the caller. Not set: the caller is the connected address, whatever a " +
      "header says.",
  }),
  ...egressSettings,
  ...alertSettings,
  ...traceSettings,
  logLevel: setting({
    name: "PAYBELL_LOG_LEVEL",
    kind: oneOf(["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
    default: "info",
    meaning: "The least severe log lines that are written; `debug` writes a line for each request.",
  }),
  slotsMax: setting({
    name: "PAYBELL_SLOTS_MAX",
    kind: wholeNumber(1, 65_536),
    default: 512,
    unit: "POSTs",
    meaning:
      "Maximum callbacks in flight of one process, of all its partners together. A partner gets one more " +
      "while it has fewer than are free, so that one partner alone has at most half of them.",
  }),
  bytesInFlightMax: setting({
    name: "PAYBELL_BYTES_IN_FLIGHT_MAX",
    kind: wholeNumber(8 * 1024 * 1024, 16 * 1024 * 1024 * 1024),
    default: 64 * 1024 * 1024,
    unit: "bytes",
    meaning: "Maximum content of all callbacks in flight of one process.",
  }),
  acquirer: optional({
    name: "PAYBELL_ACQUIRER",
    kind: oneOf(["simulator", "iso8583"]),
    meaning:
      "The acquirer of `serve`: `iso8583`, an acquirer's host, or `simulator`, which charges no card. Not " +
      "set: commands get 503 `no_acquirer`, and reports of a switch are accepted.",
  }),
  acquirerProfile: optional({
    name: "PAYBELL_ACQUIRER_PROFILE",
    kind: text,
    meaning: "JSON file of the host's profile, which describes its messages. Required with `iso8583`.",
  }),
  acquirerHosts: setting({
    name: "PAYBELL_ACQUIRER_HOSTS",
    kind: listOf(hostAndPort, "hosts, each as name:port"),
    default: [],
    meaning: "The acquirer's hosts, the preferred one first; if one fails, the next is used. Required with `iso8583`.",
  }),
  acquirerTls: setting({
    name: "PAYBELL_ACQUIRER_TLS",
    kind: oneOf(["on", "off"]),
    default: "on" as const,
    meaning: "`off`: the hosts are reached without TLS, for example over a private line with its own encryption.",
  }),
  acquirerCaFile: optional({
    name: "PAYBELL_ACQUIRER_CA_FILE",
    kind: text,
    meaning: "PEM file of the certificate authorities of the hosts. Not set: the well-known ones.",
  }),
  acquirerCertificateFile: optional({
    name: "PAYBELL_ACQUIRER_CERTIFICATE_FILE",
    kind: text,
    meaning: "PEM file of the client certificate for the hosts.",
  }),
  acquirerKeyFile: optional({
    name: "PAYBELL_ACQUIRER_KEY_FILE",
    kind: text,
    meaning: "PEM file of that certificate's private key.",
  }),
  acquirerMacKey: optional({
    name: "PAYBELL_ACQUIRER_MAC_KEY",
    kind: keyInHex([16, 24, 32]),
    meaning: "Key of the messages' MACs, if the profile requires them.",
    secret: true,
  }),
  acquirerKeyEncryptionKey: optional({
    name: "PAYBELL_ACQUIRER_KEY_ENCRYPTION_KEY",
    kind: keyInHex([16, 24, 32]),
    meaning: "Key under which the host encrypts new MAC keys, if the profile says that it sends them over the link.",
    secret: true,
  }),
  acquirerTimeoutMs: setting({
    name: "PAYBELL_ACQUIRER_TIMEOUT_MS",
    kind: wholeNumber(100, 600_000),
    default: 30_000,
    unit: "milliseconds",
    meaning: "How long the acquirer may take to answer before the command ends as ERROR 68 and is reversed.",
  }),
  ...intakeSettings,
  simulatorLatencyMs: setting({
    name: "PAYBELL_SIMULATOR_LATENCY_MS",
    kind: wholeNumber(0, 600_000),
    default: 0,
    unit: "milliseconds",
    meaning: "The time that the simulated acquirer takes for each answer.",
  }),
  simulatorLateByMs: setting({
    name: "PAYBELL_SIMULATOR_LATE_BY_MS",
    kind: wholeNumber(1, 600_000),
    default: 1_000,
    unit: "milliseconds",
    meaning: "How long after the acquirer's time-out the answer to `tok_late` comes.",
  }),
  simulatorOutage: setting({
    name: "PAYBELL_SIMULATOR_OUTAGE",
    kind: oneOf(["none", "not_sent", "no_answer"]),
    default: "none" as const,
    meaning:
      "An outage of the simulated acquirer: with `not_sent` no message is sent; with `no_answer` the bank processes " +
      "each message and its answer is lost. A restart without the setting ends it.",
  }),
  openTerminalsMax: setting({
    name: "PAYBELL_OPEN_TERMINALS_MAX",
    kind: wholeNumber(0, 1_000_000),
    default: 10_000,
    unit: "terminals",
    meaning:
      "How many terminals a partner with `terminals: open` may use without a registration. The first command on a " +
      "further one is refused (409 `too_many_terminals`).",
  }),
  preAuthDays: setting({
    name: "PAYBELL_PREAUTH_DAYS",
    kind: wholeNumber(1, 365),
    default: 30,
    unit: "days",
    meaning:
      "How long a PreAuth can be completed. It can be voided at any time, but after these days its card is deleted: " +
      "a host that wants the card again may refuse the Void.",
  }),
  metricsPartners: setting({
    name: "PAYBELL_METRICS_PARTNERS",
    kind: wholeNumber(0, 10_000),
    default: 200,
    unit: "partners",
    meaning:
      "How many partners have metrics of their own, each about thirty series; those beyond are counted together. " +
      "0: none has.",
  }),
  oldestPendingAlertS: setting({
    name: "PAYBELL_OLDEST_PENDING_ALERT_SECONDS",
    kind: wholeNumber(10, 2_592_000),
    default: 600,
    unit: "seconds",
    meaning: "Age of the oldest pending notification at which the operator is alerted, once an hour.",
  }),
  attemptTimeoutMs: setting({
    name: "PAYBELL_ATTEMPT_TIMEOUT_MS",
    kind: wholeNumber(100, 600_000),
    default: 15_000,
    unit: "milliseconds",
    meaning: "How long one callback may take in total.",
  }),
  connectTimeoutMs: setting({
    name: "PAYBELL_CONNECT_TIMEOUT_MS",
    kind: wholeNumber(50, 600_000),
    default: 5_000,
    unit: "milliseconds",
    meaning: "How long connecting may take, including TLS.",
  }),
  stopNoticeMs: setting({
    name: "PAYBELL_STOP_NOTICE_MS",
    kind: wholeNumber(0, 120_000),
    default: 3_000,
    unit: "milliseconds",
    meaning:
      "How long a stopping instance still accepts commands while /healthz and /readyz answer 503: the time that your " +
      "proxies take to notice.",
  }),
  drainTimeoutMs: setting({
    name: "PAYBELL_DRAIN_TIMEOUT_MS",
    kind: wholeNumber(0, 600_000),
    default: 25_000,
    unit: "milliseconds",
    meaning:
      "How long a stop waits for callbacks in flight. Unfinished ones are taken over by " +
      "another instance, or at the next start.",
  }),
  historyDays: setting({
    name: "PAYBELL_HISTORY_DAYS",
    kind: wholeNumber(8, 36_500),
    default: 90,
    unit: "days",
    meaning:
      "How long notifications and their attempts are kept: at least 7 days longer than a partner's retry schedule " +
      "lasts. A notification that is still pending then is parked, and parked ones are kept whatever their age.",
  }),
  proofDays: setting({
    name: "PAYBELL_PROOF_DAYS",
    kind: wholeNumber(8, 36_500),
    default: 1_095,
    unit: "days",
    meaning:
      "How long it can be proved that a notification was accepted: a short record of it is kept after its history " +
      "was dropped.",
  }),
  ledgerDays: setting({
    name: "PAYBELL_LEDGER_DAYS",
    kind: wholeNumber(8, 36_500),
    default: 400,
    unit: "days",
    meaning:
      "How long transactions, their batches, and the reqIds that make a command idempotent are kept. A transaction " +
      "that is in flight, in doubt or in an open batch, or whose notification is pending or parked, is kept whatever " +
      "its age, and so is its chain.",
  }),
  retrySeconds: setting({
    name: "PAYBELL_RETRY_SECONDS",
    kind: listOf(
      wholeNumber(1, retryBounds.stepSecondsMax),
      `at most ${retryBounds.stepsMax} whole numbers from 1 to ${retryBounds.stepSecondsMax}`,
      retryBounds.stepsMax,
    ),
    default: defaultRetrySeconds,
    unit: "seconds",
    meaning:
      "Waits after each failed attempt, for partners without their own schedule; after the last the notification is " +
      "parked.",
  }),
};
