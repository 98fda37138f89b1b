import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type InstanceRole, type Service, startService } from "../app.ts";
import { type Config, ConfigError } from "../config.ts";
import type { Log } from "../log.ts";
import { configuredAcquirer } from "./acquirer.ts";
import { readCallbackCas } from "./callback-cas.ts";
import { openMasterKey } from "./master-key.ts";
import { requireFreePort } from "./port.ts";
import { writePrivately } from "./private-file.ts";

/** `paybell serve`: production, on DATABASE_URL. */
export async function serve(config: Config, databaseUrl: string, log: Log, role: InstanceRole): Promise<Service> {
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
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writePrivately(path, `${token}\n`);
  return token;
}
