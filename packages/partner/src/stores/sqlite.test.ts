import { spawn } from "node:child_process";
import { once as nextEvent } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, expectTypeOf, it } from "vitest";
import { Misused } from "../errors/misused.ts";
import { deduplicate } from "../receiver/deduplicate.ts";
import { sampleIpn } from "../testing.ts";
import { storeConformance, tableConformance } from "./conformance.ts";
import { sqliteStore } from "./sqlite.ts";

const folder = mkdtempSync(join(tmpdir(), "paybell-sqlite-"));
const file = join(folder, "ipns.sqlite");
const databases: DatabaseSync[] = [];
const open = (path = file) => {
  const database = new DatabaseSync(path);
  databases.push(database);
  return database;
};
const shared = open();
shared.exec("PRAGMA journal_mode = WAL; CREATE TABLE orders (id TEXT PRIMARY KEY)");
await sqliteStore(shared).createTable();

afterAll(() => {
  for (const database of databases) database.close();
  rmSync(folder, { recursive: true });
});

const crashing = `
import { DatabaseSync } from "node:sqlite";
import { deduplicate } from ${JSON.stringify(import.meta.resolve("../receiver/deduplicate.ts"))};
import { sqliteStore } from ${JSON.stringify(import.meta.resolve("./sqlite.ts"))};
const received = JSON.parse(process.argv[1]);
const once = deduplicate(sqliteStore(new DatabaseSync(process.argv[2])))((_, database) => {
  database.prepare("INSERT INTO orders (id) VALUES (?)").run(received.ipn.id);
  process.kill(process.pid, "SIGKILL");
});
await once(received);
`;

describe("in SQLite", () => {
  // A process that finds the database locked is refused at once: the service delivers again.
  storeConformance<DatabaseSync>({
    open: () => sqliteStore(open()),
    own: {
      write: (database, id) => database.prepare("INSERT INTO orders (id) VALUES (?)").run(id),
      written: (id) => shared.prepare("SELECT 1 FROM orders WHERE id = ?").get(id) !== undefined,
    },
    crashWhileProcessing: async (received) => {
      const args = ["--conditions=paybell-source", "--input-type=module", "--eval", crashing];
      const child = spawn(process.execPath, [...args, JSON.stringify(received), file], { stdio: "inherit" });
      const [, signal] = (await nextEvent(child, "exit")) as [number | null, NodeJS.Signals | null];
      expect(signal).toBe("SIGKILL");
    },
  });

  it("passes the database, with its type", () => {
    deduplicate(sqliteStore(shared))((_, database) => expectTypeOf(database).toEqualTypeOf<DatabaseSync>());
  });

  it("yields to no other code before the COMMIT if the function returns no promise", async () => {
    const database = open();
    const once = deduplicate(sqliteStore(database))(() => undefined);
    const processing = once(sampleIpn().received);
    expect(database.isTransaction).toBe(false);
    expect(await processing).toBe("processed");
  });

  it("forgets IPNs older than requested, to the day", async () => {
    const database = open(":memory:");
    const store = sqliteStore(database, { table: "main.seen" });
    await store.createTable();
    await store.createTable();
    const once = deduplicate(store)(() => undefined);
    const [old, young] = [sampleIpn().received, sampleIpn().received];
    await once(old);
    await once(young);
    const age = database.prepare("UPDATE seen SET seen_at = seen_at - ? * 86400000 WHERE id = ?");
    age.run(101, old.ipn.id);
    age.run(99, young.ipn.id);
    expect(await store.forget()).toBe(1);
    expect(await once(young)).toBe("duplicate");
    expect(await once(old)).toBe("processed");
    expect(await store.forget(7)).toBe(1);
    await expect(store.forget(6.9)).rejects.toThrow(Misused);
  });

  tableConformance<DatabaseSync>(
    () => sqliteStore(open(":memory:"), { table: "missing" }),
    (tx) => tx.prepare("SELECT 1 FROM nowhere"),
  );
});
