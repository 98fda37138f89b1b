import { expect, onTestFinished, test } from "vitest";
import { connectionsTo } from "../../../../../test/support/connections.ts";
import { createDatabase, withAdmin } from "../../../../../test/support/database.ts";
import { systemClock } from "../../clock.ts";
import { Operators } from "../../operators/operators.ts";
import { postgresOperators } from "./operators.ts";

test("the token of a sign-in is deleted a day after it ended, and one that an admin made is kept", async () => {
  const database = await createDatabase();
  const connections = connectionsTo(database.serviceUrl, 2);
  onTestFinished(async () => {
    await connections.close();
    await database.drop();
  });
  const store = postgresOperators(connections.pool);
  const operators = new Operators(store, systemClock);
  const person = { subject: "https://login.example ada", name: "Ada", role: "admin" } as const;
  const over = await operators.signIn(person);
  const others = [await operators.signIn({ ...person, subject: "bob" }), await operators.signIn(person)];
  const byAdmin = await operators.add({ name: "Grace", role: "viewer" });
  await withAdmin(database.url, (client) =>
    client.query("UPDATE operators SET expires_at = now() - interval '25 hours'"),
  );
  const { operator, token } = await operators.signIn(person);
  expect(await operators.find(token)).toMatchObject({ ...person, name: "Ada (OIDC)", id: operator.id });
  const ids = (await operators.list()).map(({ id }) => id);
  expect(ids).toEqual(expect.arrayContaining([byAdmin.operator.id, operator.id]));
  expect(ids).not.toContain(over.operator.id);
  expect(ids, "there were two admins").toEqual(expect.arrayContaining([others[1]?.operator.id]));
  await store.used(operator.id);
  await withAdmin(database.url, (client) => client.query("UPDATE operators SET last_used_at = '2026-01-31T00:00:00Z'"));
  await store.used(operator.id);
  const { lastUsedAt } = (await operators.list()).find(({ id }) => id === operator.id) ?? {};
  expect(Number(lastUsedAt)).toBeGreaterThan(Date.UTC(2026, 1));
  await withAdmin(database.url, (client) =>
    client.query("UPDATE operators SET last_used_at = NULL WHERE subject IS NULL"),
  );
  expect((await operators.list()).find(({ id }) => id === byAdmin.operator.id)).toMatchObject({ lastUsedAt: null });
  // Revoking again keeps the first time.
  const first = await operators.revoke(operator.id);
  expect(await operators.revoke(operator.id)).toEqual(first);
});
