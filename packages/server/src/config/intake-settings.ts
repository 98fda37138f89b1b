import { hostAndPort } from "./acquirer-kind.ts";
import { listOf, oneOf, text } from "./kind.ts";
import { optional, setting } from "./setting.ts";

/** The ways of reporting completions beside the operator API. */
export const intakeSettings = {
  intakeFolder: optional({
    name: "PAYBELL_INTAKE_FOLDER",
    kind: text,
    meaning:
      "Folder into which a switch puts files of completions, `*.csv` and `*.jsonl`. They are read by instances with " +
      "the role `all` or `api`, and moved to `done/` or `failed/` in it.",
  }),
  clearingFolder: optional({
    name: "PAYBELL_CLEARING_FOLDER",
    kind: text,
    meaning:
      "Folder with a folder for each acquirer, by its name (`default`: that of the settings), for its clearing " +
      "files. Instances with the role `all` or `api` read them, and move them to `done/` or `failed/` in it.",
  }),
  kafkaBrokers: setting({
    name: "PAYBELL_KAFKA_BROKERS",
    kind: listOf(hostAndPort, "brokers, each as name:port"),
    default: [],
    meaning: "Kafka brokers with a topic of completions. Not set: none is consumed.",
  }),
  kafkaTopic: optional({
    name: "PAYBELL_KAFKA_TOPIC",
    kind: text,
    meaning: "The topic, each message a completion in JSON; required with PAYBELL_KAFKA_BROKERS.",
  }),
  kafkaGroup: setting({
    name: "PAYBELL_KAFKA_GROUP",
    kind: text,
    default: "paybell",
    meaning: "Consumer group, the same for all instances: they share the topic's partitions.",
  }),
  kafkaDeadLetterTopic: optional({
    name: "PAYBELL_KAFKA_DEAD_LETTER_TOPIC",
    kind: text,
    meaning: "Topic to which refused messages and conflicts are sent as well. Not set: they are events only.",
  }),
  kafkaTls: setting({
    name: "PAYBELL_KAFKA_TLS",
    kind: oneOf(["on", "off"]),
    default: "on" as const,
    meaning: "`off`: the brokers are reached without TLS, for example inside one private network.",
  }),
  kafkaCaFile: optional({
    name: "PAYBELL_KAFKA_CA_FILE",
    kind: text,
    meaning: "PEM file of the certificate authorities of the brokers. Not set: the well-known ones.",
  }),
  kafkaCertificateFile: optional({
    name: "PAYBELL_KAFKA_CERTIFICATE_FILE",
    kind: text,
    meaning: "PEM file of the client certificate for the brokers.",
  }),
  kafkaKeyFile: optional({
    name: "PAYBELL_KAFKA_KEY_FILE",
    kind: text,
    meaning: "PEM file of that certificate's private key.",
  }),
  kafkaSasl: optional({
    name: "PAYBELL_KAFKA_SASL",
    kind: oneOf(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    meaning: "Mechanism with which the service signs in to the brokers. Not set: it does not sign in.",
  }),
  kafkaUser: optional({
    name: "PAYBELL_KAFKA_USER",
    kind: text,
    meaning: "User name at the brokers; required with PAYBELL_KAFKA_SASL.",
  }),
  kafkaPassword: optional({
    name: "PAYBELL_KAFKA_PASSWORD",
    kind: text,
    meaning: "Password at the brokers; required with PAYBELL_KAFKA_SASL.",
    secret: true,
  }),
};
