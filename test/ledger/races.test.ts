import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { holdAnswers } from "../support/held-answers.ts";
import type { HttpAnswer } from "../support/service.ts";
import { startInstances } from "./instances.fixture.ts";

const rounds = 8;
const mid = "M00000000000001";

const instances = await startInstances(2);
const partner = await instances.register();
afterAll(() => instances.stop());

const tidOf = (race: string, round: number) => `${race}${String(round).padStart(5, "0")}`;

function onBoth(first: Readonly<Record<string, unknown>>, second = first): Promise<[HttpAnswer, HttpAnswer]> {
  return Promise.all([instances.run(0, partner, first), instances.run(1, partner, second)]);
}

const codesOf = (answers: readonly HttpAnswer[]) =>
  answers.map(({ status, body }) => (status === 200 ? "won" : body["code"]));

/** The number of its IPNs, once everything before `sentinel` has arrived. */
async function tellingsOf(id: unknown): Promise<number> {
  await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === id));
  return partner.server.deliveries.filter(({ received }) => received?.ipn.id === id).length;
}

test("a Void of one Sale on both instances at once: one wins, the other gets the reason", async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { body } = await instances.run(round % 2, partner, sale({ tid: tidOf("V", round) }));
    const voids = () => ({ command: "VOID", reqId: randomUUID(), transactionId: body["id"] });
    const answers = await onBoth(voids(), voids());
    const codes = codesOf(answers).sort();
    expect([
      ["already_voided", "won"],
      ["in_flight", "won"],
    ]).toContainEqual(codes);
    expect(instances.bank.find(String(body["id"]))).toMatchObject({ standing: "voided" });
    const winner = answers.find(({ status }) => status === 200);
    expect(await tellingsOf(winner?.body["id"])).toBe(1);
  }
});

test("a settlement on both instances at once: one settles the batch, the other waits or finds the next", async () => {
  for (let round = 0; round < rounds; round += 1) {
    const tid = tidOf("S", round);
    await instances.run(round % 2, partner, sale({ tid }));
    const settlement = () => ({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid });
    const answers = await onBoth(settlement(), settlement());
    const won = answers.filter(({ status }) => status === 200).map(({ body }) => body);
    const first = won.filter(({ batchNo }) => batchNo === "000001");
    expect(first).toMatchObject([{ status: "SUCCESS", saleQuantity: "1", saleTotalAmount: "150000" }]);
    const others = answers.filter(({ body }) => body !== first[0]);
    if (others[0]?.status === 200) expect(others[0].body).toMatchObject({ batchNo: "000002", saleQuantity: "0" });
    else expect(others).toMatchObject([{ status: 409, body: { code: "settlement_in_progress" } }]);
    expect(await tellingsOf(first[0]?.["id"])).toBe(1);
  }
});

test("the same reqId on both instances at once is one command, one charge and one IPN", async () => {
  for (let round = 0; round < rounds; round += 1) {
    const command = sale({ tid: tidOf("Q", round) });
    const held = holdAnswers(...instances.acquirers);
    const running = onBoth(command);
    // In every second round the acquirer has not answered when the second one comes.
    if (round % 2 === 1) await held.begun(2);
    held.go();
    const [first, second] = await running;
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body["id"]).toBe(first.body["id"]);
    expect(instances.bank.all().filter(({ tid }) => tid === command["tid"])).toHaveLength(1);
    expect(await tellingsOf(first.body["id"])).toBe(1);
  }
});

test("the same settlement on both instances at once is one settlement", async () => {
  for (let round = 0; round < rounds; round += 1) {
    const tid = tidOf("T", round);
    await instances.run(0, partner, sale({ tid }));
    const [first, second] = await onBoth({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body["id"]).toBe(first.body["id"]);
    expect(await tellingsOf(first.body["id"])).toBe(1);
  }
});

test("a Sale and its REVERSAL by reqId on two instances at once leave nothing charged", async () => {
  for (let round = 0; round < rounds; round += 1) {
    const command = sale({ tid: tidOf("X", round) });
    const reversal = { command: "REVERSAL", reqId: randomUUID(), originalReqId: command["reqId"] };
    const [sold, reversed] = await onBoth(command, reversal);
    expect(reversed, reversed.text).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
    if (sold.status !== 200) expect(sold.body).toMatchObject({ code: "reversed_before_arrival" });
    const standing = () =>
      instances.bank.all().filter(({ tid, standing: now }) => tid === command["tid"] && now === "stands");
    await expect.poll(standing).toEqual([]);
  }
});
