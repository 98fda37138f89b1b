import {
  addressRanges,
  descriptionOf,
  feedUrl,
  headerValue,
  hostAndPort,
  httpUrl,
  keyInHex,
  listOf,
  mailUrl,
  masterKeyText,
  oneOf,
  postgresUrl,
  proxyUrl,
  roleOfValue,
  type Setting,
  secret,
  section,
  setting,
  share,
  text,
  token,
  webhookSecret,
  wholeNumber,
} from "./kinds.ts";
import { defaultRetrySeconds, retryBounds } from "./retry-schedule.ts";

const port = wholeNumber(1, 65_535);
const milliseconds = (min: number, max: number) => wholeNumber(min, max, "milliseconds");
const seconds = (min: number, max: number) => wholeNumber(min, max, "seconds");
const days = (min: number, max: number) => wholeNumber(min, max, "days");
const perMinute = (unit: string) => wholeNumber(1, 100_000_000, unit);
const mebibyte = 1_024 * 1_024;

/** Every setting. `Config`, the errors at startup and the reference page are derived from this list. */
export const settings = {
  ...section("Listeners", {
    host: setting("PAYBELL_HOST", text, "0.0.0.0").means(
      "Address on which `paybell serve` listens; `::` listens on IPv6 too. The sandbox listens on 127.0.0.1 and ::1 " +
        "only.",
    ),
    port: setting("PAYBELL_PORT", port, 7420).means("Port on which the service listens for partners."),
    operatorHost: setting("PAYBELL_OPERATOR_HOST", text, "127.0.0.1").means(
      "Address on which `paybell serve` listens for operators: only there are the operator API, `/metrics` and " +
        "`/readyz`. The sandbox serves them on its only port.",
    ),
    operatorPort: setting("PAYBELL_OPERATOR_PORT", port, 7421).means("Port of the operators' listener."),
    operatorAddresses: setting("PAYBELL_OPERATOR_ADDRESSES", addressRanges, ["127.0.0.0/8", "::1/128"]).means(
      "Addresses that may call the operators' listener.",
    ),
    partnersUrl: setting("PAYBELL_PARTNERS_URL", httpUrl).means(
      "Origin at which partners reach the service, such as https://paybell.example, for links that show a partner's " +
        "pages. Not set: such a link has no origin, and the operator adds it.",
    ),
    docs: setting("PAYBELL_DOCS", oneOf(["on", "off"]), "on").means("Whether `/docs` and `/openapi.json` are served."),
    trustedProxies: setting("PAYBELL_TRUSTED_PROXIES", addressRanges, []).means(
      "Proxies whose X-Forwarded-For names the caller. Not set: the caller is the connected address, whatever a " +
        "header says.",
    ),
    stopNoticeMs: setting("PAYBELL_STOP_NOTICE_MS", milliseconds(0, 120_000), 3_000).means(
      "How long a stopping instance still accepts commands while /healthz and /readyz answer 503: the time that your " +
        "proxies take to notice.",
    ),
  }),
  ...section("Limits for callers", {
    connectionsMax: setting("PAYBELL_CONNECTIONS_MAX", wholeNumber(8, 1_000_000, "connections"), 4_096).means(
      "Maximum connections of callers. A further one closes the one that has waited longest for a request or for the " +
        "rest of one. At most a quarter of them may be requests that wait for a partner's next notification.",
    ),
    headersTimeoutMs: setting("PAYBELL_HEADERS_TIMEOUT_MS", milliseconds(100, 600_000), 10_000).means(
      "How long a caller may take to send the headers of a request.",
    ),
    requestTimeoutMs: setting("PAYBELL_REQUEST_TIMEOUT_MS", milliseconds(100, 600_000), 30_000).means(
      "How long a caller may take to send a whole request, including its body.",
    ),
    keepAliveTimeoutMs: setting("PAYBELL_KEEP_ALIVE_TIMEOUT_MS", milliseconds(1_000, 600_000), 72_000).means(
      "How long an idle connection stays open. It must be longer than in the proxy in front, or the proxy may send a " +
        "request into a connection that closes.",
    ),
    answerTimeoutMs: setting("PAYBELL_ANSWER_TIMEOUT_MS", milliseconds(100, 3_600_000), 60_000).means(
      "How long a caller may take to read an answer, or the next 64 KiB of an export. Then the connection is closed.",
    ),
    unreadBytesMax: setting(
      "PAYBELL_UNREAD_BYTES_MAX",
      wholeNumber(mebibyte, 16_384 * mebibyte, "bytes"),
      64 * mebibyte,
    ).means(
      "Maximum of answers that callers have not read yet, in total. Beyond it, connections of the caller with the " +
        "most are closed, the longest unread ones first.",
    ),
    partnerRequestsPerMinute: setting("PAYBELL_PARTNER_REQUESTS_PER_MINUTE", perMinute("requests"), 600_000).means(
      "Requests of one partner to one instance per minute. Further requests are answered 429.",
    ),
    partnerPullsPerMinute: setting(
      "PAYBELL_PARTNER_PULLS_PER_MINUTE",
      wholeNumber(100, 100_000_000, "pages of 50 notifications"),
      6_000,
    ).means("Of these requests, pages of notifications. A page of 500 counts as ten."),
    partnerAsyncPerMinute: setting("PAYBELL_PARTNER_ASYNC_PER_MINUTE", perMinute("commands"), 60_000).means(
      "Of these requests, commands with `Prefer: respond-async`.",
    ),
    partnerRedeliveriesPerMinute: setting("PAYBELL_PARTNER_REDELIVERIES_PER_MINUTE", perMinute("requests"), 600).means(
      "Of these requests, those that change something and are no commands: redeliveries, test notifications, tests and " +
        "manual closings of endpoints, and changes of keys and of callback URLs.",
    ),
    partnerProcessorPercent: setting("PAYBELL_PARTNER_PROCESSOR_PERCENT", wholeNumber(1, 100, "percent"), 20).means(
      "Part of one instance's time that one partner's requests may take: to read them, to refuse them, and to answer " +
        "what it asks. Making its pages of notifications may take as much again. Beyond it, its requests wait for up to " +
        "a second, and then are answered 429. The work of a command that runs does not count.",
    ),
    anonymousPerMinute: setting("PAYBELL_ANONYMOUS_PER_MINUTE", perMinute("requests"), 6_000).means(
      "Requests without a key from one address (IPv6: one /64) per minute: health, metrics, documents. Each 16 KiB of " +
        "an answer count as one more.",
    ),
  }),
  ...section("Database", {
    home: setting("PAYBELL_HOME", text, ".paybell").means(
      "Folder of the sandbox's PostgreSQL and credentials, and of an operator token that `serve` creates.",
    ),
    databaseUrl: secret("DATABASE_URL", postgresUrl).means(
      "PostgreSQL, version 15 or later, for the service. The sandbox brings its own, in PAYBELL_HOME.",
    ),
    databaseConnections: setting("PAYBELL_DATABASE_CONNECTIONS", wholeNumber(4, 1_000, "connections"), 16).means(
      "Maximum connections to PostgreSQL of one process: a third for queries of people, the others for commands and " +
        "delivery. The lease has one in addition.",
    ),
    migrationDatabaseUrl: secret("PAYBELL_MIGRATION_DATABASE_URL", postgresUrl).means(
      "The same database as DATABASE_URL, as the role that owns the schema. With it, the role of DATABASE_URL only " +
        "reads and writes rows. `paybell migrate` needs it; a service that starts after that command does not.",
    ),
    backupDatabaseUrl: secret("PAYBELL_BACKUP_DATABASE_URL", postgresUrl).means(
      "The server of DATABASE_URL, as a role with the attribute REPLICATION, for `paybell backup`. Not set: the role " +
        "of DATABASE_URL is used.",
    ),
  }),
  ...section("Master key", {
    masterKey: secret("PAYBELL_MASTER_KEY", masterKeyText).means(
      "Key under which the partners' keys are stored. `paybell serve` requires it; `openssl rand -base64 32` makes " +
        "one.",
    ),
    masterKeyOthers: secret("PAYBELL_MASTER_KEY_OTHERS", listOf(masterKeyText, "master keys"), []).means(
      "While the master key is rotated: further keys, which only decrypt. `paybell master-key rotate` encrypts their " +
        "values again under PAYBELL_MASTER_KEY.",
    ),
    kms: setting("PAYBELL_KMS", oneOf(["vault", "aws"])).means(
      "Key service that unwraps the master key at each start: `vault` is the transit engine of Vault or OpenBao, " +
        "`aws` the AWS Key Management Service. The master key is then the output of `paybell master-key new`, and " +
        "useless without the service.",
    ),
    kmsUrl: setting("PAYBELL_KMS_URL", httpUrl).means(
      "URL of the key service, such as https://vault.internal:8200. With `aws`, not set: that of the region " +
        "(https://kms.<region>.amazonaws.com).",
    ),
    kmsMount: setting("PAYBELL_KMS_MOUNT", text, "transit").means(
      "Path at which the transit engine of the key service is mounted.",
    ),
    kmsKey: setting("PAYBELL_KMS_KEY", text).means(
      "The key: its name in the transit engine, `paybell` if not set; with `aws` the id, the ARN or alias/… of a " +
        "symmetric key.",
    ),
    kmsTokenFile: setting("PAYBELL_KMS_TOKEN_FILE", text).means(
      "File with the token for Vault. The token's policy needs `update` on `decrypt`, and on `encrypt` to make a key.",
    ),
    awsRegion: setting("AWS_REGION", text).means(
      "Region of the key, such as eu-west-1. Required with PAYBELL_KMS=aws.",
    ),
    awsAccessKeyId: setting("AWS_ACCESS_KEY_ID", text).means(
      "Access key for AWS. Not set: the credentials of the container's agent (EKS, ECS), or of the EC2 instance's " +
        "role. They need kms:Decrypt on the key, and kms:Encrypt to make a master key.",
    ),
    awsSecretAccessKey: secret("AWS_SECRET_ACCESS_KEY", text).means("Secret of AWS_ACCESS_KEY_ID."),
    awsSessionToken: secret("AWS_SESSION_TOKEN", text).means(
      "Session token of AWS_ACCESS_KEY_ID, if that is temporary.",
    ),
    awsContainerUrl: setting("AWS_CONTAINER_CREDENTIALS_FULL_URI", httpUrl).means(
      "URL of the agent that has the pod's credentials. EKS sets it.",
    ),
    awsContainerPath: setting("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", text).means(
      "Path of the task's credentials at the agent, http://169.254.170.2. ECS sets it.",
    ),
    awsContainerTokenFile: setting("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", text).means(
      "File with the token for that agent. EKS sets it.",
    ),
  }),
  ...section("Operators", {
    operatorTokens: secret(
      "PAYBELL_OPERATOR_TOKEN",
      listOf(token, "tokens that cannot be guessed, such as `openssl rand -hex 32` prints"),
      [],
    ).means(
      "Bearer token of the operator API. Two of them during a rotation. Not set: `paybell serve` creates one and " +
        "keeps it in PAYBELL_HOME/operator.token.",
    ),
    keyProposalMinutes: setting("PAYBELL_KEY_PROPOSAL_MINUTES", wholeNumber(0, 10_080, "minutes"), 0).means(
      "Two admins for a key: what one proposes, another confirms within this time. It also holds for another admin, " +
        "for lower protection of a partner, and for this rule. The first start with it sets the rule in the database, " +
        "for every instance; from then on two admins change it there (`paybell proposal rule`). 0: not set.",
    ),
    oidcIssuer: setting("PAYBELL_OIDC_ISSUER", httpUrl).means(
      "OpenID provider at which operators sign in to the console, such as https://login.example/realms/staff. Not " +
        "set: operators sign in with a token only.",
    ),
    oidcClientId: setting("PAYBELL_OIDC_CLIENT_ID", text).means(
      "The console's client id at the provider; required with PAYBELL_OIDC_ISSUER.",
    ),
    oidcClientSecret: secret("PAYBELL_OIDC_CLIENT_SECRET", text).means(
      "The client's secret; required with PAYBELL_OIDC_ISSUER.",
    ),
    consoleUrl: setting("PAYBELL_CONSOLE_URL", httpUrl).means(
      "Origin at which operators' browsers reach the console, such as https://paybell-ops.example; required with " +
        "PAYBELL_OIDC_ISSUER. The redirect URI to register at the provider is this and /console/sign-in/callback. " +
        "Alerts link to the runbook there.",
    ),
    consoleSignIn: setting("PAYBELL_CONSOLE_SIGN_IN", oneOf(["any", "oidc"]), "any").means(
      "How operators sign in to the console: `oidc` refuses their tokens there, `any` takes both. Tokens still call " +
        "the operator API, and partners sign in with their API key.",
    ),
    oidcScopes: setting("PAYBELL_OIDC_SCOPES", listOf(text, "scopes", 20), ["openid", "profile"]).means(
      "Scopes that are asked for; `openid` must be among them.",
    ),
    oidcNameClaim: setting("PAYBELL_OIDC_NAME_CLAIM", text, "name").means(
      "Claim that names the operator in the console and in the audit.",
    ),
    oidcRoleClaim: setting("PAYBELL_OIDC_ROLE_CLAIM", text, "roles").means(
      "Claim that holds roles or groups, as a string or a list; `a.b` is the member b of the claim a.",
    ),
    oidcRoles: setting("PAYBELL_OIDC_ROLES", listOf(roleOfValue, descriptionOf(roleOfValue).description, 100), [
      "viewer=viewer",
      "operator=operator",
      "admin=admin",
    ]).means(
      "Which value of the claim gives which role, such as payments-admins=admin, support=viewer. The highest role " +
        "counts; without any, the sign-in is refused.",
    ),
  }),
  ...section("Acquirer and terminals", {
    acquirer: setting("PAYBELL_ACQUIRER", oneOf(["simulator", "iso8583"])).means(
      "The acquirer of `serve`: `iso8583`, an acquirer's host, or `simulator`, which charges no card. Not set: " +
        "commands get 503 `no_acquirer`, and reports of a switch are accepted.",
    ),
    acquirerProfile: setting("PAYBELL_ACQUIRER_PROFILE", text).means(
      "JSON file of the host's profile, which describes its messages. Required with `iso8583`.",
    ),
    acquirerHosts: setting("PAYBELL_ACQUIRER_HOSTS", listOf(hostAndPort, "hosts, each as name:port"), []).means(
      "The acquirer's hosts, the preferred one first; if one fails, the next is used. Required with `iso8583`.",
    ),
    acquirerTls: setting("PAYBELL_ACQUIRER_TLS", oneOf(["on", "off"]), "on").means(
      "`off`: the hosts are reached without TLS, for example over a private line with its own encryption.",
    ),
    acquirerCaFile: setting("PAYBELL_ACQUIRER_CA_FILE", text).means(
      "PEM file of the certificate authorities of the hosts. Not set: the well-known ones.",
    ),
    acquirerCertificateFile: setting("PAYBELL_ACQUIRER_CERTIFICATE_FILE", text).means(
      "PEM file of the client certificate for the hosts.",
    ),
    acquirerKeyFile: setting("PAYBELL_ACQUIRER_KEY_FILE", text).means("PEM file of that certificate's private key."),
    acquirerMacKey: secret("PAYBELL_ACQUIRER_MAC_KEY", keyInHex([16, 24, 32])).means(
      "Key of the messages' MACs, if the profile requires them.",
    ),
    acquirerKeyEncryptionKey: secret("PAYBELL_ACQUIRER_KEY_ENCRYPTION_KEY", keyInHex([16, 24, 32])).means(
      "Key under which the host encrypts new MAC keys, if the profile says that it sends them over the link.",
    ),
    acquirerTimeoutMs: setting("PAYBELL_ACQUIRER_TIMEOUT_MS", milliseconds(100, 600_000), 30_000).means(
      "How long the acquirer may take to answer before the command ends as ERROR 68 and is reversed.",
    ),
    clearingFolder: setting("PAYBELL_CLEARING_FOLDER", text).means(
      "Folder with a folder for each acquirer, by its name (`default`: that of the settings), for its clearing files. " +
        "Instances with the role `all` or `api` read them, and move them to `done/` or `failed/` in it.",
    ),
    openTerminalsMax: setting("PAYBELL_OPEN_TERMINALS_MAX", wholeNumber(0, 1_000_000, "terminals"), 10_000).means(
      "How many terminals a partner with `terminals: open` may use without a registration. The first command on a " +
        "further one is refused (409 `too_many_terminals`).",
    ),
    preAuthDays: setting("PAYBELL_PREAUTH_DAYS", days(1, 365), 30).means(
      "How long a PreAuth can be completed. It can be voided at any time, but after these days its card is deleted: a " +
        "host that wants the card again may refuse the Void.",
    ),
    simulatorLatencyMs: setting("PAYBELL_SIMULATOR_LATENCY_MS", milliseconds(0, 600_000), 0).means(
      "The time that the simulated acquirer takes for each answer.",
    ),
    simulatorLateByMs: setting("PAYBELL_SIMULATOR_LATE_BY_MS", milliseconds(1, 600_000), 1_000).means(
      "How long after the acquirer's time-out the answer to `tok_late` comes.",
    ),
    simulatorOutage: setting("PAYBELL_SIMULATOR_OUTAGE", oneOf(["none", "not_sent", "no_answer"]), "none").means(
      "An outage of the simulated acquirer: with `not_sent` no message is sent; with `no_answer` the bank processes " +
        "each message and its answer is lost. A restart without the setting ends it.",
    ),
  }),
  ...section("Completions from a switch", {
    intakeFolder: setting("PAYBELL_INTAKE_FOLDER", text).means(
      "Folder into which a switch puts files of completions, `*.csv` and `*.jsonl`. They are read by instances with " +
        "the role `all` or `api`, and moved to `done/` or `failed/` in it.",
    ),
    kafkaBrokers: setting("PAYBELL_KAFKA_BROKERS", listOf(hostAndPort, "brokers, each as name:port"), []).means(
      "Kafka brokers with a topic of completions. Not set: none is consumed.",
    ),
    kafkaTopic: setting("PAYBELL_KAFKA_TOPIC", text).means(
      "The topic, each message a completion in JSON; required with PAYBELL_KAFKA_BROKERS.",
    ),
    kafkaGroup: setting("PAYBELL_KAFKA_GROUP", text, "paybell").means(
      "Consumer group, the same for all instances: they share the topic's partitions.",
    ),
    kafkaDeadLetterTopic: setting("PAYBELL_KAFKA_DEAD_LETTER_TOPIC", text).means(
      "Topic to which refused messages and conflicts are sent as well. Not set: they are events only.",
    ),
    kafkaTls: setting("PAYBELL_KAFKA_TLS", oneOf(["on", "off"]), "on").means(
      "`off`: the brokers are reached without TLS, for example inside one private network.",
    ),
    kafkaCaFile: setting("PAYBELL_KAFKA_CA_FILE", text).means(
      "PEM file of the certificate authorities of the brokers. Not set: the well-known ones.",
    ),
    kafkaCertificateFile: setting("PAYBELL_KAFKA_CERTIFICATE_FILE", text).means(
      "PEM file of the client certificate for the brokers.",
    ),
    kafkaKeyFile: setting("PAYBELL_KAFKA_KEY_FILE", text).means("PEM file of that certificate's private key."),
    kafkaSasl: setting("PAYBELL_KAFKA_SASL", oneOf(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])).means(
      "Mechanism with which the service signs in to the brokers. Not set: it does not sign in.",
    ),
    kafkaUser: setting("PAYBELL_KAFKA_USER", text).means("User name at the brokers; required with PAYBELL_KAFKA_SASL."),
    kafkaPassword: secret("PAYBELL_KAFKA_PASSWORD", text).means(
      "Password at the brokers; required with PAYBELL_KAFKA_SASL.",
    ),
  }),
  ...section("Delivery", {
    egressAddresses: setting("PAYBELL_EGRESS_ADDRESSES", addressRanges, []).means(
      "Addresses from which callbacks are sent, published to partners for their allowlists.",
    ),
    callbackCaFile: setting("PAYBELL_CALLBACK_CA_FILE", text).means(
      "PEM file of certificate authorities that callbacks may use in addition to the well-known ones.",
    ),
    egressProxy: secret("PAYBELL_EGRESS_PROXY", proxyUrl).means(
      "Forward proxy, as http://user:password@proxy.internal:3128, for callbacks, alerts, the OpenID provider and the " +
        "key service: each connection is a tunnel (CONNECT) to the address that was checked. Not set: they are " +
        "direct.",
    ),
    egressProxyResolves: setting("PAYBELL_EGRESS_PROXY_RESOLVES", oneOf(["0", "1"]), "0").means(
      "`1`: the proxy is asked for names, and looks them up. The service cannot check their addresses then: the proxy " +
        "must refuse private, loopback and link-local ones.",
    ),
    egressProxyExcept: setting(
      "PAYBELL_EGRESS_PROXY_EXCEPT",
      listOf(text, "host names, domains such as .internal.example, IP addresses or CIDR ranges"),
      ["localhost", "127.0.0.0/8", "::1"],
    ).means("Hosts that are connected to directly. A range is about hosts that a URL names by their address."),
    slotsMax: setting("PAYBELL_SLOTS_MAX", wholeNumber(1, 65_536, "POSTs"), 512).means(
      "Maximum callbacks in flight of one process, of all its partners together. A partner gets one more while it has " +
        "fewer than are free, so that one partner alone has at most half of them.",
    ),
    bytesInFlightMax: setting(
      "PAYBELL_BYTES_IN_FLIGHT_MAX",
      wholeNumber(8 * mebibyte, 16_384 * mebibyte, "bytes"),
      64 * mebibyte,
    ).means("Maximum content of all callbacks in flight of one process."),
    attemptTimeoutMs: setting("PAYBELL_ATTEMPT_TIMEOUT_MS", milliseconds(100, 600_000), 15_000).means(
      "How long one callback may take in total.",
    ),
    connectTimeoutMs: setting("PAYBELL_CONNECT_TIMEOUT_MS", milliseconds(50, 600_000), 5_000).means(
      "How long connecting may take, including TLS.",
    ),
    drainTimeoutMs: setting("PAYBELL_DRAIN_TIMEOUT_MS", milliseconds(0, 600_000), 25_000).means(
      "How long a stop waits for callbacks in flight. Unfinished ones are taken over by another instance, or at the " +
        "next start.",
    ),
    retrySeconds: setting(
      "PAYBELL_RETRY_SECONDS",
      listOf(
        wholeNumber(1, retryBounds.stepSecondsMax, "seconds"),
        `at most ${retryBounds.stepsMax} whole numbers from 1 to ${retryBounds.stepSecondsMax}`,
        retryBounds.stepsMax,
      ),
      defaultRetrySeconds,
    ).means(
      "Waits after each failed attempt, for partners without their own schedule; after the last the notification is " +
        "parked.",
    ),
  }),
  ...section("Retention", {
    auditDays: setting("PAYBELL_AUDIT_DAYS", days(90, 36_500), 1_095).means("How long entries of the audit are kept."),
    historyDays: setting("PAYBELL_HISTORY_DAYS", days(8, 36_500), 90).means(
      "How long notifications and their attempts are kept: at least 7 days longer than a partner's retry schedule " +
        "lasts. A notification that is still pending then is parked, and parked ones are kept whatever their age.",
    ),
    proofDays: setting("PAYBELL_PROOF_DAYS", days(8, 36_500), 1_095).means(
      "How long it can be proved that a notification was accepted: a short record of it is kept after its history was " +
        "dropped.",
    ),
    ledgerDays: setting("PAYBELL_LEDGER_DAYS", days(8, 36_500), 400).means(
      "How long transactions, their batches, and the reqIds that make a command idempotent are kept. A transaction " +
        "that is in flight, in doubt or in an open batch, whose notification is pending or parked, or that an open " +
        "exception of clearing is about, is kept whatever its age, and so is its chain. A Reversal keeps it for as long " +
        "from its end.",
    ),
  }),
  ...section("Alerts and events", {
    feedUrl: setting("PAYBELL_FEED", feedUrl).means(
      "Target of every event and every entry of the audit: a file of JSON lines, or a collector of syslog (RFC 5424) " +
        "over TCP or TLS. One instance writes at a time.",
    ),
    alertUrl: secret("PAYBELL_ALERT_URL", httpUrl).means(
      "URL to which alerts are POSTed. Not set: alerts are events and metrics only.",
    ),
    alertAddresses: setting("PAYBELL_ALERT_ADDRESSES", addressRanges, ["0.0.0.0/0", "::/0"]).means(
      "Addresses that PAYBELL_ALERT_URL and PAYBELL_ALERT_SLACK_URL may lead to. Private and loopback addresses are " +
        "called only where a block inside their range is named.",
    ),
    alertSecret: secret("PAYBELL_ALERT_SECRET", webhookSecret).means(
      "Secret with which alerts are signed (Standard Webhooks); required with PAYBELL_ALERT_URL.",
    ),
    alertSlackUrl: secret("PAYBELL_ALERT_SLACK_URL", httpUrl).means(
      "Incoming webhook of Slack, Mattermost or a compatible service, to which alerts are POSTed as text.",
    ),
    alertMailUrl: secret("PAYBELL_ALERT_MAIL_URL", mailUrl).means(
      "Mail server for alerts, as smtp://user:password@mail.example:587. With a password TLS is required.",
    ),
    alertMailFrom: setting("PAYBELL_ALERT_MAIL_FROM", text).means(
      "Sender of the mails; required with PAYBELL_ALERT_MAIL_URL.",
    ),
    alertMailTo: setting("PAYBELL_ALERT_MAIL_TO", listOf(text, "mail addresses", 50), []).means(
      "Who gets the mails; required with PAYBELL_ALERT_MAIL_URL.",
    ),
    alertQuietS: setting("PAYBELL_ALERT_QUIET_SECONDS", seconds(0, 86_400), 300).means(
      "After an alert was sent, others of its kind wait this long, and are sent as one, with their number. 0: each is " +
        "sent separately.",
    ),
    oldestPendingAlertS: setting("PAYBELL_OLDEST_PENDING_ALERT_SECONDS", seconds(10, 2_592_000), 600).means(
      "Age of the oldest pending notification at which the operator is alerted, once an hour.",
    ),
  }),
  ...section("Logs, metrics and traces", {
    tracesEndpoint: secret("OTEL_EXPORTER_OTLP_ENDPOINT", httpUrl).means(
      "Collector to which traces are sent by OTLP over HTTP, such as http://collector:4318; `v1/traces` is appended. " +
        "Not set: there are no traces.",
    ),
    tracesHeaders: secret(
      "OTEL_EXPORTER_OTLP_HEADERS",
      listOf(headerValue, "headers, each as name=value with a percent-encoded value", 50),
      [],
    ).means("Headers of each export, such as `authorization=Bearer%20…`."),
    tracesServiceName: setting("OTEL_SERVICE_NAME", text, "paybell").means("The service's name in traces."),
    tracesSampler: setting(
      "OTEL_TRACES_SAMPLER",
      oneOf([
        "always_on",
        "always_off",
        "traceidratio",
        "parentbased_always_on",
        "parentbased_always_off",
        "parentbased_traceidratio",
      ]),
      "parentbased_always_on",
    ).means(
      "Which traces are exported. With `parentbased_…` the sampled flag of a caller's `traceparent` decides about its " +
        "request; the rest of the name decides about everything else.",
    ),
    tracesShare: setting("OTEL_TRACES_SAMPLER_ARG", share, 1).means(
      "For the samplers that end in `traceidratio`: the share that is exported, such as 0.05.",
    ),
    logLevel: setting(
      "PAYBELL_LOG_LEVEL",
      oneOf(["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
      "info",
    ).means("The least severe log lines that are written; `debug` writes a line for each request."),
    metricsPartners: setting("PAYBELL_METRICS_PARTNERS", wholeNumber(0, 10_000, "partners"), 200).means(
      "How many partners have metrics of their own, each about thirty series; those beyond are counted together. 0: " +
        "none has.",
    ),
  }),
};

type ValueOf<It> =
  It extends Setting<infer Value, infer Initial> ? (null extends Initial ? Value | null : Value) : never;
export type SettingKey = keyof typeof settings;

/** The configuration, read once at startup and passed in. Its secrets are printed and logged as "set". */
export type Config = { readonly [Key in SettingKey]: ValueOf<(typeof settings)[Key]> };
