import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { startTestService, type TestPartner } from "./support/service.ts";

const service = await startTestService();
afterAll(() => service.stop());

let terminals = 0;
const newTid = () => {
  terminals += 1;
  return `T9${String(terminals).padStart(6, "0")}`;
};
const put = (partner: TestPartner, tid: string, mid: string) =>
  service.operator("PUT", `/operator/v1/partners/${partner.id}/terminals/${tid}`, { mid });

test("a terminal that one partner has registered is refused for every other, also at first use", async () => {
  const [owner, other] = [await service.register(), await service.register()];
  const tid = newTid();
  expect(await put(owner, tid, "M1")).toMatchObject({ status: 200 });
  expect(await put(owner, tid, "M1")).toMatchObject({ status: 200 });
  expect(await put(other, tid, "M1")).toMatchObject({ status: 409, body: { code: "terminal_taken" } });
  expect(await other.run(sale({ tid, mid: "M1" }))).toMatchObject({ status: 409, body: { code: "terminal_taken" } });
  expect(await put(other, tid, "M2"), "the same tid of another merchant").toMatchObject({ status: 200 });
  expect(await owner.run(sale({ tid, mid: "M1" }))).toMatchObject({ status: 200 });
});

test("a terminal that was given up with its mid can be registered by another", async () => {
  const [owner, other] = [await service.register(), await service.register()];
  const tid = newTid();
  await put(owner, tid, "M1");
  await put(owner, tid, "M2");
  expect(await put(other, tid, "M1")).toMatchObject({ status: 200 });
});

test("its mid stays while its batch is not empty", async () => {
  const partner = await service.register();
  const tid = newTid();
  const { body } = await partner.run(sale({ tid, mid: "M1" }));
  expect(await put(partner, tid, "M2")).toMatchObject({ status: 409, body: { code: "terminal_busy" } });
  expect(await put(partner, tid, "M1"), "what else is registered may change").toMatchObject({ status: 200 });
  await partner.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: body["id"] });
  expect(await put(partner, tid, "M2")).toMatchObject({ status: 200 });
});

test("its mid stays while a PreAuth is open, and what follows an older one has that one's mid", async () => {
  const partner = await service.register();
  const tid = newTid();
  const preAuth = { ...sale({ tid, mid: "M1" }), command: "PREAUTH" };
  const { body } = await partner.run(preAuth);
  expect(await put(partner, tid, "M2")).toMatchObject({ status: 409, body: { code: "terminal_busy" } });
  const older = "UPDATE transactions SET created_at = now() - interval '31 days' WHERE id = $1";
  await queryHomes(service.database, older, [body["id"]]);
  expect(await put(partner, tid, "M2")).toMatchObject({ status: 200 });
  const voided = await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: body["id"] });
  expect(voided).toMatchObject({ status: 200, body: { status: "SUCCESS", mid: "M1" } });
});

test("in production terminals are registered by default, and an open one is claimed by its first command", async () => {
  const production = await startTestService({ sandbox: false });
  try {
    const callback = { callBackUrl: "https://203.0.113.10/ipn", callbackAddresses: ["203.0.113.0/24"] };
    const registered = await production.operator("POST", "/operator/v1/partners", {
      name: "By default",
      callingAddresses: ["127.0.0.1/32"],
      ...callback,
    });
    const { body: settings } = await production.operator("GET", `/operator/v1/partners/${registered.body["id"]}`);
    expect(settings).toMatchObject({ settings: { terminals: "registered" } });
    const [first, second] = [await production.register(callback), await production.register(callback)];
    expect(await first.run(sale())).toMatchObject({ status: 200 });
    expect(await second.run(sale())).toMatchObject({ status: 409, body: { code: "terminal_taken" } });
    expect(await first.run(sale())).toMatchObject({ status: 200 });
  } finally {
    await production.stop();
  }
});
