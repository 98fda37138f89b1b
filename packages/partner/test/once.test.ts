import { randomUUID } from "node:crypto";
import { once as nextEvent } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { deduplicate, type OnceIpn, receiver } from "@paybell/partner";
import { client } from "@paybell/partner/client";
import { nodeHandler } from "@paybell/partner/node";
import { postgresStore } from "@paybell/partner/postgres";
import { Pool, type PoolClient } from "pg";
import { afterAll, expect, it } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { startTestService } from "../../../test/support/service.ts";

let onIpn: OnceIpn<PoolClient>;
const service = await startTestService();
const database = await createDatabase();
const pool = new Pool({ connectionString: database.url });
const store = postgresStore(pool);
await store.createTable();
await pool.query("CREATE TABLE payments (id text NOT NULL)");
const callback = createServer((request, response) => handle(request, response)).listen(0, "127.0.0.1");
await nextEvent(callback, "listening");
const callBackUrl = `http://127.0.0.1:${(callback.address() as AddressInfo).port}/ipn`;
const partner = await service.register({ callBackUrl, retry: [1, 1, 60] });
const once = deduplicate(store)((received, tx, order) => onIpn(received, tx, order));
const handle = nodeHandler(receiver(partner.keys), once, { log: () => undefined });
afterAll(async () => {
  await service.stop();
  await new Promise((resolve) => callback.close(resolve));
  await pool.end();
  await database.drop();
});

const paybell = () => client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
const sell = () =>
  paybell().runCommand({
    command: "SALE",
    reqId: randomUUID(),
    amount: "150000",
    currency: "VND",
    tid: "T0000001",
    mid: "M00000001",
    merchantTransId: "order-1",
    card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
  });
const payments = async (id: string) => (await pool.query("SELECT 1 FROM payments WHERE id = $1", [id])).rows.length;

it("an IPN is processed once through the real service, whatever fails and however often it is sent", async () => {
  let failures = 2;
  onIpn = async ({ ipn }, tx) => {
    await tx.query("INSERT INTO payments (id) VALUES ($1)", [ipn.id]);
    if (failures-- > 0) throw new Error("after the write");
  };
  const sale = await sell();
  const notificationId = sale.notification?.id ?? "";
  await partner.settled(notificationId, "accepted");
  expect(await payments(sale.id)).toBe(1);
  const { attempts } = await paybell().getNotification(notificationId);
  expect(attempts.map(({ httpStatus }) => httpStatus).sort()).toEqual([204, 500, 500]);

  await paybell().redeliverNotification(notificationId);
  await partner.settled(notificationId, "accepted");
  expect((await paybell().getNotification(notificationId)).attempts).toHaveLength(4);
  expect(await payments(sale.id)).toBe(1);
});

it("a Sale that is delivered after its Void is known to be stale", async () => {
  const orders: [string, boolean][] = [];
  let refusesSales = true;
  onIpn = ({ ipn }, _, { stale }) => {
    if (ipn.transaction_type === "SALE" && refusesSales) throw new Error("not now");
    orders.push([ipn.transaction_type, stale]);
  };
  await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, { retry: [1] });
  const sale = await sell();
  const notificationId = sale.notification?.id ?? "";
  // Its schedule ends after a second, and a parked IPN no longer holds its Void up.
  await partner.settled(notificationId, "parked");
  const voided = await paybell().runCommand({ command: "VOID", reqId: randomUUID(), transactionId: sale.id });
  await partner.settled(voided.notification?.id ?? "", "accepted");
  refusesSales = false;
  await paybell().redeliverNotification(notificationId);
  await partner.settled(notificationId, "accepted");
  expect(orders).toEqual([
    ["VOID", false],
    ["SALE", true],
  ]);
});
