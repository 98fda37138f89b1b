import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { reportedSale } from "./support/commands.ts";
import { createDatabase } from "./support/database.ts";
import { partnerHost, spawnInstance } from "./support/instance.ts";

test("a password in PGPASSWORD, and not in DATABASE_URL, is enough to deliver", async () => {
  const { host, callsLoopback } = partnerHost();
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const [, name = "", password = ""] = /^postgres:\/\/([^:]+):([^@]+)@/.exec(database.serviceUrl) ?? [];
  expect(password).not.toBe("");
  const instance = await spawnInstance({
    databaseUrl: database.serviceUrl.replace(/\/\/[^@]+@/, `//${name}@`),
    masterKey: randomBytes(32),
    callsLoopback,
    env: { PGPASSWORD: decodeURIComponent(password) },
  });
  const partner = await instance.register({}, { host });
  const [id] = await instance.report([reportedSale(partner.id)]);
  await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === id));
  await partner.server.close();
  instance.signal("SIGTERM");
  expect(await instance.exited, instance.output()).toBe(0);
});
