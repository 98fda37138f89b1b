import { generate } from "selfsigned";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { watchCertificates } from "../../alerts/watches.ts";
import { newId } from "../../ids.ts";
import { MasterKey } from "../../partners/master-key.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { insertEvents, postgresEvents } from "../events.ts";
import { postgresCertificates } from "./partners.ts";
import { openRegistry, sampleInput } from "./registry.fixture.ts";

const dayMs = 86_400_000;
const connections = await openTestDatabase({ as: "service" });
const certificates = postgresCertificates(connections.homes);
const { directory, registry } = openRegistry(connections, MasterKey.generate());
const { id } = (await registry.register(sampleInput)).partner;

async function issued(days: number) {
  const notAfterDate = new Date(Math.floor(Date.now() / 1_000) * 1_000 + days * dayMs);
  const made = await generate([{ name: "commonName", value: "paybell.test" }], { keyType: "ec", notAfterDate });
  return { certificate: made.cert, key: made.private, endsAt: notAfterDate };
}

test("a client certificate is stored encrypted, used until it ends, and its key is shown nowhere", async () => {
  const { endsAt, ...input } = await issued(30);
  const record = await registry.putCallbackCertificate(id, input);
  const version = record.keys.find(({ kind }) => kind === "callbackKey");
  expect(version).toMatchObject({ expiresAt: endsAt });
  expect(JSON.stringify(record)).not.toContain("PRIVATE KEY");
  const { client } = (await directory.find(id))?.keys ?? {};
  expect(client).toMatchObject({ id: version?.id, certificate: input.certificate });
  expect(client?.key.export({ type: "pkcs8", format: "pem" }).toString().trim()).toBe(input.key.trim());
  const { rows } = await connections.pool.query("SELECT material FROM partner_keys WHERE id = $1", [version?.id]);
  expect(rows[0].material.includes("PRIVATE")).toBe(false);
});

test("another replaces it at once, and none is left when it is removed", async () => {
  const { certificate, key } = await issued(40);
  await registry.putCallbackCertificate(id, { certificate, key });
  expect((await directory.find(id))?.keys.client).toMatchObject({ certificate });
  await registry.removeCallbackCertificate(id);
  expect((await directory.find(id))?.keys.client).toBeUndefined();
  await expect(registry.putCallbackCertificate(newId(), { certificate, key })).rejects.toMatchObject({
    code: "not_found",
  });
  await expect(registry.putCallbackCertificate(id, { certificate, key: "x" })).rejects.toMatchObject({
    fields: [{ field: "key" }],
  });
});

test("one that ends within 14 days is reported once a day", async () => {
  const told: NewEvent[] = [];
  const look = () => watchCertificates(certificates, [], watching(told));
  for (const days of [15, 13]) {
    const { certificate, key } = await issued(days);
    await registry.putCallbackCertificate(id, { certificate, key });
    await look();
  }
  expect(told).toMatchObject([{ kind: "certificate_ending", partnerId: id, detail: { certificate: "ours" } }]);
  await insertEvents(connections.pool as never, told, false);
  await look();
  expect(told).toHaveLength(1);
});

test("a partner's CA that ends within 14 days is reported once a day, and one that has ended is not", async () => {
  const told: NewEvent[] = [];
  const look = () => watchCertificates(certificates, [], watching(told));
  await registry.removeCallbackCertificate(id);
  const pems = new Map<number, string>();
  for (const days of [-1, 9, 13, 15]) pems.set(days, await authority(days));
  const have = (...days: number[]) =>
    registry.change(id, { callbackCa: days.map((each) => pems.get(each)).join("\n") });
  await have(-1, 15);
  await look();
  expect(told).toEqual([]);
  await have(15, 13, 9, -1);
  await look();
  expect(told).toMatchObject([{ kind: "certificate_ending", partnerId: id, detail: { certificate: "callbackCa" } }]);
  const leftMs = Date.parse(String(told[0]?.detail["endsAt"])) - Date.now();
  expect(Math.round(leftMs / dayMs)).toBe(9);
  await insertEvents(connections.pool as never, told, false);
  await look();
  expect(told).toHaveLength(1);
  await registry.change(id, { callbackCa: null });
});

test("an authority of the whole service that ends within 14 days is reported once a day", async () => {
  const told: NewEvent[] = [];
  const look = async (...days: number[]) =>
    watchCertificates(certificates, await Promise.all(days.map(authority)), watching(told));
  await look(15, -1);
  expect(told).toEqual([]);
  await look(15, 13);
  const detail = { certificate: "PAYBELL_CALLBACK_CA_FILE", endsAt: expect.any(String) };
  expect(told).toMatchObject([{ kind: "certificate_ending", partnerId: null, detail }]);
  await insertEvents(connections.pool as never, told, false);
  await look(13);
  expect(told).toHaveLength(1);
});

function watching(told: NewEvent[]) {
  const events = postgresEvents(connections.homes);
  const record = async (event: NewEvent) => void told.push(event);
  return {
    record,
    recordOnce: async (event: NewEvent, withinMs: number) => {
      if (!(await events.wasRecordedSince(event.kind, Date.now() - withinMs))) await record(event);
    },
  };
}

async function authority(days: number): Promise<string> {
  const made = await generate([{ name: "commonName", value: `authority for ${days} days` }], {
    keyType: "ec",
    notBeforeDate: new Date(Date.now() - 30 * dayMs),
    notAfterDate: new Date(Date.now() + days * dayMs),
    extensions: [{ name: "basicConstraints", cA: true, critical: true }],
  });
  return made.cert;
}
