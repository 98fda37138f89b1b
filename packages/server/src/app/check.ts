import { type Config, ConfigError } from "../config.ts";
import { firstFailure, messageOf } from "../errors.ts";
import { inspectKafka } from "../intake/kafka/inspect.ts";
import { type Inspection, inspectDatabase } from "../store/schema/inspection.ts";
import { IncompatibleSchema, type SchemaUrls } from "../store/schema/migrate.ts";
import { isTooOld, PostgresTooOld } from "../store/schema/postgres-version.ts";
import { isAlerting } from "./alert-targets.ts";
import { readCallbackCas } from "./callback-cas.ts";
import { acquirerFindings } from "./check-acquirers.ts";
import { type CheckFinding, error, ok, warning } from "./check-finding.ts";
import { databaseRemedy } from "./database-remedy.ts";
import { isUnverifiedRemote } from "./database-tls.ts";
import { withDatabase } from "./database-url.ts";
import { egressProxyFindings } from "./egress.ts";
import { feedFindings } from "./feed.ts";
import { requireIntakeFolder } from "./intake.ts";
import { kafkaConnection } from "./kafka.ts";
import { openMasterKey } from "./master-key.ts";
import { tracingFindings } from "./tracing.ts";

/** The same for a start. */
export const ownsTheSchema =
  "this role may change the schema: its connection can rewrite the audit and every MAC's mark";
const clockApartMaxMs = 2_000;

/** `paybell check`: whether a service can run with these settings, each finding with its remedy. */
export async function check(config: Config, signal?: AbortSignal): Promise<readonly CheckFinding[]> {
  const [ofDatabase, ofAcquirers] = await withDatabase(
    config,
    async (urls) => [await databaseFindings(urls, config), await acquirerFindings(urls, config)],
    signal,
  );
  return [
    ...ofDatabase,
    ...settingFindings(config),
    ...(await egressProxyFindings(config)),
    ...(await feedFindings(config)),
    ...(await callbackCaFindings(config)),
    ...(await intakeFindings(config)),
    ...(await kafkaFindings(config)),
    ...(await tracingFindings(config)),
    ...ofAcquirers,
  ];
}

async function databaseFindings({ databaseUrl, ownerUrl }: SchemaUrls, config: Config): Promise<CheckFinding[]> {
  const found = await inspectDatabase(databaseUrl).catch(firstFailure);
  if (found instanceof Error) {
    return [error("database", `cannot be reached: ${found.message}`, databaseRemedy(found))];
  }
  return [
    ok("database", `reachable, PostgreSQL ${found.version}`),
    isTooOld(found)
      ? error("version", `${found.version} is too old`, new PostgresTooOld(found.version).remedy)
      : ok("version", `${found.version} is supported`),
    ...found.durability.map(({ name, value }) =>
      value === "off"
        ? error(name, "is off: an accepted command can be lost", `Set ${name} = on.`)
        : ok(name, `is ${value}`),
    ),
    found.isReplica
      ? error("primary", "this server is a read-only replica", "Point DATABASE_URL to the primary.")
      : ok("primary", "this server accepts writes"),
    Math.abs(found.clockAheadMs) <= clockApartMaxMs
      ? ok("clock", `${Math.round(Math.abs(found.clockAheadMs))} ms from the database's`)
      : warning(
          "clock",
          `${(found.clockAheadMs / 1_000).toFixed(1)} s from the database's`,
          "Synchronise both machines' clocks with NTP: partners refuse IPNs whose time is off.",
        ),
    found.listenWorks
      ? ok("LISTEN", "notifications arrive")
      : warning(
          "LISTEN",
          "no notification arrived",
          "Connect directly or through a pooler in session mode; otherwise notifications may leave some 2 s later.",
        ),
    permissionFinding(found, ownerUrl !== undefined && ownerUrl !== null),
    schemaFinding(found.schema),
    await masterKeyFinding(config, found.masterKeyCheck),
  ];
}

function permissionFinding({ canCreate, schema }: Inspection, hasOwner: boolean): CheckFinding {
  const what = "permission";
  const isBehind = !(schema instanceof IncompatibleSchema) && schema.missing > 0;
  if (isBehind && !canCreate && !hasOwner) {
    const detail = "the schema is not up to date, and this role may not change it";
    return error(what, detail, "Run `paybell migrate` with PAYBELL_MIGRATION_DATABASE_URL.");
  }
  if (!canCreate) return ok(what, "reads and writes rows; another role owns the schema");
  return warning(what, ownsTheSchema, "Use two roles: docs/operator/production.md, Two roles.");
}

function schemaFinding(schema: Inspection["schema"]): CheckFinding {
  if (schema instanceof IncompatibleSchema) return error("schema", schema.message, schema.remedy);
  if (schema.applied === 0) return ok("schema", "is created at the first start");
  if (schema.newer > 0) return ok("schema", "is a newer version's, on which this one runs too");
  return ok(
    "schema",
    schema.missing === 0 ? "is this version's" : `is brought up to date by ${schema.missing} migrations`,
  );
}

async function masterKeyFinding(config: Config, kept: Buffer | undefined): Promise<CheckFinding> {
  const what = "master key";
  if (config.masterKey === null) {
    return error(what, "PAYBELL_MASTER_KEY is not set", "Set it; `openssl rand -base64 32` makes a new one.");
  }
  const masterKey = await openMasterKey(config).catch((failure: Error) => failure);
  if (masterKey instanceof Error) return error(what, masterKey.message, "Check PAYBELL_KMS and its settings.");
  if (kept === undefined) return ok(what, "is set, and will be used for this new database");
  if (masterKey.fits(kept)) return ok(what, "fits this database");
  return error(what, "does not fit this database", "Set the PAYBELL_MASTER_KEY that it was last started with.");
}

function settingFindings(config: Config): CheckFinding[] {
  return [
    ...(config.databaseUrl !== null && isUnverifiedRemote(config.databaseUrl)
      ? [
          warning(
            "database TLS",
            "the database is on another machine, and its TLS is not verified",
            "Add ?sslmode=verify-full to DATABASE_URL. If a private authority issued the server's certificate, add " +
              "&sslrootcert=<its PEM file> too.",
          ),
        ]
      : []),
    config.egressAddresses.length > 0
      ? ok("egress", `published to partners: ${config.egressAddresses.join(", ")}`)
      : warning(
          "egress",
          "no egress address is published",
          "Set PAYBELL_EGRESS_ADDRESSES, so that partners can put them on their allowlists.",
        ),
    isAlerting(config)
      ? ok("alerts", "are sent: `paybell alerts test` says whether they arrive")
      : warning(
          "alerts",
          "alerts are sent to nobody",
          "Set PAYBELL_ALERT_URL and PAYBELL_ALERT_SECRET, PAYBELL_ALERT_SLACK_URL or PAYBELL_ALERT_MAIL_URL.",
        ),
  ];
}

async function callbackCaFindings(config: Config): Promise<CheckFinding[]> {
  if (config.callbackCaFile === null) return [];
  const what = "callback CAs";
  try {
    const { length } = await readCallbackCas(config);
    return [ok(what, `${length} in addition to the well-known ones`)];
  } catch (failure) {
    if (!(failure instanceof ConfigError)) throw failure;
    return [error(what, failure.problems.join(" "), "Name a PEM file of certificate authorities.")];
  }
}

async function intakeFindings({ intakeFolder }: Config): Promise<CheckFinding[]> {
  if (intakeFolder === null) return [];
  const what = "intake folder";
  const failure = await requireIntakeFolder(intakeFolder).catch((problem: unknown) => problem);
  if (failure === undefined) return [ok(what, `files in ${intakeFolder} are read`)];
  if (!(failure instanceof ConfigError)) throw failure;
  return [error(what, failure.problems.join(" "), "Name a folder that this service may write to.")];
}

async function kafkaFindings(config: Config): Promise<CheckFinding[]> {
  const { kafkaTopic: topic, kafkaDeadLetterTopic: deadLetterTopic } = config;
  if (config.kafkaBrokers.length === 0 || topic === null) return [];
  const what = "Kafka";
  try {
    const connection = await kafkaConnection(config);
    return connection === undefined ? [] : [ok(what, await inspectKafka(connection, { topic, deadLetterTopic }))];
  } catch (failure) {
    return [
      error(what, messageOf(failure), "Check PAYBELL_KAFKA_BROKERS, the topics, and the settings of TLS and SASL."),
    ];
  }
}
