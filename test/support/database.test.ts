import { Client } from "pg";
import { expect, test } from "vitest";
import { createDatabase } from "./database.ts";

test("each database is a clone of its own", async () => {
  const [one, other] = await Promise.all([createDatabase(), createDatabase()]);
  expect(one.url).not.toBe(other.url);
  const client = new Client({ connectionString: one.url });
  await client.connect();
  await client.query("CREATE TABLE only_here (id int)");
  await client.end();
  const elsewhere = new Client({ connectionString: other.url });
  await elsewhere.connect();
  await expect(elsewhere.query("SELECT * FROM only_here")).rejects.toMatchObject({ code: "42P01" });
  await elsewhere.end();
  await Promise.all([one.drop(), other.drop()]);
});

test("dropping a database that a client still uses fails and names the client", async () => {
  const database = await createDatabase();
  const client = new Client({ connectionString: database.url, application_name: "forgotten" });
  client.on("error", () => undefined);
  await client.connect();
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  await expect(database.drop()).rejects.toThrow("forgotten");
  await ended;
});

test("a dropped database is gone", async () => {
  const database = await createDatabase();
  await database.drop();
  const client = new Client({ connectionString: database.url });
  await expect(client.connect()).rejects.toMatchObject({ code: "3D000" });
});
