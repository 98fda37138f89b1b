import { Iso8583Acquirer } from "../acquirer/iso8583/iso8583.ts";
import { idleProblems, matchProblems, oneSessionOf } from "../acquirer/iso8583/profile/read.ts";
import {
  type AcquirerLinks,
  type HostOptions,
  iso8583Options,
  withAcquirerLinks,
} from "../app/configured-acquirers.ts";
import { type EgressConfig, egressProxyOf, readCallbackCas } from "../app/egress.ts";
import { kafkaConnection, requireIntakeFolder } from "../app/intake.ts";
import { isAlerting } from "../app/observation/alerts.ts";
import { type Config, ConfigError } from "../config/config.ts";
import { NotConnected } from "../delivery/transport/egress-proxy.ts";
import { firstFailure, messageOf } from "../errors.ts";
import { feedTarget } from "../feed/targets.ts";
import { requireUsable } from "../intake/file-drop/progress.ts";
import { inspectKafka, type KafkaConnection } from "../intake/kafka.ts";
import { type Inspection, inspectDatabase } from "../store/schema/inspection.ts";
import { IncompatibleSchema, isTooOld, PostgresTooOld, type SchemaUrls } from "../store/schema/migrate.ts";
import { databaseRemedy, isUnverifiedRemote, withDatabase } from "./database.ts";
import { openMasterKey } from "./master-key.ts";

/** One line of the preflight report. */
export interface CheckFinding {
  readonly level: "ok" | "warning" | "error";
  readonly what: string;
  readonly detail: string;
  /** The remedy; empty if none is needed. */
  readonly remedy: string;
}

function ok(what: string, detail: string): CheckFinding {
  return { level: "ok", what, detail, remedy: "" };
}

function warning(what: string, detail: string, remedy: string): CheckFinding {
  return { level: "warning", what, detail, remedy };
}

function error(what: string, detail: string, remedy: string): CheckFinding {
  return { level: "error", what, detail, remedy };
}

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

export function permissionFinding(
  { canCreate, excessRights, schema }: Pick<Inspection, "canCreate" | "excessRights" | "schema">,
  hasOwner: boolean,
): CheckFinding {
  const what = "permission";
  const isBehind = !(schema instanceof IncompatibleSchema) && schema.missing > 0;
  if (isBehind && !canCreate && !hasOwner) {
    const detail = "the schema is not up to date, and this role may not change it";
    return error(what, detail, "Run `paybell migrate` with PAYBELL_MIGRATION_DATABASE_URL.");
  }
  if (canCreate) return warning(what, ownsTheSchema, "Use two roles: docs/operator/production.md, Two roles.");
  if (excessRights.length > 0) {
    return warning(
      what,
      `this role may change more than the service does, of ${excessRights.join(", ")}`,
      "Run `paybell migrate`, which takes it back. Releases of Citus before 13.1 cannot for partner_keys: upgrade Citus.",
    );
  }
  return ok(what, "reads and writes rows; another role owns the schema");
}

export function schemaFinding(schema: Inspection["schema"]): CheckFinding {
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

/** @param attempt says what works @returns that, or why it failed */
async function tried(what: string, remedy: string, attempt: () => Promise<string>): Promise<CheckFinding> {
  try {
    return ok(what, await attempt());
  } catch (failure) {
    return error(what, failure instanceof ConfigError ? failure.problems.join(" ") : messageOf(failure), remedy);
  }
}

async function callbackCaFindings(config: Config): Promise<CheckFinding[]> {
  if (config.callbackCaFile === null) return [];
  const count = async () => `${(await readCallbackCas(config)).length} in addition to the well-known ones`;
  return [await tried("callback CAs", "Name a PEM file of certificate authorities.", count)];
}

/** Nothing is made: as root it would belong to nobody who may write to it. */
export async function intakeFindings({ intakeFolder }: Pick<Config, "intakeFolder">): Promise<CheckFinding[]> {
  if (intakeFolder === null) return [];
  const read = () => requireIntakeFolder(intakeFolder, requireUsable).then(() => `files in ${intakeFolder} are read`);
  return [await tried("intake folder", "Name a folder that this service may write to.", read)];
}

async function kafkaFindings(config: Config): Promise<CheckFinding[]> {
  const { kafkaTopic: topic, kafkaDeadLetterTopic: deadLetterTopic } = config;
  if (config.kafkaBrokers.length === 0 || topic === null) return [];
  const remedy = "Check PAYBELL_KAFKA_BROKERS, the topics, and the settings of TLS and SASL.";
  // The settings name brokers.
  const inspect = async () =>
    inspectKafka((await kafkaConnection(config)) as KafkaConnection, { topic, deadLetterTopic });
  return [await tried("Kafka", remedy, inspect)];
}

const signOnTimeoutMs = 5_000;

/** Whether the acquirer of the settings and each registered one can be asked: each is signed on at, in its turn. */
async function acquirerFindings({ databaseUrl }: SchemaUrls, config: Config): Promise<CheckFinding[]> {
  const masterKey = await openMasterKey(config).catch(() => undefined);
  // Without the master key or the database, which have findings of their own, no registered acquirer is known.
  if (masterKey === undefined) return [await ofSettings(config, undefined)];
  return withAcquirerLinks(databaseUrl, masterKey, async (links) => {
    const names = await links.names().catch(() => undefined);
    if (names === undefined) return [await ofSettings(config, undefined)];
    const findings = [await ofSettings(config, links)];
    for (const name of names) findings.push(await ofRegistered(name, links));
    return findings;
  });
}

async function ofSettings(config: Config, links: AcquirerLinks | undefined): Promise<CheckFinding> {
  const what = "acquirer";
  const remedy = "Connect a host with PAYBELL_ACQUIRER=iso8583, or report completions from your switch.";
  if (config.acquirer === null) return warning(what, "there is none: commands are refused", remedy);
  if (config.acquirer !== "iso8583") {
    return warning(what, "commands are answered by the simulator: no card is charged", remedy);
  }
  try {
    const options = await iso8583Options(config);
    return await linkFinding(
      what,
      "",
      options,
      links,
      "Check PAYBELL_ACQUIRER_HOSTS, the network to them, and the profile.",
    );
  } catch (failure) {
    return error(what, messageOf(failure), "Correct the file, or the setting that names it.");
  }
}

async function ofRegistered(name: string, links: AcquirerLinks): Promise<CheckFinding> {
  const what = `acquirer ${name}`;
  const remedy = `Check its hosts, the network to them, and its profile: \`paybell acquirer show ${name}\`.`;
  try {
    const options = await links.registered(name);
    if (options === undefined) return warning(what, "was removed meanwhile", "Check again.");
    return await linkFinding(what, name, options, links, remedy);
  } catch (failure) {
    return error(what, `cannot be opened: ${messageOf(failure)}`, remedy);
  }
}

/** A second session would end the one that an instance has, where the host allows only one. */
async function linkFinding(
  what: string,
  name: string,
  options: HostOptions,
  links: AcquirerLinks | undefined,
  remedy: string,
): Promise<CheckFinding> {
  const problems = matchProblems(options.profile);
  if (problems.length > 0) return error(what, problems.join("; "), "Name fields in matchBy that tell requests apart.");
  const idle = idleProblems(options.profile);
  if (idle.length > 0) return error(what, idle.join("; "), "Correct these settings of the profile, or leave them out.");
  if (options.profile.network.sessions === "one" && links !== undefined) {
    const { leaseId, isUp, detail } = await links.sessionHolder(name);
    const told = `an instance has ${oneSessionOf(options.profile)}: ${detail}`;
    if (leaseId !== null) return isUp ? ok(what, told) : error(what, told, remedy);
  }
  const acquirer = new Iso8583Acquirer(links?.withShared(name, options) ?? options);
  try {
    const isUp = await acquirer.isUpWithin(signOnTimeoutMs);
    const { detail } = acquirer.health();
    return isUp ? ok(what, detail) : error(what, detail, remedy);
  } finally {
    await acquirer.close();
  }
}

const proxyTimeoutMs = 5_000;
/** A name that leads nowhere (RFC 6761): each answer but 407 says that the proxy accepts this service. */
const nowhere = "paybell-check.invalid";

/** @returns nothing without a proxy */
export async function egressProxyFindings(
  config: EgressConfig,
  timeoutMs = proxyTimeoutMs,
): Promise<readonly CheckFinding[]> {
  const proxy = egressProxyOf(config);
  if (proxy === undefined) return [];
  const what = "egress proxy";
  let end: () => unknown = () => undefined;
  const timer = setTimeout(() => end(), timeoutMs);
  const failure = await proxy
    .open(nowhere, 443, (it) => {
      end = () => it.destroy();
    })
    .then(() => undefined)
    .catch((problem: unknown) => problem)
    .finally(() => clearTimeout(timer));
  end();
  if (failure instanceof NotConnected && failure.status === 407) {
    return [error(what, `${proxy.name} answers 407`, "Set the user and password in PAYBELL_EGRESS_PROXY.")];
  }
  if (failure !== undefined && !(failure instanceof NotConnected)) {
    return [error(what, `${proxy.name} cannot be used: ${messageOf(failure)}`, "Check PAYBELL_EGRESS_PROXY.")];
  }
  if (!proxy.resolvesNames) return [ok(what, `${proxy.name} is asked for addresses that were checked`)];
  return [
    warning(
      what,
      `${proxy.name} looks names up: callbackAddresses cannot be checked`,
      "Let the proxy refuse private, loopback and link-local addresses, or unset PAYBELL_EGRESS_PROXY_RESOLVES.",
    ),
  ];
}

/** Nothing is written. */
export async function feedFindings({ feedUrl }: Pick<Config, "feedUrl">): Promise<readonly CheckFinding[]> {
  if (feedUrl === null) return [];
  const target = feedTarget(feedUrl);
  try {
    await target.open();
    return [ok("feed", `is written to ${target.name}`)];
  } catch (failure) {
    return [error("feed", `${target.name} cannot be written: ${messageOf(failure)}`, "Check PAYBELL_FEED.")];
  } finally {
    await target.end();
  }
}

/** Whether the collector of the settings accepts an export. */
export async function tracingFindings(config: Config): Promise<CheckFinding[]> {
  if (config.tracesEndpoint === null) return [];
  const what = "traces";
  const { probeCollector } = await import("../tracing/tracing.ts");
  try {
    await probeCollector(config);
    return [ok(what, "the collector accepts them")];
  } catch (failure) {
    const remedy = "Check OTEL_EXPORTER_OTLP_ENDPOINT (OTLP over HTTP, mostly port 4318) and its headers.";
    return [warning(what, `the collector does not accept them: ${messageOf(failure)}`, remedy)];
  }
}
