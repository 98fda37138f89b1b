import { AuditKeys, entryText } from "../operators/audit-keys.ts";
import { keptKey, type MasterKey, type SealedValueStore } from "../partners/master-key.ts";
import type { Database } from "../store/database/database.ts";
import { PostgresAudit } from "../store/operators/audit.ts";

const keyName = (version: number) => `audit key ${version}`;

/** The keys of the audit, which a rotation of the master key does not change. They are made at the first start. */
export async function openAuditKeys(masterKey: MasterKey, store: SealedValueStore): Promise<AuditKeys> {
  const versions = [await keptKey(masterKey, store, keyName(1))];
  for (let next = 2; (await store.sealedValue(keyName(next))) !== undefined; next += 1) {
    versions.push(await keptKey(masterKey, store, keyName(next)));
  }
  return new AuditKeys(versions, await keptKey(masterKey, store, "token pepper"));
}

/** The same for a reader, who makes none. Undefined: no service has made them. */
export async function existingAuditKeys(masterKey: MasterKey, store: SealedValueStore): Promise<AuditKeys | undefined> {
  return (await store.sealedValue(keyName(1))) && (await openAuditKeys(masterKey, store));
}

/** The audit whose entries have a MAC. */
export function sealedAudit({ pool }: Pick<Database, "pool">, keys: AuditKeys): PostgresAudit {
  return new PostgresAudit(pool, (seq, hash) => keys.mac(entryText(seq, hash)));
}
