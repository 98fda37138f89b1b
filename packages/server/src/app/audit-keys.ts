import { createSecretKey, randomBytes } from "node:crypto";
import { systemClock } from "../clock.ts";
import { AuditKeys, type AuditKeyVersion, appendTo, byService, entryText } from "../operators/audit.ts";
import { loadOrCreateKey, type MasterKey, type SealedValueStore } from "../partners/master-key.ts";
import type { Database } from "../store/database/database.ts";
import { PostgresAudit } from "../store/operators/audit.ts";

/** The interval at which an instance looks for a new version. */
export const learnAuditKeysEveryMs = 60_000;
/** Until then every instance knows it, even if it could not look a few times. */
const usedAfterMs = 5 * learnAuditKeysEveryMs;
const versionsMax = 255;
const keyBytes = 32;

const keyName = (version: number) => `audit key ${version}`;

/** The keys of the audit, which a rotation of the master key does not change. They are made at the first start. */
export async function openAuditKeys(
  masterKey: MasterKey,
  store: SealedValueStore,
  nowMs = () => systemClock.nowMs(),
): Promise<AuditKeys> {
  await loadOrCreateKey(masterKey, store, keyName(1));
  return new AuditKeys(
    await auditKeyVersions(masterKey, store),
    await loadOrCreateKey(masterKey, store, "token pepper"),
    nowMs,
  );
}

/** The same for a reader, who makes none. Undefined: no service has made them. */
export async function existingAuditKeys(masterKey: MasterKey, store: SealedValueStore): Promise<AuditKeys | undefined> {
  return (await store.sealedValue(keyName(1))) && (await openAuditKeys(masterKey, store));
}

/** A version after the first: its key, then the time from which on it is used. */
export async function auditKeyVersions(masterKey: MasterKey, store: SealedValueStore): Promise<AuditKeyVersion[]> {
  const versions: AuditKeyVersion[] = [];
  for (;;) {
    const name = keyName(versions.length + 1);
    const sealed = await store.sealedValue(name);
    if (sealed === undefined) return versions;
    const plain = masterKey.openNamed(sealed, name);
    const usedFromMs = plain.length === keyBytes ? Number.NEGATIVE_INFINITY : plain.readDoubleBE(keyBytes);
    versions.push({ key: createSecretKey(plain.subarray(0, keyBytes)), usedFromMs });
  }
}

/** The audit whose entries have a MAC. */
export function sealedAudit({ pool }: Pick<Database, "pool">, keys: AuditKeys): PostgresAudit {
  return new PostgresAudit(pool, (seq, hash, after) => keys.mac(entryText(seq, hash), after));
}

export interface RotatedAuditKey {
  readonly version: number;
  /** ISO 8601. */
  readonly usedFrom: string;
}

/** Makes the next version. Running services learn it before it is used. @throws if another rotation just made it */
export async function rotateAuditKey(
  masterKey: MasterKey,
  store: SealedValueStore,
  audit: PostgresAudit,
  nowMs: number,
): Promise<RotatedAuditKey> {
  const version = (await auditKeyVersions(masterKey, store)).length + 1;
  if (version > versionsMax) throw new Error(`There are ${versionsMax} versions of the audit key: no more fit a MAC.`);
  const usedFromMs = nowMs + usedAfterMs;
  const rotated = { version, usedFrom: new Date(usedFromMs).toISOString() };
  const entry = {
    ...{ atMs: nowMs, ...byService, actor: "paybell audit rotate-key", subject: keyName(version), before: "" },
    after: JSON.stringify(rotated),
  };
  await appendTo(audit, { ...entry, action: "begin rotateAuditKey" });
  const usedFrom = Buffer.alloc(8);
  usedFrom.writeDoubleBE(usedFromMs);
  const sealed = masterKey.sealNamed(Buffer.concat([randomBytes(keyBytes), usedFrom]), keyName(version));
  if (!(await store.storeSealed(keyName(version), sealed)).equals(sealed)) {
    throw new Error(`Another rotation has just made version ${version} of the audit key.`);
  }
  await appendTo(audit, { ...entry, action: "rotateAuditKey" });
  return rotated;
}
