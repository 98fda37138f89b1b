import { expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { ipnOf } from "./support/receiver.ts";
import { serviceOfFile } from "./support/service.ts";

const service = await serviceOfFile({ env: { PAYBELL_ACQUIRER_TIMEOUT_MS: "400" } });
const partner = await service.register();

async function ipnOfTransaction(id: unknown): Promise<Record<string, string>> {
  const deliveries = await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === id));
  return ipnOf(deliveries.find(({ received }) => received?.ipn.id === id));
}

test.each([
  ["tok_decline_05", "05"],
  ["tok_decline_51", "51"],
  ["tok_approve_10", "10"],
])("%s is answered 200 and notified as an error with code %s", async (token, isoResponseCode) => {
  const { status, body } = await partner.run(sale({ card: { token } }));
  expect(status).toBe(200);
  const failure = { status: "ERROR", isoResponseCode, refId: "", transaction_type: "SALE" };
  expect(body).toMatchObject(failure);
  expect(await ipnOfTransaction(body["id"])).toMatchObject(failure);
});

test("a late answer changes nothing and is reported to the operator, not to the partner", async () => {
  const { body } = await partner.run(sale({ card: { token: "tok_late" } }));
  expect(body).toMatchObject({ status: "ERROR", isoResponseCode: "68" });
  await ipnOfTransaction(body["id"]);
  const lateAnswers = () => service.service.metrics.text().then((text) => /^paybell_late_answers.*$/m.exec(text)?.[0]);
  await expect.poll(lateAnswers).toMatch(/approved="true"\} 1$/);
  const found = await partner.call("GET", `/v1/transactions/${String(body["id"])}`);
  expect(found.body).toMatchObject({ status: "ERROR", isoResponseCode: "68" });
  const sentinel = await partner.run(sale());
  await ipnOfTransaction(sentinel.body["id"]);
  expect(partner.server.deliveries.filter(({ received }) => received?.ipn.id === body["id"])).toHaveLength(1);
});

test("Prefer: respond-async answers 202 at once, and the outcome comes as an IPN", async () => {
  const command = sale({ card: { token: "tok_slow_200" } });
  const { status, body } = await partner.run(command, { prefer: "respond-async" });
  expect(status).toBe(202);
  expect(body).toMatchObject({ status: "INIT", isoResponseCode: "", approveCode: "", notification: null });
  expect(await ipnOfTransaction(body["id"])).toMatchObject({ status: "SUCCESS", isoResponseCode: "00" });
  const again = await partner.run(command);
  expect(again).toMatchObject({ status: 200, body: { id: body["id"], status: "SUCCESS" } });
});
