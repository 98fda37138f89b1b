import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, queryHomes, type TestDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "../support/instance.ts";
import { gateAt } from "../support/locks.ts";
import { eventually } from "../support/service.ts";

const lines = 5_000;
/** The lines that mean a Sale, one of them where the second process is killed. */
const soldAt = [10, 2_500, 4_990] as const;
const acquirer = "bank";
const today = new Date().toISOString().slice(0, 10).replaceAll("-", "");
const terminal = { tid: "T0000001", mid: "M00000000000001" };

let folder: string;
let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  [folder, database] = await Promise.all([mkdtemp(join(tmpdir(), "paybell-clearing-")), createDatabase()]);
  pool = new Pool({ connectionString: database.url, max: 2 });
  await mkdir(join(folder, acquirer));
});
afterAll(async () => {
  await pool.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

async function register(instance: Instance): Promise<void> {
  const path = join(import.meta.dirname, "../../docs/operator/acquirer-profile.json");
  const profile = JSON.parse(await readFile(path, "utf8")) as object;
  const columns = { refId: "RRN", amount: "AMOUNT", date: "DATE" };
  const clearing = { format: "csv", header: true, columns, currency: "VND", daysMax: 60 };
  const { status, text } = await instance.operator("PUT", `/operator/v1/acquirers/${acquirer}`, {
    profile: { ...profile, localTimeZone: "UTC", mac: null, clearing },
    hosts: ["127.0.0.1:9"],
    tls: "off",
  });
  expect(status, text).toBeLessThan(300);
}

test("a clearing file is taken once, when two processes are killed while they read and match it", async () => {
  const { host, callsLoopback } = partnerHost();
  const masterKey = randomBytes(32);
  const env = { PAYBELL_CLEARING_FOLDER: folder };
  const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env });
  const reader = await start();
  await register(reader);
  const partner = await reader.register({}, { host });
  const refIds = new Map<number, string>();
  for (const at of soldAt) {
    const card = { token: "tok_approve", number: "411111******1111", scheme: "VISA", swipeType: "M" };
    const money = { amount: "1000", currency: "VND", merchantTransId: `line ${at}` };
    const { body } = await partner.run({ command: "SALE", reqId: randomUUID(), ...money, ...terminal, card });
    refIds.set(at, String(body["refId"]));
  }
  // The terminal's commands go to the simulator: a host of this profile is not running.
  await queryHomes(database, "UPDATE transactions SET acquirer = $1 RETURNING id", [acquirer]);
  const line = (at: number) => `${refIds.get(at) ?? `NONE${at}`},1000,${today}`;
  const text = ["RRN,AMOUNT,DATE", ...Array.from({ length: lines }, (_, nth) => line(nth + 2)), ""].join("\n");

  const killReading = await gateAt(pool, "clearing_chunks", "NEW.chunk_no = 2");
  await writeFile(join(folder, acquirer, "day.csv.part"), text);
  await rename(join(folder, acquirer, "day.csv.part"), join(folder, acquirer, "day.csv"));
  await killReading(reader);
  expect(await queryHomes(database, "SELECT FROM clearing_files")).toEqual([]);
  expect(await queryHomes(database, "SELECT FROM clearing_chunks")).toHaveLength(2);

  const killMatching = await gateAt(pool, "clearing_matches", "NEW.line_no = 2500");
  await killMatching(await start());
  const [halfway] = await queryHomes(database, "SELECT state, next_chunk, matched FROM clearing_files");
  expect(halfway).toEqual({ state: "matching", next_chunk: 4, matched: 1 });

  // Nobody waits a minute for the dead one's hold to end.
  await queryHomes(database, "UPDATE clearing_files SET due_at = now() RETURNING id");
  const last = await start();
  const file = await eventually("the file to be matched", async () => {
    const { items } = (await last.operator("GET", "/operator/v1/clearing-files")).body as {
      items: { state: string }[];
    };
    return items.find(({ state }) => state === "done");
  });
  expect(file).toMatchObject({ acquirer, name: "day.csv", lines, matched: 3, waiting: lines - 3, missingThere: 0 });
  expect(file).toMatchObject({ totals: [{ kind: "sale", currency: "VND", lines, totalMinor: `${lines}000` }] });
  const taken = await queryHomes<{ line_no: number }>(
    database,
    "SELECT line_no FROM clearing_matches UNION ALL SELECT line_no FROM clearing_entries ORDER BY 1",
  );
  expect(taken.map(({ line_no: at }) => at)).toEqual(Array.from({ length: lines }, (_, nth) => nth + 2));
  await eventually("the file to be moved", async () =>
    (await readdir(join(folder, acquirer))).includes("day.csv") ? undefined : true,
  );
  expect((await readdir(join(folder, acquirer, "done"))).sort()).toEqual(["day.csv", "day.csv.report.json"]);
  expect(await readFile(join(folder, acquirer, "done", "day.csv"), "utf8")).toBe(text);
  last.signal("SIGTERM");
  expect(await last.exited).toBe(0);
  await partner.server.close();
});
