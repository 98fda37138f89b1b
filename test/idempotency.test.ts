import { afterAll, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { holdAnswers } from "./support/held-answers.ts";
import { startTestService } from "./support/service.ts";

const service = await startTestService();
const partner = await service.register();
afterAll(() => service.stop());

async function deliveriesOf(id: unknown): Promise<number> {
  const sentinel = await partner.run(sale());
  // They are in two chains, so there is no order between them.
  const all = await partner.server.until((some) =>
    [id, sentinel.body["id"]].every((wanted) => some.some(({ received }) => received?.ipn.id === wanted)),
  );
  return all.filter(({ received }) => received?.ipn.id === id).length;
}

test("one command sent 20 times at once is one transaction, one charge and one IPN", async () => {
  const booked = service.acquirer.bank.all().length;
  const command = sale();
  const held = holdAnswers(service.acquirer);
  const running = Array.from({ length: 20 }, () => partner.run(command));
  await held.begun(20);
  held.go();
  const answers = await Promise.all(running);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  // The notification proceeds meanwhile: its state may differ between answers, but not its id.
  const told = answers.map(({ body: { notification, ...fields } }) => ({
    ...fields,
    notificationId: (notification as { id: string }).id,
  }));
  expect(told).toEqual(told.map(() => told[0]));
  const [first] = answers;
  expect(service.acquirer.bank.all()).toHaveLength(booked + 1);
  expect(await deliveriesOf(first?.body["id"])).toBe(1);
});

test("the reqId in other letters, and the fields in another order, are the same command", async () => {
  const command = sale();
  const first = await partner.run(command);
  const { reqId, ...others } = command;
  const reordered = Object.fromEntries(Object.entries(others).reverse());
  const again = await partner.run({ ...reordered, reqId: String(reqId).toUpperCase() });
  expect(again.status).toBe(200);
  expect(again.body["id"]).toBe(first.body["id"]);
  expect(await deliveriesOf(first.body["id"])).toBe(1);
});

test("another partner's command with the same reqId is independent", async () => {
  const other = await service.register();
  const command = sale();
  const [mine, theirs] = await Promise.all([partner.run(command), other.run(command)]);
  expect(mine.status).toBe(200);
  expect(theirs.status).toBe(200);
  expect(mine.body["id"]).not.toBe(theirs.body["id"]);
  const foreign = await other.call("GET", `/v1/transactions/${String(mine.body["id"])}`);
  expect(foreign).toMatchObject({ status: 404, body: { code: "not_found" } });
});
