import { createHash } from "node:crypto";
import type { MacKeyStore } from "../acquirer/iso8583/key-exchange.ts";
import type { MasterKey } from "../partners/master-key.ts";
import type { PostgresAcquirers } from "../store/acquirers.ts";

/**
 * The MAC key of an acquirer that came over its link, in the database under the master key. It belongs to
 * the key that was registered at the time: registering another one starts again from that.
 */
export function macKeyStore(
  store: Pick<PostgresAcquirers, "readMacKey" | "writeMacKey">,
  masterKey: MasterKey,
  name: string,
  registered: Buffer = Buffer.alloc(0),
): MacKeyStore {
  const sealedAs = `acquirer-key ${name} ${createHash("sha256").update(registered).digest("hex").slice(0, 8)}`;
  return {
    async read() {
      const sealed = await store.readMacKey(sealedAs);
      return sealed && masterKey.openNamed(sealed, sealedAs);
    },
    keep: (key) => store.writeMacKey(name, sealedAs, masterKey.sealNamed(key, sealedAs)),
  };
}
