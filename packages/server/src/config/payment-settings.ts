import { defaultRetrySeconds, retryBounds } from "../notification.ts";
import { addressRange, hostAndPort, keyInHex, listOf, oneOf, proxyUrl, text, wholeNumber } from "./kinds.ts";
import { secret, section, setting } from "./setting.ts";

export const acquirers = section("Acquirer and terminals", {
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
  acquirerTimeoutMs: setting("PAYBELL_ACQUIRER_TIMEOUT_MS", wholeNumber(100, 600_000, "milliseconds"), 30_000).means(
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
  preAuthDays: setting("PAYBELL_PREAUTH_DAYS", wholeNumber(1, 365, "days"), 30).means(
    "How long a PreAuth can be completed. It can be voided at any time, but after these days its card is deleted: a " +
      "host that wants the card again may refuse the Void.",
  ),
});

export const simulator = section("Acquirer and terminals", {
  simulatorLatencyMs: setting("PAYBELL_SIMULATOR_LATENCY_MS", wholeNumber(0, 600_000, "milliseconds"), 0).means(
    "The time that the simulated acquirer takes for each answer.",
  ),
  simulatorLateByMs: setting("PAYBELL_SIMULATOR_LATE_BY_MS", wholeNumber(1, 600_000, "milliseconds"), 1_000).means(
    "How long after the acquirer's time-out the answer to `tok_late` comes.",
  ),
  simulatorOutage: setting("PAYBELL_SIMULATOR_OUTAGE", oneOf(["none", "not_sent", "no_answer"]), "none").means(
    "An outage of the simulated acquirer: with `not_sent` no message is sent; with `no_answer` the bank processes " +
      "each message and its answer is lost. A restart without the setting ends it.",
  ),
});

export const completions = section("Completions from a switch", {
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
});

export const delivery = section("Delivery", {
  egressAddresses: setting("PAYBELL_EGRESS_ADDRESSES", listOf(addressRange, "IP addresses or CIDR ranges"), []).means(
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
    wholeNumber(8 * 1024 * 1024, 16 * 1024 * 1024 * 1024, "bytes"),
    64 * 1024 * 1024,
  ).means("Maximum content of all callbacks in flight of one process."),
  attemptTimeoutMs: setting("PAYBELL_ATTEMPT_TIMEOUT_MS", wholeNumber(100, 600_000, "milliseconds"), 15_000).means(
    "How long one callback may take in total.",
  ),
  connectTimeoutMs: setting("PAYBELL_CONNECT_TIMEOUT_MS", wholeNumber(50, 600_000, "milliseconds"), 5_000).means(
    "How long connecting may take, including TLS.",
  ),
  drainTimeoutMs: setting("PAYBELL_DRAIN_TIMEOUT_MS", wholeNumber(0, 600_000, "milliseconds"), 25_000).means(
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
});

export const retention = section("Retention", {
  auditDays: setting("PAYBELL_AUDIT_DAYS", wholeNumber(90, 36_500, "days"), 1_095).means(
    "How long entries of the audit are kept.",
  ),
  historyDays: setting("PAYBELL_HISTORY_DAYS", wholeNumber(8, 36_500, "days"), 90).means(
    "How long notifications and their attempts are kept: at least 7 days longer than a partner's retry schedule " +
      "lasts. A notification that is still pending then is parked, and parked ones are kept whatever their age.",
  ),
  proofDays: setting("PAYBELL_PROOF_DAYS", wholeNumber(8, 36_500, "days"), 1_095).means(
    "How long it can be proved that a notification was accepted: a short record of it is kept after its history was " +
      "dropped.",
  ),
  ledgerDays: setting("PAYBELL_LEDGER_DAYS", wholeNumber(8, 36_500, "days"), 400).means(
    "How long transactions, their batches, and the reqIds that make a command idempotent are kept. A transaction " +
      "that is in flight, in doubt or in an open batch, or whose notification is pending or parked, is kept " +
      "whatever its age, and so is its chain.",
  ),
});
