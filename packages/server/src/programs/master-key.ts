import { randomBytes } from "node:crypto";
import { openAuditKeys, sealedAudit } from "../app/audit-keys.ts";
import { egressFetch } from "../app/egress.ts";
import type { Config } from "../config/config.ts";
import { type AwsCredentialSources, AwsKms } from "../kms/aws-kms.ts";
import type { KeyService } from "../kms/key-service.ts";
import { VaultTransit } from "../kms/vault-transit.ts";
import { appendTo, byService } from "../operators/audit.ts";
import { MasterKey, type ReSealed, resealAll } from "../partners/master-key.ts";
import type { Database } from "../store/database/database.ts";
import { postgresPartners, postgresReSeal } from "../store/partners/partners.ts";
import { withExistingDatabase, withStore } from "./database.ts";
import { unlessAborted } from "./process.ts";

/**
 * Opens the configured master key, and the others that it can decrypt for. A wrapped key is unwrapped by the key
 * service.
 */
export async function openMasterKey(config: Config): Promise<MasterKey> {
  const { masterKey, masterKeyOthers } = config;
  if (masterKey === null) throw new Error("PAYBELL_MASTER_KEY is required.");
  const service = keyServiceOf(config);
  const [raw, ...others] = await Promise.all(
    [masterKey, ...masterKeyOthers].map((key) => {
      if (typeof key !== "string") return key;
      if (service === undefined) throw new Error("A wrapped master key needs PAYBELL_KMS.");
      return service.unwrap(key);
    }),
  );
  return new MasterKey(raw as Buffer, others);
}

/** `paybell master-key new`. @returns the text to store: wrapped if there is a key service */
export async function newMasterKeyText(config: Config): Promise<string> {
  const raw = randomBytes(32);
  return (await keyServiceOf(config)?.wrap(raw)) ?? raw.toString("base64");
}

/** `paybell master-key rotate`: seals again everything that another key sealed. It may be interrupted, and repeated. */
export async function rotateMasterKeyOf(
  config: Config,
  onBatch: (sealed: number) => void,
  signal: AbortSignal,
): Promise<ReSealed> {
  const masterKey = await unlessAborted(signal, openMasterKey(config));
  const rotate = async (database: Database) => {
    const done = await resealAll(postgresReSeal(database.pool), masterKey, onBatch);
    const auditKeys = await openAuditKeys(masterKey, postgresPartners(database));
    await appendTo(sealedAudit(database, auditKeys), {
      atMs: Date.now(),
      ...byService,
      actor: "paybell master-key rotate",
      action: "rotateMasterKey",
      subject: masterKey.id,
      before: "",
      after: JSON.stringify(done),
    });
    return done;
  };
  return withExistingDatabase(config, ({ databaseUrl }) => withStore(databaseUrl, rotate), signal);
}

function keyServiceOf(config: Config): KeyService | undefined {
  const { kms, kmsUrl, kmsMount, kmsKey, kmsTokenFile, awsRegion } = config;
  const fetchBy = egressFetch(config);
  if (kms === "aws" && kmsKey !== null && awsRegion !== null) {
    const credentials = awsCredentialsOf(config);
    return new AwsKms({ url: kmsUrl, region: awsRegion, key: kmsKey, credentials, fetch: fetchBy });
  }
  if (kms !== "vault" || kmsUrl === null || kmsTokenFile === null) return undefined;
  const key = kmsKey ?? "paybell";
  return new VaultTransit({ url: kmsUrl, mount: kmsMount, key, tokenFile: kmsTokenFile, fetch: fetchBy });
}

/** The address of the agent of ECS. */
const ecsAgent = "http://169.254.170.2";

function awsCredentialsOf(config: Config): AwsCredentialSources {
  const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsSessionToken } = config;
  const { awsContainerUrl, awsContainerPath, awsContainerTokenFile } = config;
  if (accessKeyId !== null && secretAccessKey !== null) {
    return { fixed: { accessKeyId, secretAccessKey, sessionToken: awsSessionToken ?? undefined } };
  }
  const containerUrl = awsContainerPath === null ? awsContainerUrl : `${ecsAgent}${awsContainerPath}`;
  return { containerUrl: containerUrl ?? undefined, containerTokenFile: awsContainerTokenFile ?? undefined };
}
