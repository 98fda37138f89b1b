import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { reportedSale } from "../support/commands.ts";
import { createDatabase, queryHomes, type TestDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "../support/instance.ts";
import { gateAt } from "../support/locks.ts";
import { eventually, startTestService } from "../support/service.ts";
import { countTransactions } from "./transactions.ts";

const lines = 12_000;

let folder: string;
let database: TestDatabase;
beforeEach(async () => {
  [folder, database] = await Promise.all([mkdtemp(join(tmpdir(), "paybell-intake-")), createDatabase()]);
});
afterEach(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

async function put(name: string, items: readonly unknown[]): Promise<void> {
  const path = join(folder, name);
  await writeFile(`${path}.part`, items.map((item) => `${JSON.stringify(item)}\n`).join(""));
  await rename(`${path}.part`, path);
}

/** The sum at the end of a file's report, once it is in `done/`. */
function sumOf(name: string): Promise<Record<string, number>> {
  return eventually(`${name} to be done`, async () => {
    if (!(await readdir(join(folder, "done"))).includes(name)) return undefined;
    const report = await readFile(join(folder, "done", `${name}.report.jsonl`), "utf8");
    return JSON.parse(report.trimEnd().split("\n").at(-1) ?? "") as Record<string, number>;
  });
}

describe("completions in files", () => {
  test("are notified like those over HTTP, and refused ones are the same events", async () => {
    const service = await startTestService({ database, env: { PAYBELL_INTAKE_FOLDER: folder } });
    const partner = await service.register();
    const bad = { ...reportedSale(partner.id, { externalId: "bad" }), amount: "-1" };
    await put("a.jsonl", [reportedSale(partner.id, { externalId: "good" }), bad]);
    expect(await sumOf("a.jsonl")).toMatchObject({ accepted: 1, refused: 1 });
    await service.operator("POST", "/operator/v1/completions", { completions: [{ ...bad, externalId: "over http" }] });
    await partner.server.next(1);
    const events = await queryHomes<{ detail: Record<string, unknown> }>(
      database,
      "SELECT detail FROM events WHERE kind = 'report_refused' ORDER BY id",
    );
    expect(events.map(({ detail }) => detail["externalId"])).toEqual(["bad", "over http"]);
    expect(events[0]?.detail["problems"]).toEqual([{ field: "amount", code: "invalid_amount" }]);
    const metrics = await service.operator("GET", "/metrics");
    expect(metrics.text).toContain('paybell_intake_files_total{result="done"} 1');
    await service.stop();
  });

  test("take effect once each, when two instances share the folder and one is killed in the middle", async () => {
    const { host, callsLoopback } = partnerHost();
    const env = { PAYBELL_INTAKE_FOLDER: folder };
    const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env });
    const masterKey = randomBytes(32);
    let instances: readonly Instance[] = [await start()];
    const [first] = instances;
    const partner = await (first as Instance).register({}, { host });
    const items = Array.from({ length: lines }, (_, at) => reportedSale(partner.id, { externalId: `s-${at}` }));
    const pool = new Pool({ connectionString: database.url, max: 2 });
    const kill = await gateAt(pool, "transactions", "NEW.external_id = 's-6000'");
    await put("a.jsonl", items);
    const progress = join(folder, "reading", "a.jsonl.progress.json");
    await eventually("the first lines to be durable", () => readFile(progress, "utf8").catch(() => undefined));
    await kill(first as Instance);
    await pool.end();
    expect((await countTransactions(database)).rows).toBeLessThan(lines);

    instances = [await start(), await start()];
    await put("b.jsonl", items);
    const [a = {}, b = {}] = [await sumOf("a.jsonl"), await sumOf("b.jsonl")];
    expect(a).toMatchObject({ entries: lines, refused: 0, conflict: 0 });
    // Up to a batch of it was durable when it was killed, and not yet kept as read.
    expect(Number(a["accepted"]) + Number(b["accepted"])).toBeGreaterThan(lines - 3_000);
    expect(await countTransactions(database)).toEqual({ rows: lines, keys: lines, told: lines });
    // A file is in its folder before that is logged.
    const logged = () => instances.map((instance) => instance.output()).join("\n");
    await expect.poll(() => logged().match(/"file":"[ab]\.jsonl".*a file was read"/g)).toHaveLength(2);
    for (const instance of instances) instance.signal("SIGTERM");
    await Promise.all(instances.map(({ exited }) => exited));
    await partner.server.close();
  });
});
