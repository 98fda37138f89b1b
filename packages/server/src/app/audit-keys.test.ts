import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { appendTo, byService, verifyAudit } from "../operators/audit.ts";
import { MasterKey } from "../partners/master-key.ts";
import { postgresPartners } from "../store/partners/partners.ts";
import { auditKeyVersions, openAuditKeys, rotateAuditKey, sealedAudit } from "./audit-keys.ts";

const connections = await openTestDatabase({ as: "service" });
const masterKey = MasterKey.generate();
const store = postgresPartners(connections);
let nowMs = Date.UTC(2026, 10, 21);
const openKeys = () => openAuditKeys(masterKey, store, () => nowMs);
const versions = async () =>
  (await connections.pool.query<{ v: number }>("SELECT get_byte(mac, 0) AS v FROM audit ORDER BY seq")).rows.map(
    ({ v }) => v,
  );

test("a new version of the audit key is used once all instances know it, and an older one cannot go on", async () => {
  const [keys, stolen, late] = [await openKeys(), await openKeys(), await openKeys()];
  const append = (by = keys) =>
    appendTo(sealedAudit(connections, by), {
      ...{ atMs: nowMs, ...byService, action: "test", subject: "", before: "", after: "" },
    });
  await append();
  const rotated = await rotateAuditKey(masterKey, store, sealedAudit(connections, keys), nowMs);
  // Every instance has looked five times until then.
  expect(rotated).toEqual({ version: 2, usedFrom: new Date(nowMs + 300_000).toISOString() });
  for (const instance of [keys, late]) instance.learn(await auditKeyVersions(masterKey, store));
  await append();
  expect(await versions()).toEqual([1, 1, 1, 1]);

  nowMs = Date.parse(rotated.usedFrom);
  await append();
  // The clock of another instance is behind.
  nowMs -= 1_000;
  await append(late);
  const { rows } = await connections.pool.query("SELECT action FROM audit ORDER BY seq");
  expect(rows.map(({ action }) => action)).toEqual([
    ...["test", "begin rotateAuditKey", "rotateAuditKey", "test", "test", "test"],
  ]);
  expect(await versions()).toEqual([1, 1, 1, 1, 2, 2]);
  const opened = await openKeys();
  expect(await verifyAudit(sealedAudit(connections, opened), { keys: opened })).not.toHaveProperty("brokenAt");

  await append(stolen);
  expect(await versions()).toEqual([1, 1, 1, 1, 2, 2, 1]);
  expect(await verifyAudit(sealedAudit(connections, opened), { keys: opened })).toMatchObject({ brokenAt: 7 });
});
