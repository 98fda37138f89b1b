import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type InstanceRole, type Service, startService } from "../app.ts";
import { type Config, ConfigError } from "../config.ts";
import type { Log } from "../log.ts";
import { startEmbeddedPostgres } from "../postgres/embedded.ts";
import { configuredAcquirer } from "./acquirer.ts";
import { readCallbackCas } from "./callback-cas.ts";
import { embeddedUrls } from "./database-url.ts";
import { openMasterKey } from "./master-key.ts";
import { requireFreePort } from "./port.ts";
import { writePrivately } from "./private-file.ts";

export interface Served {
  readonly service: Service;
  /** Resolves, with the reason, when the embedded PostgreSQL ended unexpectedly; never with another database. */
  readonly died: Promise<string>;
  /** Stops the service first, its PostgreSQL last. */
  stop(): Promise<number | undefined>;
  /** Stops only the embedded PostgreSQL, without waiting for work in flight. */
  stopAtOnce(): Promise<void>;
}

/** `paybell serve`: production, on DATABASE_URL or the embedded PostgreSQL. */
export async function serve(config: Config, log: Log, role: InstanceRole): Promise<Served> {
  const { databaseUrl } = config;
  const masterKey = await openMasterKey(config);
  const home = resolve(config.home);
  const hosts = [config.host];
  const operatorHosts = [config.operatorHost];
  if (config.operatorPort === config.port) {
    throw new ConfigError([`PAYBELL_OPERATOR_PORT must differ from PAYBELL_PORT (${config.port})`]);
  }
  const heldHome = databaseUrl === null ? home : undefined;
  await requireFreePort(hosts, config.port, { home: heldHome });
  await requireFreePort(operatorHosts, config.operatorPort, { home: heldHome, setting: "PAYBELL_OPERATOR_PORT" });
  const callbackCas = await readCallbackCas(config);
  const embedded =
    databaseUrl === null ? await startEmbeddedPostgres({ home, log: (line) => log.info(line) }) : undefined;
  const urls =
    embedded === undefined
      ? { databaseUrl: databaseUrl as string, ownerUrl: config.migrationDatabaseUrl }
      : embeddedUrls(embedded);
  try {
    const operatorTokens = config.operatorTokens.length > 0 ? config.operatorTokens : [await keptToken(home, log)];
    const { acquirer, name: acquirerName } = await configuredAcquirer(config, log);
    const service = await startService({
      role,
      config: { ...config, operatorTokens },
      ...urls,
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
    log.info(
      {
        urls: listening,
        operatorUrls: service.operatorUrls(),
        database: embedded ? `embedded ${embedded.version}` : "external",
      },
      "ready",
    );
    return {
      service,
      died: embedded?.died ?? new Promise(() => undefined),
      async stop() {
        try {
          return await service.stop();
        } finally {
          await embedded?.stop();
        }
      },
      async stopAtOnce() {
        await embedded?.stop();
      },
    };
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

/** Without a configured operator token, one is created once and stored readable only by its owner. */
async function keptToken(home: string, log: Log): Promise<string> {
  const path = join(home, "operator.token");
  log.info({ path }, "PAYBELL_OPERATOR_TOKEN is not set: the operator token is the one in this file");
  const kept = await readFile(path, "utf8").catch(() => undefined);
  if (kept?.trim()) return kept.trim();
  const token = randomBytes(32).toString("base64url");
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writePrivately(path, `${token}\n`);
  return token;
}
