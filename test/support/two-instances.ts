import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "./commands.ts";
import { createDatabase } from "./database.ts";
import { type Instance, partnerHost, spawnInstance } from "./instance.ts";
import { callHttp, eventually } from "./service.ts";

const example = readFileSync(join(import.meta.dirname, "../../docs/operator/acquirer-profile.json"), "utf8");

interface ExampleProfile {
  readonly network: object;
  readonly timings: object;
}

/** Two instances on one database, linked to a host by the example profile with these changes. */
export async function startTwoInstances(
  changed: (profile: ExampleProfile) => object,
  env: Record<string, string> = {},
) {
  const [database, host, folder] = await Promise.all([
    createDatabase(),
    FakeHost.listen(),
    mkdtemp(join(tmpdir(), "paybell-two-")),
  ]);
  const file = join(folder, "host.json");
  const profile = JSON.parse(example) as ExampleProfile;
  await writeFile(file, JSON.stringify({ ...profile, ...changed(profile) }));
  const settings = {
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: file,
    PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
    PAYBELL_ACQUIRER_TLS: "off",
    ...env,
  };
  const { host: address, callsLoopback } = partnerHost();
  const masterKey = randomBytes(32);
  const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env: settings });
  const first = await start();
  await linkState(first, /: signed on at/);
  const second = await start();
  await linkState(second, /: signed on at/);
  const partner = await first.register({}, { host: address });
  return {
    database,
    host,
    first,
    second,
    run: ({ baseUrl }: Instance, changes = {}) =>
      callHttp(baseUrl, "POST", "/v1/commands", { key: partner.secrets.apiKey, json: sale(changes) }),
    async stop() {
      for (const instance of [first, second]) {
        instance.signal("SIGTERM");
        await instance.exited;
      }
      await partner.server.close();
      await host.close();
      await rm(folder, { recursive: true });
      await database.drop();
    },
  };
}

/** Resolves once /readyz says this of the acquirer. */
export function linkState(instance: Instance, what: RegExp): Promise<string> {
  return eventually(`${what} in /readyz`, async () => {
    const { body } = await instance.operator("GET", "/readyz");
    const { acquirer } = body["checks"] as Record<string, { detail: string }>;
    return what.test(acquirer?.detail ?? "") ? acquirer?.detail : undefined;
  });
}
