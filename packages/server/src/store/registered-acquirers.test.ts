import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { connectionsTo } from "../../../../test/support/connections.ts";
import { createDatabase } from "../../../../test/support/database.ts";
import { lockWaits } from "../../../../test/support/locks.ts";
import { dumpRows } from "../../../../test/support/rows.ts";
import { AcquirerRegistry } from "../acquirer/registered/registry.ts";
import type { TransactionId } from "../ids.ts";
import { MasterKey, resealAll } from "../partners/master-key.ts";
import { completeTerminal } from "../partners/terminal.ts";
import { postgresReSeal } from "./partners/partners.ts";
import { PostgresAcquirers } from "./registered-acquirers.ts";
import { postgresReversals } from "./reversals/reversals.ts";
import { insertLease, insertPartner, sampleInit } from "./rows.fixture.ts";
import { postgresTerminals } from "./terminals/terminals.ts";
import { PostgresTransactions } from "./transactions/transactions.ts";

const path = join(import.meta.dirname, "../../../../docs/operator/acquirer-profile.json");
const profile = { ...JSON.parse(readFileSync(path, "utf8")), mac: { algorithm: "x9.19", networkMessages: true } };
const macKey = "0123456789abcdeffedcba9876543210";
const [oldRaw, newRaw] = [randomBytes(32), randomBytes(32)];

const database = await createDatabase();
const connections = connectionsTo(database.url, 6);
const store = new PostgresAcquirers(connections);
let registry = new AcquirerRegistry(store, new MasterKey(oldRaw));
afterAll(async () => {
  await connections.close();
  await database.drop();
});

const input = { profile, hosts: ["bank.example:5000"], macKey };

test("a registered acquirer is shown without its key, which is stored sealed, and can be changed in part", async () => {
  const added = await registry.put("first", input);
  const kept = { hasKey: false, hasMacKey: true, hasKeyEncryptionKey: false };
  expect(added).toMatchObject({ name: "first", hosts: ["bank.example:5000"], tls: "on", ...kept });
  expect(JSON.stringify(added)).not.toContain(macKey);
  const before = await store.versions();
  const changed = await registry.put("first", { hosts: ["other.example:5000"] });
  expect(changed).toMatchObject({ hosts: ["other.example:5000"], hasMacKey: true, profile });
  expect((await store.versions()).get("first")).not.toBe(before.get("first"));
  expect(await registry.list()).toEqual([changed]);
  const rows = await dumpRows(database);
  expect(rows).not.toContain(macKey);
  expect(rows).not.toContain(Buffer.from(macKey).toString("hex"));
  await expect(registry.put("first", { macKey: "00" })).rejects.toMatchObject({ code: "invalid_value" });
  expect(await registry.find("nobody")).toBeUndefined();
});

test("a change of everything is stored whole; of two changes at once neither is lost", async () => {
  await registry.put("changed", input);
  const before = await store.find("changed");
  const other = { ...profile, name: "other-host" };
  const key = "fedcba98765432100123456789abcdef";
  const pems = { ca: "CA", certificate: "CERTIFICATE" };
  await registry.put("changed", { profile: other, hosts: ["other.example:1"], tls: "off", ...pems, macKey: key });
  const after = await store.find("changed");
  expect(after).toMatchObject({ profile: JSON.stringify(other), hosts: ["other.example:1"], tls: false, ...pems });
  expect(after && registry.linkOptions(after).macKey).toEqual(Buffer.from(key, "hex"));
  expect(after?.updatedAt.getTime()).toBeGreaterThan(before?.updatedAt.getTime() ?? Number.POSITIVE_INFINITY);
  await Promise.all([registry.put("changed", { ca: "" }), registry.put("changed", { certificate: "" })]);
  expect(await store.find("changed")).toMatchObject({ ca: "", certificate: "" });
  await registry.remove("changed");
});

test("a sign-off is that of a host of one acquirer, and another process uses every acquirer", async () => {
  const signedOff = async () =>
    (await Promise.all(["one", "two"].map((name) => store.signedOff(name)))).map((s) => [...s]);
  for (const host of ["a:1", "b:1", "a:1"]) await store.noteSignOff("one", host, true);
  await store.noteSignOff("two", "a:1", true);
  await store.noteSignOff("one", "a:1", false);
  expect(await signedOff()).toEqual([["b:1"], ["a:1"]]);
  await connections.pool.query("DELETE FROM acquirer_sign_offs");
  const own = await insertLease(connections.pool);
  expect([await store.isUsedByOthers(own), await store.isUsedByOthers(undefined)]).toEqual([false, true]);
  await insertLease(connections.pool);
  expect(await store.isUsedByOthers(own)).toBe(true);
});

test("a rotation of the master key seals its keys anew", async () => {
  await registry.put("rotated", input);
  const during = new MasterKey(newRaw, [oldRaw]);
  expect((await resealAll(postgresReSeal(connections.pool), during)).notOpened).toBe(0);
  const stored = await store.find("rotated");
  if (stored === undefined) throw new Error("it is registered");
  const after = new AcquirerRegistry(store, new MasterKey(newRaw));
  expect(after.linkOptions(stored).macKey).toEqual(Buffer.from(macKey, "hex"));
  registry = after;
});

test("a key that came over a link leaves that of the next registration alone, and goes with its acquirer", async () => {
  await registry.put("keyed", input);
  const versions = await store.versions();
  await store.replaceMacKey("keyed", "acquirer-key keyed 2", undefined, Buffer.from("second"));
  await store.replaceMacKey("keyed", "acquirer-key keyed 1", undefined, Buffer.from("of the link that drains"));
  await store.replaceMacKey("keyed-too", "acquirer-key keyed-too 1", undefined, Buffer.from("another"));
  expect(await store.readMacKey("acquirer-key keyed 2")).toEqual(Buffer.from("second"));
  // The link is not opened again for it.
  expect(await store.versions()).toEqual(versions);
  await registry.remove("keyed");
  for (const hash of [1, 2]) expect(await store.readMacKey(`acquirer-key keyed ${hash}`)).toBeUndefined();
  expect(await store.readMacKey("acquirer-key keyed-too 1")).toEqual(Buffer.from("another"));
  await connections.pool.query("DELETE FROM sealed_values WHERE name LIKE 'acquirer-key keyed-too%'");
});

test("a key that came is forgotten once another MAC key is registered, so that the first can be registered again", async () => {
  const kept = () => store.readMacKey("acquirer-key again 1");
  await registry.put("again", input);
  await store.replaceMacKey("again", "acquirer-key again 1", undefined, Buffer.from("first"));
  await registry.put("again", { hosts: ["other.example:5000"], macKey: macKey.toUpperCase() });
  expect(await kept()).toEqual(Buffer.from("first"));
  await registry.put("again", { macKey: "fedcba98765432100123456789abcdef" });
  expect(await kept()).toBeUndefined();
  await registry.remove("again");
});

test("one that a terminal names, or a Reversal goes to, is not removed", async () => {
  await registry.put("used", input);
  const terminals = postgresTerminals(connections.homes);
  const partnerId = await insertPartner(connections.pool);
  const put = (acquirer: string) => terminals.upsert(partnerId, completeTerminal("T1", { mid: "M1", acquirer }), 30);
  await put("used");
  const elsewhere = await insertPartner(connections.pool);
  for (const tid of ["T3", "T2"])
    await terminals.upsert(elsewhere, completeTerminal(tid, { mid: "M1", acquirer: "used" }), 30);
  await terminals.upsert(elsewhere, completeTerminal("T0", { mid: "M1" }), 30);
  const listed = [partnerId, elsewhere].sort().flatMap((id) => (id === partnerId ? ["T1"] : ["T2", "T3"]));
  const tids = async (rowsMax: number) => (await registry.terminals("used", rowsMax)).map(({ tid }) => tid);
  expect([await tids(9), await tids(2), await registry.terminals("", 9)]).toEqual([listed, listed.slice(0, 2), []]);
  for (const tid of ["T2", "T3"]) await terminals.remove(elsewhere, tid, 30);
  await expect(registry.remove("used")).rejects.toMatchObject({ code: "acquirer_in_use" });
  await put("");
  await connections.pool.query(
    `WITH t AS (
       INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, tid, acquirer)
       VALUES ($1, gen_random_uuid(), 'command', 'SALE', 'ERROR', gen_random_uuid(), '{}', 'T1', 'used')
       RETURNING partner_id, id, tid)
     INSERT INTO reversals (partner_id, transaction_id, tid) SELECT partner_id, id, tid FROM t`,
    [partnerId],
  );
  await expect(registry.remove("used")).rejects.toMatchObject({ code: "acquirer_in_use" });
  await connections.pool.query("UPDATE reversals SET state = 'PARKED'");
  await expect(registry.remove("used"), "an operator may send it again").rejects.toMatchObject({
    code: "acquirer_in_use",
  });
  await connections.pool.query("UPDATE reversals SET state = 'DONE'");
  await connections.pool.query("UPDATE transactions SET state = 'INIT'");
  await expect(registry.remove("used"), "one is in flight").rejects.toMatchObject({ code: "acquirer_in_use" });
  await connections.pool.query("UPDATE transactions SET state = 'ERROR'");
  for (const name of ["first", "used"]) await store.noteSignOff(name, "bank.example:5000", true);
  expect(await registry.remove("used")).toMatchObject({ name: "used" });
  expect((await registry.list()).map(({ name }) => name)).toEqual(["first", "rotated"]);
  const signedOff = await connections.pool.query("SELECT acquirer FROM acquirer_sign_offs");
  expect(signedOff.rows).toEqual([{ acquirer: "first" }]);
  await expect(registry.remove("used")).rejects.toMatchObject({ code: "not_found" });
  const kept = await connections.pool.query("SELECT FROM sealed_values WHERE name = 'acquirer used'");
  expect(kept.rowCount).toBe(0);
  const reversals = postgresReversals(connections.homes);
  const { rows } = await connections.pool.query<{ id: TransactionId }>("SELECT transaction_id AS id FROM reversals");
  const again = () => Promise.all(rows.map(({ id }) => reversals.retry(partnerId, id, "DONE")));
  expect(await again(), "it would never end").toEqual(["no_acquirer"]);
  expect(await reversals.claimDue(9, 1_000)).toEqual([]);
  expect(await put("used")).toEqual({ outcome: "no_such_acquirer" });
  await registry.put("used", input);
  expect(await again()).toEqual([true]);
  const leaseId = await insertLease(connections.pool);
  const ofOriginal = { tid: "T1", mid: "M1", acquirer: "used", originalId: rows[0]?.id ?? null };
  const void_ = () => new PostgresTransactions(connections).begin(sampleInit(partnerId, leaseId, ofOriginal));
  expect(await void_()).toMatchObject({ outcome: "begun" });
  const removing = await connections.pool.connect();
  await removing.query("BEGIN");
  await removing.query("DELETE FROM acquirers WHERE name = 'used'");
  const begun = void_();
  await lockWaits(connections.pool);
  await removing.query("COMMIT");
  removing.release();
  expect(await begun, "its Reversal would never end").toEqual({ outcome: "rerouted" });
});
