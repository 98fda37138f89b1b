import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import { Misused } from "../errors/misused.ts";
import { deduplicate } from "../receiver/deduplicate.ts";
import { sampleIpn } from "../testing.ts";
import { storeConformance, tableConformance } from "./conformance.ts";
import { postgresStore } from "./postgres.ts";

let database: TestDatabase;
let pools: Pool[] = [];
const newPool = () => {
  const pool = new Pool({ connectionString: database.url, max: 12 });
  pools.push(pool);
  return pool;
};

describe("in PostgreSQL", () => {
  beforeAll(async () => {
    database = await createDatabase();
    const pool = newPool();
    await Promise.all([pool, newPool()].map((one) => postgresStore(one).createTable()));
    await pool.query("CREATE TABLE orders (id text PRIMARY KEY)");
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    pools = [];
    await database.drop();
  });

  storeConformance<PoolClient>({
    open: () => postgresStore(newPool()),
    own: {
      write: (client, id) => client.query("INSERT INTO orders (id) VALUES ($1)", [id]),
      written: async (id) => (await newPool().query("SELECT 1 FROM orders WHERE id = $1", [id])).rows.length > 0,
    },
    crashWhileProcessing: async (received) => {
      const once = deduplicate(postgresStore(newPool()))(async ({ ipn }, client) => {
        await client.query("INSERT INTO orders (id) VALUES ($1)", [ipn.id]);
        const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
        await newPool().query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
      });
      await expect(once(received)).rejects.toThrow();
    },
  });

  it("passes the pool's own client, with its type", () => {
    deduplicate(postgresStore(newPool()))((_, client) => expectTypeOf(client).toEqualTypeOf<PoolClient>());
  });

  it("leaves no transaction open in the pool, however the function ends", async () => {
    const pool = new Pool({ connectionString: database.url, max: 1 });
    pools.push(pool);
    const once = deduplicate(postgresStore(pool));
    const { received } = sampleIpn();
    await expect(once(() => Promise.reject(new Error("x")))(received)).rejects.toThrow("x");
    await expect(once((_, client) => client.query("SELECT 1 / 0"))(received)).rejects.toThrow("division");
    expect(await once(() => undefined)(received)).toBe("processed");
    expect(await once(() => undefined)(received)).toBe("duplicate");
    const { rows } = await pool.query("SELECT count(*)::int AS count FROM paybell_ipns WHERE id = $1", [
      received.ipn.id,
    ]);
    expect(rows).toEqual([{ count: 1 }]);
    await expect(pool.query("SAVEPOINT x")).rejects.toThrow("can only be used in transaction blocks");
  });

  it("waits 10 s at most for a lock, and sees what others committed, whatever is the database's default", async () => {
    const pool = new Pool({ connectionString: database.url, options: "-c default_transaction_isolation=serializable" });
    pools.push(pool);
    const shown: unknown[] = [];
    await deduplicate(postgresStore(pool))(async (_, client) => {
      for (const name of ["lock_timeout", "transaction_isolation"])
        shown.push(...(await client.query(`SHOW ${name}`)).rows);
    })(sampleIpn().received);
    expect(shown).toEqual([{ lock_timeout: "10s" }, { transaction_isolation: "read committed" }]);
  });

  it("gives a connection back as broken if its ROLLBACK fails, because a transaction may be open on it", async () => {
    const released: unknown[] = [];
    const query = () => Promise.reject(new Error("no answer in time"));
    const ignore = () => undefined;
    const client = { query, release: (lost?: unknown) => void released.push(lost), on: ignore, removeListener: ignore };
    const once = deduplicate(postgresStore({ connect: async () => client }))(ignore);
    await expect(once(sampleIpn().received)).rejects.toThrow("no answer in time");
    expect(released).toEqual([new Error("no answer in time")]);
  });

  it.each([
    ["ignores the error of a statement", "SELECT 1 / 0"],
    ["ends the transaction itself", "ROLLBACK"],
  ])("processes an IPN again whose function %s: nothing of it was written", async (_, sql) => {
    const once = deduplicate(postgresStore(newPool()));
    const { received } = sampleIpn();
    const processed = once(async (_, client) => {
      await client.query("INSERT INTO orders (id) VALUES ($1)", [received.ipn.id]);
      await client.query(sql).catch(() => undefined);
    })(received);
    await expect(processed).rejects.toThrow(/transaction/);
    expect(await once(() => undefined)(received)).toBe("processed");
  });

  it("forgets IPNs older than requested, to the day, and never those that may still be delivered", async () => {
    const pool = newPool();
    const store = postgresStore(pool, { table: "public.forgetting" });
    await store.createTable();
    const once = deduplicate(store)(() => undefined);
    const [old, young] = [sampleIpn().received, sampleIpn().received];
    await once(old);
    await once(young);
    const age = "UPDATE forgetting SET seen_at = now() - $1 * interval '1 day' WHERE id = $2";
    await pool.query(age, [101, old.ipn.id]);
    await pool.query(age, [99, young.ipn.id]);
    const many = "SELECT n, n, '{}', now() - interval '101 days' FROM generate_series(1, 5001) AS n";
    await pool.query(`INSERT INTO forgetting (id, chain, facts, seen_at) ${many}`);
    expect(await store.forget()).toBe(5_002);
    expect(await once(old)).toBe("processed");
    expect(await once(young)).toBe("duplicate");
    await expect(store.forget(3)).rejects.toThrow(Misused);
  });

  tableConformance<PoolClient>(
    () => postgresStore(newPool(), { table: "missing" }),
    (tx) => tx.query("SELECT 1 FROM nowhere"),
  );

  it.each(["Robert'); DROP TABLE x", "a.b.c", "UPPER", ""])("refuses the table name %j", (table) => {
    expect(() => postgresStore(newPool(), { table })).toThrow(Misused);
  });
});
