import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { startTestService } from "./support/service.ts";

const service = await startTestService();
const partner = await service.register();
afterAll(async () => {
  // A stop waits for the acquirer's answer, and one of them never comes.
  await service.acquirer.close();
  await service.stop();
});

async function settle(tid: string, headers = {}) {
  const { body: sold } = await partner.run(sale({ tid }));
  const { body } = await partner.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid: sold["mid"] }, headers);
  return { body, sold };
}

test("a settlement of SETTLE_REFUSED is refused, and its batch is open again", async () => {
  const { body, sold } = await settle("SETTLE_REFUSED");
  expect(body).toMatchObject({ status: "ERROR", isoResponseCode: "58", saleQuantity: "1", settlementList: [] });
  const { body: settlement } = await service.operator("GET", `/operator/v1/settlements/${body["id"]}`);
  expect(settlement).toMatchObject({
    state: "refused",
    isoResponseCode: "58",
    totals: { saleQuantity: 1, saleTotalMinor: "150000" },
    acquirerTotals: null,
  });
  const { body: more } = await partner.run(sale({ tid: "SETTLE_REFUSED" }));
  expect(more).toMatchObject({ status: "SUCCESS", batchNo: sold["batchNo"] });
});

test("one of SETTLE_MISMATCH differs, and is accepted after its upload", async () => {
  const { body, sold } = await settle("SETTLE_MISMATCH");
  expect(body).toMatchObject({ status: "SUCCESS", isoResponseCode: "00", settlementList: [{ reqId: sold["reqId"] }] });
  const events = () => service.operator("GET", "/operator/v1/events?state=settlement_mismatched");
  const event = { subjectId: body["id"], detail: { tid: "SETTLE_MISMATCH" } };
  await expect.poll(async () => (await events()).body["items"]).toMatchObject([event]);
  const { body: settlement } = await service.operator("GET", `/operator/v1/settlements/${body["id"]}`);
  expect(settlement).toMatchObject({
    state: "settled",
    batchNo: "000001",
    tries: null,
    listed: 1,
    totals: { saleQuantity: 1, saleTotalMinor: "150000", refundQuantity: 0 },
    acquirerTotals: { saleQuantity: 0, saleTotalMinor: "0", refundQuantity: 0 },
  });
});

test("one of SETTLE_SILENT is not answered", async () => {
  const { body } = await settle("SETTLE_SILENT", { prefer: "respond-async" });
  expect(body).toMatchObject({ status: "INIT" });
  const { body: under } = await service.operator("GET", `/operator/v1/settlements/${body["id"]}`);
  expect(under).toMatchObject({ kind: "SETTLEMENT", tid: "SETTLE_SILENT", totals: { saleQuantity: 1 } });
});
