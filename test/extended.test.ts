import { randomUUID } from "node:crypto";
import { receiver } from "@paybell/partner";
import { expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { inHomes } from "./support/database.ts";
import { serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

async function run(partner: TestPartner, command: Readonly<Record<string, unknown>>) {
  const reqId = randomUUID();
  const { status, body, text } = await partner.run({ ...command, reqId });
  expect(status, text).toBe(200);
  return { id: String(body["id"]), reqId };
}

/** The signed fields of the next IPNs that the specification lacks. */
async function said(partner: TestPartner, count: number) {
  const all = await partner.server.next(count);
  return all.map(({ received, refused }) => {
    expect(refused).toBeUndefined();
    const { command, originalId, originalReqId, currency } = Object(received?.ipn) as Record<string, string>;
    return received?.kind === "settlement" ? { command, currency } : { command, originalId, originalReqId };
  });
}

const none = { originalId: "", originalReqId: "" };
const extended = { fields: "extended" } as const;

test("an extended IPN says its command and its original, however it is signed, also at another terminal", async () => {
  for (const signing of [{ mode: "fields" }, { mode: "whole" }] as const) {
    const partner = await service.register({ ...extended, signing });
    const [mid, currency] = ["M00000000000009", "USD"];
    const till = { tid: `T${randomUUID().slice(0, 7)}`, mid };
    const elsewhere = { tid: `T${randomUUID().slice(0, 7)}`, mid };
    const sold = await run(partner, sale({ ...till, currency, amount: "10.00" }));
    const preAuth = await run(partner, { ...sale({ ...elsewhere, currency, amount: "10.00" }), command: "PREAUTH" });
    const completing = { command: "PREAUTH_COMPLETE", transactionId: preAuth.id, amount: "8.00", tid: till.tid };
    const complete = await run(partner, completing);
    await run(partner, { command: "VOID", transactionId: complete.id });
    await run(partner, { command: "VOID", transactionId: sold.id });
    await run(partner, { command: "SETTLEMENT", ...till });
    const of = ({ id, reqId }: typeof sold) => ({ originalId: id, originalReqId: reqId });
    expect(await said(partner, 6)).toEqual(
      expect.arrayContaining([
        { command: "SALE", ...none },
        { command: "PREAUTH", ...none },
        { command: "PREAUTH_COMPLETE", ...of(preAuth) },
        { command: "VOID", ...of(complete) },
        { command: "VOID", ...of(sold) },
        { command: "SETTLEMENT", currency },
      ]),
    );
  }
});

test("a switch's report says its command and its original, known or not", async () => {
  const partner = await service.register(extended);
  const [saleOf, preAuthOf] = [randomUUID(), randomUUID()];
  const money = { partnerId: partner.id, amount: "10", currency: "USD", status: "SUCCESS", isoResponseCode: "00" };
  const reqId = randomUUID();
  await service.report([
    { ...money, externalId: saleOf, command: "SALE", reqId },
    // Nothing but the command tells it from a Sale.
    { ...money, externalId: preAuthOf, command: "PREAUTH", batchNo: "000001" },
  ]);
  const voided = { ...money, command: "VOID" };
  const [saleId] = await service.report([{ ...money, externalId: saleOf, command: "SALE", reqId }]);
  await service.report([
    { ...voided, externalId: randomUUID(), originalExternalId: saleOf },
    { ...voided, externalId: randomUUID(), originalExternalId: randomUUID(), originalCommand: "SALE" },
  ]);
  expect(await said(partner, 4)).toEqual(
    expect.arrayContaining([
      { command: "SALE", ...none },
      { command: "PREAUTH", ...none },
      { command: "VOID", originalId: saleId, originalReqId: reqId },
      { command: "VOID", ...none },
    ]),
  );
});

test("an IPN that is older than the setting says what the ledger knows, pulled and redelivered", async () => {
  const partner = await service.register();
  const sold = await run(partner, sale());
  const voided = await run(partner, { command: "VOID", transactionId: sold.id });
  const [, delivery] = await partner.server.next(2);
  expect(delivery?.received).toMatchObject({ fields: "specification", command: undefined });
  expect(delivery?.received?.ipn).not.toHaveProperty("command");
  const { status } = await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, extended);
  expect(status).toBe(200);

  const both = { ...partner.keys, fields: ["specification", "extended"] } as const;
  partner.server.opensWith(both);
  const id = String(delivery?.headers["webhook-id"]);
  await partner.listed(id);
  const { body: page } = await partner.call("GET", "/v1/notifications");
  const items = page["items"] as { id: string; data: string; headers: Record<string, string> }[];
  const pulled = items.find((item) => item.id === id);
  const opened = receiver(both).open(JSON.stringify({ data: pulled?.data }), pulled?.headers ?? {});
  const expected = { id: voided.id, command: "VOID", originalId: sold.id, originalReqId: sold.reqId };
  expect(opened).toMatchObject({ fields: "extended", command: "VOID", originalTransactionId: sold.id, ipn: expected });

  // The reqId was committed with the content: what somebody makes of it in the ledger changes no IPN.
  await inHomes(service.database, (client) =>
    client.query("UPDATE transactions SET req_id = $2 WHERE id = $1", [sold.id, randomUUID()]),
  );
  await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: {} });
  const [, , again] = await partner.server.next(3);
  expect(again?.received?.ipn).toMatchObject(expected);
  const explained = await service.operator("GET", `/operator/v1/notifications/${id}/content`);
  expect(JSON.stringify(explained.body)).toContain(`&command=VOID&originalId=${sold.id}&originalReqId=${sold.reqId}`);
});
