import { Iso8583Acquirer } from "../acquirer/iso8583/iso8583.ts";
import { type Config, ConfigError } from "../config.ts";
import { type Inspection, inspectDatabase } from "../store/schema/inspection.ts";
import { type SchemaUrls, UnfitSchema } from "../store/schema/migrate.ts";
import { iso8583Options } from "./acquirer.ts";
import { isAlerting } from "./alert-targets.ts";
import { readCallbackCas } from "./callback-cas.ts";
import { isUnverifiedRemote } from "./database-tls.ts";
import { withDatabase } from "./database-url.ts";
import { openMasterKey } from "./master-key.ts";

/** One line of the preflight report. */
export interface CheckFinding {
  readonly level: "ok" | "warning" | "error";
  readonly what: string;
  readonly detail: string;
  /** The remedy; empty if none is needed. */
  readonly remedy: string;
}

const clockApartMaxMs = 2_000;
const versionMin = 150_000;
const acquirerTimeoutMs = 5_000;

/** `paybell check`: whether a service can run with these settings, each finding with its remedy. */
export async function check(config: Config): Promise<readonly CheckFinding[]> {
  const findings = await withDatabase(config, (urls) => databaseFindings(urls, config));
  return [
    ...findings,
    ...settingFindings(config),
    ...(await callbackCaFindings(config)),
    await acquirerFinding(config),
  ];
}

async function databaseFindings({ databaseUrl, ownerUrl }: SchemaUrls, config: Config): Promise<CheckFinding[]> {
  const found = await inspectDatabase(databaseUrl).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (found instanceof Error) {
    return [
      error("database", `cannot be reached: ${found.message}`, "Check DATABASE_URL, the server, and the way to it."),
    ];
  }
  return [
    ok("database", `reachable, PostgreSQL ${found.version}`),
    found.versionNumber >= versionMin
      ? ok("version", `${found.version} is supported`)
      : error("version", `${found.version} is too old`, "Use PostgreSQL 15 or later."),
    ...found.durability.map(({ name, value }) =>
      value === "off"
        ? error(name, "is off: an accepted command can be lost", `Set ${name} = on.`)
        : ok(name, `is ${value}`),
    ),
    found.isReplica
      ? error("primary", "this server is a read-only replica", "Point DATABASE_URL to the primary.")
      : ok("primary", "this server takes writes"),
    Math.abs(found.clockAheadMs) <= clockApartMaxMs
      ? ok("clock", `${Math.round(Math.abs(found.clockAheadMs))} ms from the database's`)
      : warning(
          "clock",
          `${(found.clockAheadMs / 1_000).toFixed(1)} s from the database's`,
          "Keep both machines' clocks by NTP: partners refuse IPNs whose time is off.",
        ),
    found.listenWorks
      ? ok("LISTEN", "notifications arrive")
      : warning(
          "LISTEN",
          "no notification arrived",
          "Connect directly or through a pooler in session mode; otherwise due work waits up to a second.",
        ),
    permissionFinding(found, ownerUrl !== undefined && ownerUrl !== null),
    schemaFinding(found.schema),
    await masterKeyFinding(config, found.masterKeyCheck),
  ];
}

function permissionFinding({ canCreate, schema }: Inspection, hasOwner: boolean): CheckFinding {
  const what = "permission";
  const isBehind = !(schema instanceof UnfitSchema) && schema.missing > 0;
  if (isBehind && !canCreate && !hasOwner) {
    const detail = "the schema is not up to date, and this role may not change it";
    return error(what, detail, "Run `paybell migrate` with PAYBELL_MIGRATION_DATABASE_URL.");
  }
  return ok(what, canCreate ? "may create tables" : "reads and writes rows; another role owns the schema");
}

function schemaFinding(schema: Inspection["schema"]): CheckFinding {
  if (schema instanceof UnfitSchema) return error("schema", schema.message, schema.remedy);
  if (schema.applied === 0) return ok("schema", "is made at the first start");
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
  if (masterKey instanceof Error) return error(what, masterKey.message, "Check PAYBELL_KMS and what belongs to it.");
  if (kept === undefined) return ok(what, "is set, and will be this new database's");
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
            "Add sslmode=verify-full to DATABASE_URL, and sslrootcert where its authority is your own.",
          ),
        ]
      : []),
    config.egressAddresses.length > 0
      ? ok("egress", `partners are told ${config.egressAddresses.join(", ")}`)
      : warning(
          "egress",
          "no egress address is published",
          "Set PAYBELL_EGRESS_ADDRESSES, so that partners can whitelist this service.",
        ),
    isAlerting(config)
      ? ok("alerts", "are sent: `paybell alerts test` says whether they arrive")
      : warning(
          "alerts",
          "nobody is told of alerts",
          "Set PAYBELL_ALERT_URL and PAYBELL_ALERT_SECRET, PAYBELL_ALERT_SLACK_URL or PAYBELL_ALERT_MAIL_URL.",
        ),
  ];
}

async function callbackCaFindings(config: Config): Promise<CheckFinding[]> {
  if (config.callbackCaFile === null) return [];
  const what = "callback CAs";
  try {
    const { length } = await readCallbackCas(config);
    return [ok(what, `${length} beside the well-known ones`)];
  } catch (failure) {
    if (!(failure instanceof ConfigError)) throw failure;
    return [error(what, failure.problems.join(" "), "Name a PEM file of certificate authorities.")];
  }
}

async function acquirerFinding(config: Config): Promise<CheckFinding> {
  const what = "acquirer";
  const remedy = "Connect a host with PAYBELL_ACQUIRER=iso8583, or report completions from your switch.";
  if (config.acquirer === null) return warning(what, "there is none: commands are refused", remedy);
  if (config.acquirer !== "iso8583") {
    return warning(what, "commands are answered by the simulator: no card is charged", remedy);
  }
  try {
    const acquirer = new Iso8583Acquirer(await iso8583Options(config));
    const isUp = await acquirer.isUpWithin(acquirerTimeoutMs);
    const { detail } = acquirer.health();
    await acquirer.close();
    return isUp
      ? ok(what, detail)
      : error(what, detail, "Check PAYBELL_ACQUIRER_HOSTS, the way to them, and the profile.");
  } catch (failure) {
    const detail = failure instanceof Error ? failure.message : String(failure);
    return error(what, detail, "Correct the file, or the setting that names it.");
  }
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
