import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { type FailureKind, failureKindOf, inTransaction } from "./transaction.ts";

const connections = await openTestDatabase();
await connections.pool.query("CREATE TABLE written (name text)");
const insert = "INSERT INTO written (name) VALUES ($1)";
const written = async () =>
  (await connections.pool.query<{ name: string }>("SELECT name FROM written ORDER BY name")).rows.map(
    ({ name }) => name,
  );

test("a transaction resolves to the result of its work once that is committed", async () => {
  const result = await inTransaction(connections.pool, async (client) => {
    await client.query(insert, ["kept"]);
    return "done";
  });
  expect(result).toBe("done");
  expect(await written()).toContain("kept");
});

test("nothing is left of work that failed, and its connection is not used again", async () => {
  const before = connections.pool.totalCount;
  const broken = inTransaction(connections.pool, async (client) => {
    await client.query(insert, ["failed"]);
    throw new Error("broken off");
  });
  await expect(broken).rejects.toThrow("broken off");
  expect(connections.pool.totalCount).toBe(before - 1);
  expect(await written()).not.toContain("failed");
});

test("a COMMIT that PostgreSQL answers by rolling back is an error, though it says none itself", async () => {
  const swallowed = inTransaction(connections.pool, async (client) => {
    await client.query(insert, ["swallowed"]);
    await client.query("SELECT 1 / 0").catch(() => undefined);
  });
  await expect(swallowed).rejects.toThrow("The transaction was rolled back.");
  expect(await written()).not.toContain("swallowed");
});

test("may begin with an isolation of its own", async () => {
  const level = await inTransaction(
    connections.pool,
    async (client) => (await client.query("SHOW transaction_isolation")).rows[0],
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  );
  expect(level).toEqual({ transaction_isolation: "repeatable read" });
});

test.each<[FailureKind, readonly string[]]>([
  ["conflict", ["40001", "40P01", "55P03", "40003"]],
  ["data", ["22P02", "23505", "54000"]],
  ["connection", ["08006", "28P01", "53300", "57P01", "58030", "25006", "25P03", "3D000"]],
  ["bug", ["42601", "25001", "XX000"]],
])("PostgreSQL's code tells whether to repeat the work: %s", (kind, codes) => {
  const errors = codes.map((code) => Object.assign(new DatabaseError(code, 0, "error"), { code }));
  expect(errors.map(failureKindOf)).toEqual(codes.map(() => kind));
});

test.each([
  ["connection", { code: "EMFILE", syscall: "connect" }],
  ["connection", { code: "EAI_FAIL", syscall: "getaddrinfo" }],
  ["connection", { code: "CERT_HAS_EXPIRED" }],
  ["bug", { code: "ERR_INVALID_ARG_TYPE" }],
] as const)("an error of this machine is of the kind %s: %j", (kind, more) => {
  expect(failureKindOf(Object.assign(new Error("it failed"), more))).toBe(kind);
});
