import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "../support/instance.ts";
import type { TestPartner } from "../support/service.ts";
import { type AcquirerHost, startHost } from "./host.ts";

/** Instances of the service that ask a host, and a partner of theirs. */
export interface AtHost {
  readonly database: TestDatabase;
  readonly host: AcquirerHost;
  readonly instances: Instance[];
  readonly partner: TestPartner;
  /** Ends an instance by SIGKILL, and starts another in its place. @returns what it wrote */
  replace(nth: number): Promise<string>;
  stop(): Promise<void>;
}

/** @param env in addition to the settings of the link */
export async function startAtHost(instances: number, env: NodeJS.ProcessEnv): Promise<AtHost> {
  const [database, host] = await Promise.all([createDatabase(), startHost()]);
  const { host: address, callsLoopback } = partnerHost();
  const masterKey = randomBytes(32);
  const link = {
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: join(import.meta.dirname, "../../docs/operator/acquirer-profile.json"),
    PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
    PAYBELL_ACQUIRER_TLS: "off",
  };
  const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env: { ...link, ...env } });
  const first = await start();
  const running = [first];
  while (running.length < instances) running.push(await start());
  const partner = await first.register({}, { host: address });
  return {
    ...{ database, host, instances: running, partner },
    async replace(nth) {
      const gone = running[nth] as Instance;
      gone.signal("SIGKILL");
      await gone.exited;
      running[nth] = await start();
      return gone.output();
    },
    async stop() {
      for (const instance of running) instance.signal("SIGTERM");
      await Promise.all(running.map(({ exited }) => exited));
      await partner.server.close();
      await host.stop();
      await database.drop();
    },
  };
}
