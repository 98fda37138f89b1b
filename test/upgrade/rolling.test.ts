import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shardOf } from "../../packages/server/src/ids.ts";
import { createDatabase, queryHomes, type TestDatabase, withAdmin } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance, spawnPaybell } from "../support/instance.ts";
import { eventually } from "../support/service.ts";
import { Load } from "./load.ts";
import { findOldVersion, installOldVersion } from "./old-version.ts";

const partnersFirst = 4;
const maxInFlight = 4;
const old = findOldVersion();
const { host, callsLoopback } = partnerHost();
const masterKey = randomBytes(32);
/** One worker of 0.1.0 a process, so that each instance sends under one lease. Later versions refuse the setting. */
const oldEnv = old.name === "0.1.0" ? { PAYBELL_DELIVERY_WORKERS: "1" } : {};

const started: Instance[] = [];
let database: TestDatabase;
let load: Load;
let tree = "";
let replaced = 0;

// A shallow clone may lack the release that is upgraded.
describe.skipIf(old.commit === undefined)(`a rolling upgrade from ${old.title}`, () => {
  beforeAll(async () => {
    tree = await installOldVersion(old);
    database = await createDatabase({ isMigrated: false });
  });

  afterAll(async () => {
    for (const instance of started) instance.signal("SIGKILL");
    await Promise.all(started.map(({ exited }) => exited));
    for (const { server } of load?.partners ?? []) await server.close();
    await database.drop();
  });

  test("and back loses, refuses and reorders nothing", async () => {
    load = new Load([await start(tree), await start(tree)]);
    for (let count = 0; count < partnersFirst; count += 1) await addPartner();
    await sideBySide();

    const migrated = spawnPaybell(["migrate"], { DATABASE_URL: database.url });
    expect(await migrated.exited, migrated.output()).toBe(0);
    await load.goesOn();

    for (const at of [0, 1]) {
      await replace(at);
      await sideBySide();
    }
    if (runsOnSchema(tree)) await replace(0, tree);
    else {
      await expect(start(tree)).rejects.toThrow(/the breaking migration/);
      await replace(0);
    }
    await sideBySide();
    await load.end();

    expect(load.chains.length).toBeGreaterThan(100);
    for (const { places } of load.chains) {
      expect(places).not.toContain(undefined);
      expect(places).toEqual(places.toSorted((a = 0, b = 0) => a - b));
    }
    expect(load.repeated).toBeLessThanOrEqual(replaced * maxInFlight * load.partners.length);
    // Each of them has sent: two, and those that replaced one.
    const workers = await queryHomes<{ lease_id: string }>(database, "SELECT DISTINCT lease_id FROM attempts");
    expect(workers).toHaveLength(2 + replaced);
  });
});

async function start(from?: string): Promise<Instance> {
  const options = { databaseUrl: database.url, masterKey, callsLoopback };
  const instance = await spawnInstance({ ...options, ...(from !== undefined && { tree: from, env: oldEnv }) });
  started.push(instance);
  return instance;
}

async function replace(at: number, from?: string): Promise<void> {
  replaced += 1;
  await load.replace(at, () => start(from));
}

async function addPartner(): Promise<void> {
  const instance = started.at(-1);
  if (instance === undefined) throw new Error("no instance has started");
  load.begin(await instance.register({ maxInFlight }, { host }));
}

/** Both instances send to partners, and each till and switch continues. */
async function sideBySide(): Promise<void> {
  await withAdmin(database.url, (client) =>
    eventually("both instances to own shards of partners", async () => {
      const shards = load.partners.map(({ id }) => shardOf(id as Parameters<typeof shardOf>[0]));
      const owners =
        "SELECT count(*)::integer AS owned, bool_or(shard = ANY($1)) AS sends FROM shards GROUP BY lease_id";
      const { rows } = await client.query<{ owned: number; sends: boolean }>(owners, [shards]);
      if (rows.length !== 2) return undefined;
      if (rows.every(({ sends }) => sends)) return true;
      // All of them may be of one half.
      if (rows.every(({ owned }) => owned === 128)) await addPartner();
      return undefined;
    }),
  );
  await load.goesOn();
}

/** An older version starts on a newer schema, unless that has a breaking migration: docs/operator/production.md. */
function runsOnSchema(checkout: string): boolean {
  const folder = "packages/server/src/store/schema/migrations";
  const known = readdirSync(join(checkout, folder));
  const own = join(import.meta.dirname, "../..", folder);
  return readdirSync(own).every(
    (name) => known.includes(name) || !readFileSync(join(own, name), "utf8").startsWith("--! breaking"),
  );
}
