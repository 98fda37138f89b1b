import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { configuredAcquirer } from "../app/configured-acquirers.ts";
import { readCallbackCas } from "../app/egress.ts";
import { requireFreePort } from "../app/listeners.ts";
import { testAlerts } from "../app/observation/alerts.ts";
import { type InstanceRole, type Service, startService } from "../app.ts";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import type { AuditHead } from "../operators/audit.ts";
import { drainingLines, stoppedLines } from "../sandbox/output.ts";
import { outputStyleOf } from "../sandbox/output-text.ts";
import { startSandbox } from "../sandbox/sandbox.ts";
import { prepareSchema } from "../store/schema/migrate.ts";
import { createLog, type Log } from "../telemetry/log.ts";
import { type AuditExport, exportAuditOf, rotateAuditKeyOf, verifyAuditOf } from "./audit.ts";
import { type CheckFinding, check } from "./check.ts";
import { withDatabase } from "./database.ts";
import { newMasterKeyText, openMasterKey, rotateMasterKeyOf } from "./master-key.ts";
import {
  endAtUnhandled,
  guarded,
  interruptible,
  type StopSignals,
  stopSignalsOf,
  unlessAborted,
  writePrivately,
} from "./process.ts";

export interface RunContext {
  readonly process: NodeJS.Process;
}

/** `paybell sandbox`. @returns the exit code */
export async function runSandbox({ process }: RunContext): Promise<number> {
  const { stdout, stderr, env } = process;
  const style = outputStyleOf(stdout, env);
  const tell = (lines: readonly string[]) => void stdout.write(`${lines.join("\n")}\n`);
  return guarded(process, async () => {
    const config = readConfig(env);
    // The terminal shows the console output; the log only has errors.
    const log = createLog(env["PAYBELL_LOG_LEVEL"] ? config.logLevel : "error", stderr);
    const signals = stopSignalsOf(process);
    const sandbox = await startSandbox({ config, log, style, tell, workingDirectory: process.cwd() });
    const ended = await untilStopped(signals, sandbox.died);
    if (ended.died !== undefined) stderr.write(`PostgreSQL ended unexpectedly.\n${ended.died}\n`);
    tell(drainingLines({ inFlight: sandbox.inFlight(), atMostMs: config.drainTimeoutMs }, style));
    const pending = await orSecond(signals, sandbox);
    if (pending !== undefined) tell(stoppedLines({ pending }, style));
    return ended.died === undefined ? 0 : 1;
  });
}

/** `paybell serve`. @returns the exit code */
export async function runServe({ process }: RunContext, role: InstanceRole = "all"): Promise<number> {
  const { stdout, env } = process;
  return guarded(process, async () => {
    const config = readConfig(env, ["databaseUrl", "masterKey"]);
    const log = createLog(config.logLevel, stdout);
    endAtUnhandled(process, log);
    const signals = stopSignalsOf(process);
    // readConfig has required it.
    const starting = serve(config, config.databaseUrl as string, log, role);
    const service = await Promise.race([starting, signals.second.then(() => undefined)]);
    if (service === undefined) {
      log.info("stopped before it was ready");
      return 0;
    }
    const signal = await signals.first;
    log.info({ signal, inFlight: service.inFlight() }, "stopping: not ready from now on");
    const pending = await orSecond(signals, { stop: () => service.stop(), stopAtOnce: () => Promise.resolve() });
    log.info({ pending }, "stopped");
    return 0;
  });
}

const signs: Readonly<Record<CheckFinding["level"], string>> = { ok: "ok     ", warning: "warning", error: "ERROR  " };

/** `paybell check`. @returns 0 if nothing is an error */
export async function runCheck({ process }: RunContext, options: { readonly json: boolean }): Promise<number> {
  const { stdout, env } = process;
  return interruptible(process, async (signal) => {
    const findings = await findingsOf(env, signal);
    if (options.json) stdout.write(`${JSON.stringify({ findings }, null, 2)}\n`);
    else for (const finding of findings) stdout.write(findingLine(finding));
    return findings.some(({ level }) => level === "error") ? 1 : 0;
  });
}

/** `paybell migrate`. @returns 0 if the schema is this version's */
export async function runMigrate({ process }: RunContext, options: { readonly json: boolean }): Promise<number> {
  return interruptible(process, async (signal) => {
    const applied = await withDatabase(readConfig(process.env), prepareSchema, signal);
    const told = applied.length === 0 ? "The schema is up to date." : `Applied ${applied.join(", ")}.`;
    process.stdout.write(options.json ? `${JSON.stringify({ applied })}\n` : `${told}\n`);
    return 0;
  });
}

/** `paybell master-key new`. @returns 0 */
export async function runMasterKeyNew({ process }: RunContext): Promise<number> {
  return interruptible(process, async (signal) => {
    const text = await unlessAborted(signal, newMasterKeyText(readConfig(process.env)));
    process.stdout.write(`${text}\n`);
    return 0;
  });
}

/** `paybell master-key rotate`. @returns 0 if nothing is sealed under another key any more */
export async function runMasterKeyRotate(
  { process }: RunContext,
  options: { readonly json: boolean },
): Promise<number> {
  return interruptible(process, async (signal) => {
    const config = readConfig(process.env, ["masterKey"]);
    const onBatch = (sealed: number) => {
      if (!options.json) process.stdout.write(`${sealed} keys encrypted again\n`);
    };
    const done = await rotateMasterKeyOf(config, onBatch, signal);
    const told =
      done.notOpened === 0
        ? `Every key is encrypted under this master key (${done.sealed} now): PAYBELL_MASTER_KEY_OTHERS can be removed.`
        : `${done.notOpened} keys are encrypted under another master key: add it to PAYBELL_MASTER_KEY_OTHERS.`;
    process.stdout.write(options.json ? `${JSON.stringify(done)}\n` : `${told}\n`);
    return done.notOpened === 0 ? 0 : 1;
  });
}

/** `paybell audit verify`. @returns 0 if every entry follows from the previous one */
export async function runAuditVerify(
  { process }: RunContext,
  { json, expect }: { readonly json: boolean; readonly expect?: AuditHead | undefined },
): Promise<number> {
  return interruptible(process, async (signal) => {
    const verified = await verifyAuditOf(readConfig(process.env), signal, expect);
    const { entries, from, hash, brokenAt, unexpected, macs, changedRows } = verified;
    const problems = [
      ...(brokenAt === undefined
        ? []
        : [`The audit is broken: entry ${brokenAt} does not follow from the one before it, or its MAC is wrong.`]),
      ...(unexpected
        ? [`Entry ${expect?.seq} is not there with the expected hash: the audit was cut off or replaced.`]
        : []),
      ...changedRows.map(({ table, id }) => `The row ${id} of ${table} is not as its last entry left it.`),
    ];
    const complete =
      `The audit is complete: ${entries} entries from number ${from} on, MACs ${macs}. ` +
      `The last hash is ${from + entries - 1}:${hash}`;
    const told = problems.length === 0 ? complete : problems.join("\n");
    process.stdout.write(json ? `${JSON.stringify(verified)}\n` : `${told}\n`);
    return problems.length === 0 ? 0 : 1;
  });
}

/** `paybell audit rotate-key`. @returns 0 if there is a new version */
export async function runAuditRotateKey({ process }: RunContext, options: { readonly json: boolean }): Promise<number> {
  return interruptible(process, async (signal) => {
    const rotated = await rotateAuditKeyOf(readConfig(process.env, ["masterKey"]), signal);
    const told =
      `Version ${rotated.version} of the audit key makes MACs from ${rotated.usedFrom} on. ` +
      "Every instance learns it until then; older versions only verify.";
    process.stdout.write(options.json ? `${JSON.stringify(rotated)}\n` : `${told}\n`);
    return 0;
  });
}

/** `paybell audit export`. @returns 0 if everything was written, or a signal ended it */
export async function runAuditExport({ process }: RunContext, options: AuditExport): Promise<number> {
  return interruptible(process, async (signal) => {
    await exportAuditOf(readConfig(process.env), options, process.stdout, signal);
    return 0;
  });
}

/** `paybell alerts test`. @returns 0 if every channel accepted the test */
export async function runAlertsTest({ process }: RunContext, options: { readonly json: boolean }): Promise<number> {
  return interruptible(process, async (signal) => {
    const tested = await unlessAborted(signal, testAlerts(readConfig(process.env)));
    const lines = tested.map(({ target, ok, problem }) =>
      `${ok ? "ok   " : "ERROR"}  ${target.padEnd(8)}  ${problem}`.trimEnd(),
    );
    const none = "Alerts are sent to nobody: no PAYBELL_ALERT_ setting names a target.";
    const told = tested.length === 0 ? none : lines.join("\n");
    process.stdout.write(`${options.json ? JSON.stringify({ targets: tested }, null, 2) : told}\n`);
    return tested.length > 0 && tested.every(({ ok }) => ok) ? 0 : 1;
  });
}

/** Invalid settings are the finding: nothing else can be checked with them. */
async function findingsOf(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<readonly CheckFinding[]> {
  try {
    return await check(readConfig(env), signal);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((detail) => ({ level: "error", what: "settings", detail, remedy: "" }));
  }
}

function findingLine({ level, what, detail, remedy }: CheckFinding): string {
  const line = `${signs[level]}  ${what.padEnd(18)}  ${detail}\n`;
  return remedy === "" ? line : `${line}${" ".repeat(29)}→ ${remedy}\n`;
}

async function untilStopped(
  signals: StopSignals,
  died: Promise<string>,
): Promise<{ readonly signal?: NodeJS.Signals; readonly died?: string }> {
  return Promise.race([signals.first.then((signal) => ({ signal })), died.then((why) => ({ died: why }))]);
}

/** The two ways in which a service ends: in order, or at once. */
interface Ending {
  stop(): Promise<number | undefined>;
  stopAtOnce(): Promise<void>;
}

/**
 * A second Ctrl-C means not to wait: deliveries in flight are sent again at the next start. PostgreSQL is stopped in
 * any case, because nobody would know that it still runs.
 */
async function orSecond(signals: StopSignals, ending: Ending): Promise<number | undefined> {
  let inHurry = false;
  const atOnce = signals.second.then(async () => {
    inHurry = true;
    await ending.stopAtOnce();
    return undefined;
  });
  try {
    return await Promise.race([ending.stop(), atOnce]);
  } catch (error) {
    // An ordered stop fails if its PostgreSQL ends first.
    if (!inHurry) throw error;
    return atOnce;
  } finally {
    signals.release();
  }
}

/** `paybell serve`: production, on DATABASE_URL. */
async function serve(config: Config, databaseUrl: string, log: Log, role: InstanceRole): Promise<Service> {
  const masterKey = await openMasterKey(config);
  const home = resolve(config.home);
  const hosts = [config.host];
  const operatorHosts = [config.operatorHost];
  if (config.operatorPort === config.port) {
    throw new ConfigError([`PAYBELL_OPERATOR_PORT must differ from PAYBELL_PORT (${config.port})`]);
  }
  await requireFreePort(hosts, config.port, {});
  await requireFreePort(operatorHosts, config.operatorPort, { setting: "PAYBELL_OPERATOR_PORT" });
  const callbackCas = await readCallbackCas(config);
  const operatorTokens = config.operatorTokens.length > 0 ? config.operatorTokens : [await keptToken(home, log)];
  const { acquirer, name: acquirerName } = await configuredAcquirer(config, log);
  const service = await startService({
    role,
    config: { ...config, operatorTokens },
    databaseUrl,
    ownerUrl: config.migrationDatabaseUrl,
    masterKey,
    acquirer,
    acquirerName,
    log,
    sandbox: false,
    hosts,
    operatorHosts,
    callbackCas,
  });
  const listening = await service.listen().catch(async (error: unknown) => {
    await service.stop();
    throw error;
  });
  log.info({ urls: listening, operatorUrls: service.operatorUrls() }, "ready");
  return service;
}

/** Without a configured operator token, one is created once and stored readable only by its owner. */
async function keptToken(home: string, log: Log): Promise<string> {
  const path = join(home, "operator.token");
  log.info({ path }, "PAYBELL_OPERATOR_TOKEN is not set: the operator token is the one in this file");
  const kept = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    // Another token in its place would lock out those who have the one in the file.
    if (error.code !== "ENOENT") throw new ConfigError([`${path} cannot be read: ${error.code ?? error.message}`]);
  });
  if (kept?.trim()) return kept.trim();
  const token = randomBytes(32).toString("base64url");
  await writePrivately(path, `${token}\n`);
  return token;
}
