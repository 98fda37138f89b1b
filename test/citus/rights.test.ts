import { afterAll, beforeAll, expect, test } from "vitest";
import { narrowedRights } from "../../packages/server/src/store/database/service-role.ts";
import { prepareSchema } from "../../packages/server/src/store/schema/migrate.ts";
import { createDatabase, type TestDatabase, withAdmin } from "../support/database.ts";

const role = "paybell_rights";

let database: TestDatabase;
let serviceUrl: string;
beforeAll(async () => {
  database = await createDatabase();
  // Citus makes the role on every node.
  await withAdmin(database.url, (client) => client.query(`CREATE ROLE ${role} LOGIN`));
  const url = new URL(database.url);
  url.username = role;
  serviceUrl = url.href;
  await prepareSchema({ databaseUrl: serviceUrl, ownerUrl: database.url });
}, 240_000);
afterAll(async () => {
  await withAdmin(database.url, (client) => client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
  await database.drop();
}, 120_000);

test("the service's role changes neither the audit, the marks, an operator's role nor a notification", async () => {
  await withAdmin(serviceUrl, async (service) => {
    for (const statement of [
      "UPDATE audit SET actor = ''",
      "DELETE FROM audit",
      "DELETE FROM row_seals",
      "UPDATE sealing SET sealed_at = 'infinity'",
      "UPDATE operators SET role = 'admin'",
      "UPDATE home_0.notifications SET content = '{}'",
      "UPDATE home_0.attempts SET http_status = 200",
      "UPDATE home_0.proofs SET attempts = 1",
    ]) {
      await expect(service.query(statement), statement).rejects.toMatchObject({ code: "42501" });
    }
  });
});

test("not enforced by older releases of Citus: the columns of API keys, whose MACs show a change", async () => {
  await withAdmin(database.url, async (owner) => {
    await owner.query("BEGIN");
    const isSupported = await owner.query(`GRANT UPDATE (scopes) ON partner_keys TO ${role}`).then(
      () => true,
      () => false,
    );
    await owner.query("ROLLBACK");
    const { rows } = await owner.query<{ name: string }>(
      `SELECT a.attname::text AS name FROM pg_attribute a
       WHERE a.attrelid = 'partner_keys'::regclass AND a.attnum > 0 AND NOT a.attisdropped
         AND has_column_privilege($1, a.attrelid, a.attnum, 'UPDATE') ORDER BY 1`,
      [role],
    );
    const columns = rows.map(({ name }) => name);
    if (isSupported) expect(columns).toEqual(narrowedRights["partner_keys"]?.columns?.toSorted());
    else expect(columns).toContain("scopes");
  });
});
