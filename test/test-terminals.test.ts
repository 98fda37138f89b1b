import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { startTestService, type TestPartner, type WholeService } from "./support/service.ts";

let service: WholeService;
let partner: TestPartner;
beforeAll(async () => {
  service = await startTestService();
  partner = await service.register();
});
afterAll(() => service.stop());

async function settle(tid: string, headers = {}) {
  const { body: sold } = await partner.run(sale({ tid }));
  const { body } = await partner.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid: sold["mid"] }, headers);
  return { body, sold };
}

test("a settlement of SETTLE_REFUSED is refused, and its batch is open again", async () => {
  const { body, sold } = await settle("SETTLE_REFUSED");
  expect(body).toMatchObject({ status: "ERROR", isoResponseCode: "58", saleQuantity: "1", settlementList: [] });
  const { body: more } = await partner.run(sale({ tid: "SETTLE_REFUSED" }));
  expect(more).toMatchObject({ status: "SUCCESS", batchNo: sold["batchNo"] });
});

test("one of SETTLE_MISMATCH differs, and is right after its upload", async () => {
  const { body, sold } = await settle("SETTLE_MISMATCH");
  expect(body).toMatchObject({ status: "SUCCESS", isoResponseCode: "00", settlementList: [{ reqId: sold["reqId"] }] });
  const { body: events } = await service.operator("GET", "/operator/v1/events?state=settlement_mismatched");
  expect(events["items"]).toMatchObject([{ subjectId: body["id"], detail: { tid: "SETTLE_MISMATCH" } }]);
});

test("one of SETTLE_SILENT is not answered", async () => {
  const { body } = await settle("SETTLE_SILENT", { prefer: "respond-async" });
  expect(body).toMatchObject({ status: "INIT" });
  const { body: under } = await service.operator("GET", `/operator/v1/settlements/${body["id"]}`);
  expect(under).toMatchObject({ kind: "SETTLEMENT", tid: "SETTLE_SILENT" });
});
