import { readFile } from "node:fs/promises";
import { configuredAcquirer } from "../../../packages/server/src/app/configured-acquirers.ts";
import { startService } from "../../../packages/server/src/app.ts";
import { readConfig } from "../../../packages/server/src/config/config.ts";
import { openMasterKey } from "../../../packages/server/src/programs/master-key.ts";
import { createLog } from "../../../packages/server/src/telemetry/log.ts";

// Runs `paybell serve` in a separate process, with the sandbox's permission to call loopback addresses.
const config = readConfig(process.env, ["masterKey", "databaseUrl", "callbackCaFile"]);
const { databaseUrl, callbackCaFile } = config;
if (databaseUrl === null || callbackCaFile === null) throw new Error("a setting is missing");
const log = createLog(config.logLevel, process.stdout);
const { acquirer, name: acquirerName } = await configuredAcquirer(config, log);
const service = await startService({
  config,
  databaseUrl,
  masterKey: await openMasterKey(config),
  acquirer,
  acquirerName,
  log,
  sandbox: true,
  hosts: [config.host],
  callbackCas: [await readFile(callbackCaFile, "utf8")],
});
log.info({ urls: await service.listen() }, "ready");
process.once("SIGTERM", () => {
  service.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
