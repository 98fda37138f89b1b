import { AcquirerRegistry } from "../acquirer/registered/registry.ts";
import type { SessionHolder } from "../acquirer/session/one-session.ts";
import { systemClock } from "../clock.ts";
import type { MasterKey } from "../partners/master-key.ts";
import { PostgresAcquirerSessions } from "../store/acquirer-sessions.ts";
import { PostgresAcquirers } from "../store/acquirers.ts";
import { openDatabase } from "../store/database/database.ts";
import type { HostOptions } from "./acquirer.ts";
import { macKeyStore } from "./mac-key-store.ts";

/** The links of acquirers, for a command that runs beside the service. The empty name: the acquirer of the settings. */
export interface AcquirerLinks {
  /** The names of the registered acquirers. */
  names(): Promise<readonly string[]>;
  /** The options for opening the link; undefined: no acquirer is registered by this name. */
  registered(name: string): Promise<HostOptions | undefined>;
  /** The options with what the instances share of its hosts: MAC keys that came over the link, and sign-offs. */
  withShared(name: string, options: HostOptions): HostOptions;
  /** The instance with the one session that the host allows. */
  sessionHolder(name: string): Promise<SessionHolder>;
}

export async function withAcquirerLinks<Result>(
  databaseUrl: string,
  masterKey: MasterKey,
  use: (links: AcquirerLinks) => Promise<Result>,
): Promise<Result> {
  const database = openDatabase(databaseUrl, { connectionsMax: 2, onIdleError: () => undefined });
  const store = new PostgresAcquirers(database);
  const registry = new AcquirerRegistry(store, masterKey);
  const sessions = new PostgresAcquirerSessions(database);
  try {
    return await use({
      names: async () => [...(await store.versions()).keys()].sort(),
      async registered(name) {
        const stored = await store.find(name);
        return stored && { ...registry.linkOptions(stored), clock: systemClock };
      },
      withShared: (name, options) => ({
        ...options,
        macKeyStore: macKeyStore(store, masterKey, name, options.macKey),
        signOffs: {
          read: () => store.signedOff(name),
          note: (host, isSignedOff) => store.noteSignOff(name, host, isSignedOff),
          isUsedByOthers: () => store.isUsedByOthers(undefined),
        },
      }),
      sessionHolder: (name) => sessions.holder(name),
    });
  } finally {
    await database.close();
  }
}
