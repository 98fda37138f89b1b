import { hmacKey, openAndVerify, sealingKey } from "@paybell/contract";
import { expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { serviceOfFile } from "../support/service.ts";

const entries = 50_000;

const service = await serviceOfFile();
const [large, small] = await Promise.all([service.register(), service.register()]);

function reportedSettlement(partnerId: string): Record<string, unknown> {
  const settlementList = Array.from({ length: entries }, (_, at) => ({ reqId: `5f0c2a${at}`, refNo: String(at) }));
  const quantity = String(entries);
  const totals = { quantity, saleQuantity: quantity, saleTotalAmount: "20", voidQuantity: "0", voidTotalAmount: "0" };
  return {
    partnerId,
    externalId: "settlement-1",
    command: "SETTLEMENT",
    status: "SUCCESS",
    ...totals,
    totalAmount: "20",
    settlementList,
  };
}

/**
 * The first notification that can be pulled. One shows only once every transaction that began before its own has ended,
 * those of the server's other databases too: there another test may have one open.
 */
async function pulled(): Promise<{ readonly data: string } | undefined> {
  const items = async () => (await large.call("GET", "/v1/notifications")).body["items"] as { data: string }[];
  await expect.poll(items, { interval: 50 }).toHaveLength(1);
  return (await items())[0];
}

test("a settlement of 50,000 entries is delivered and can be pulled, and others are delivered meanwhile", async () => {
  const [id] = await service.report([reportedSettlement(large.id)]);
  const { body } = await small.run(sale());
  const [[delivery], [sold]] = await Promise.all([large.server.next(1), small.server.next(1)]);
  expect(sold?.received?.ipn.id).toBe(body["id"]);
  expect(delivery?.received?.ipn).toMatchObject({ id, transaction_type: "SETTLE" });
  expect(delivery?.received?.ipn).toHaveProperty("settlementList.length", entries);

  const item = await pulled();
  const { encryptionKey, signingKey } = large.secrets;
  const { ipn } = openAndVerify(JSON.stringify({ data: item?.data }), {
    sealing: { cipher: "aes-256-gcm", encoding: "base64" },
    signing: { mode: "fields" },
    encryptionKeys: [sealingKey("any", Buffer.from(encryptionKey, "base64"))],
    signingKeys: [hmacKey(Buffer.from(signingKey, "base64"))],
  });
  expect(ipn).toEqual(delivery?.received?.ipn);
});
