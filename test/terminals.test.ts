import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { serviceOfFile, startTestService, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

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
  // The acquirer's host pads both with spaces, and would have it for the same terminal.
  for (const [field, padded] of Object.entries({ tid: { tid: `${tid} `, mid: "M1" }, mid: { tid, mid: "M1 " } })) {
    const refused = { status: 400, body: { errors: [{ field, code: "invalid_value" }] } };
    expect(await other.run(sale(padded))).toMatchObject(refused);
  }
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

describe("in production", async () => {
  const callback = { callBackUrl: "https://203.0.113.10/ipn", callbackAddresses: ["203.0.113.0/24"] };
  const openTerminalsMax = 5;
  const production = await startTestService({
    sandbox: false,
    env: { PAYBELL_OPEN_TERMINALS_MAX: String(openTerminalsMax) },
  });
  afterAll(() => production.stop());
  const mid = "M00000000000001";
  const logon = (tid: string) => ({ command: "LOGON", reqId: randomUUID(), tid, mid });
  const pathOf = (partner: TestPartner, tid: string) => `/operator/v1/partners/${partner.id}/terminals/${tid}`;
  const register = (partner: TestPartner, tid: string) => production.operator("PUT", pathOf(partner, tid), { mid });
  const release = (partner: TestPartner, tid: string) => production.operator("DELETE", pathOf(partner, tid));
  const twoPartners = async () => [await production.register(callback), await production.register(callback)] as const;
  const taken = { status: 409, body: { code: "terminal_taken" } };

  test("terminals are registered by default, and an open one is claimed by its first command", async () => {
    const registered = await production.operator("POST", "/operator/v1/partners", {
      name: "By default",
      callingAddresses: ["127.0.0.1/32"],
      ...callback,
    });
    const { body: settings } = await production.operator("GET", `/operator/v1/partners/${registered.body["id"]}`);
    expect(settings).toMatchObject({ settings: { terminals: "registered" } });
    const [first, second] = await twoPartners();
    expect(await first.run(sale())).toMatchObject({ status: 200 });
    expect(await second.run(sale())).toMatchObject(taken);
    expect(await first.run(sale())).toMatchObject({ status: 200 });
  });

  test("a registration takes a terminal from a partner that has only claimed it", async () => {
    const [claimant, owner] = await twoPartners();
    const tid = newTid();
    expect(await claimant.run(logon(tid))).toMatchObject({ status: 200 });
    expect(await register(owner, tid)).toMatchObject({ status: 200, body: { tid, mid } });
    const refused = await claimant.run(logon(tid));
    expect(refused).toMatchObject(taken);
    expect(refused.text).not.toContain(owner.id);
    expect(await owner.run(sale({ tid }))).toMatchObject({ status: 200 });
    expect((await production.operator("GET", pathOf(claimant, ""))).text).not.toContain(tid);
  });

  test("no registration takes one with open money, or a registered one; only the operator learns whose", async () => {
    const [claimant, owner] = await twoPartners();
    const [sold, held, registered] = [newTid(), newTid(), newTid()];
    const { body } = await claimant.run(sale({ tid: sold }));
    await claimant.run({ ...sale({ tid: held }), command: "PREAUTH" });
    await register(claimant, registered);
    for (const tid of [sold, held, registered]) {
      const refused = await register(owner, tid);
      expect(refused).toMatchObject(taken);
      expect(refused.body["detail"]).toContain(claimant.id);
      const partners = await owner.run(logon(tid));
      expect(partners).toMatchObject(taken);
      expect(partners.text).not.toContain(claimant.id);
    }
    await claimant.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: body["id"] });
    expect(await register(owner, sold)).toMatchObject({ status: 200 });
  });

  test("an operator releases a terminal without open money, registered or claimed", async () => {
    const [claimant, next] = await twoPartners();
    const [claimed, registered] = [newTid(), newTid()];
    const { body } = await claimant.run(sale({ tid: claimed }));
    await register(claimant, registered);
    expect(await release(claimant, claimed)).toMatchObject({ status: 409, body: { code: "terminal_busy" } });
    await claimant.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: body["id"] });
    for (const tid of [claimed, registered]) {
      expect(await release(next, tid), "another partner's").toMatchObject({ status: 404 });
      expect(await release(claimant, tid)).toMatchObject({ status: 200, body: { tid, mid } });
      expect(await release(claimant, tid)).toMatchObject({ status: 404 });
      expect(await next.run(sale({ tid }))).toMatchObject({ status: 200 });
      expect(await claimant.run(logon(tid))).toMatchObject(taken);
    }
    const { body: audit } = await production.operator("GET", "/operator/v1/audit?action=removeTerminal");
    expect(audit["items"]).toEqual(
      [registered, claimed].map((tid) =>
        expect.objectContaining({ subject: `${claimant.id}/${tid}`, before: expect.objectContaining({ tid, mid }) }),
      ),
    );
  });

  test("a command that is refused claims nothing", async () => {
    const [first, second] = await twoPartners();
    const tid = newTid();
    const { body } = await first.run({ ...sale({ tid: newTid() }), command: "PREAUTH" });
    const of = { transactionId: body["id"] };
    await first.run({ command: "VOID", reqId: randomUUID(), ...of });
    const complete = { command: "PREAUTH_COMPLETE", reqId: randomUUID(), ...of, amount: "1", tid };
    expect(await first.run(complete)).toMatchObject({ status: 409 });
    expect(await second.run(logon(tid))).toMatchObject({ status: 200 });
  });

  test("a partner claims no more terminals than its quota, also at once; registered ones do not count", async () => {
    const [partner, other] = await twoPartners();
    const tids = Array.from({ length: openTerminalsMax + 3 }, newTid);
    const answers = await Promise.all(tids.map((tid) => partner.run(logon(tid))));
    const refused = tids.filter((_, at) => answers[at]?.status === 409);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(openTerminalsMax);
    for (const { body } of answers.filter(({ status }) => status !== 200)) {
      expect(body).toMatchObject({ code: "too_many_terminals" });
    }
    const used = tids.find((tid) => !refused.includes(tid)) ?? "";
    expect(await partner.run(logon(used)), "one that it has").toMatchObject({ status: 200 });
    const [first = "", second = ""] = refused;
    expect(await other.run(logon(first)), "not claimed").toMatchObject({ status: 200 });
    await register(partner, used);
    expect(await partner.run(logon(second))).toMatchObject({ status: 200 });
  });
});
