import { randomUUID } from "node:crypto";
import { profile } from "../../packages/server/src/acquirer/iso8583/example-profile.fixture.ts";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { next } from "../../packages/server/src/acquirer/simulator/behaviour.ts";
import { sale } from "../support/commands.ts";
import { eventually, startTestService, type TestPartner, type WholeService } from "../support/service.ts";
import { type ConsoleBrowser, openBrowser } from "./browser.ts";

/** A service in the middle of a working day, for the pictures and the questions of the console. */
export interface Scenario {
  readonly service: WholeService;
  readonly browser: ConsoleBrowser;
  /** Its deliveries succeed. */
  readonly cafe: TestPartner;
  /** Its endpoint answers 500, and two of its notifications are parked. */
  readonly bakery: TestPartner;
  /** When the day began. */
  readonly beganAt: string;
  /** A Sale of the cafe that is settled, by its order. */
  readonly settledOrder: string;
  /** A Settlement whose totals the acquirer counted otherwise. */
  readonly settlementId: string;
  /** Ends when both notifications of the bakery are parked, also if they were sent again. */
  parkAgain(): Promise<void>;
  close(): Promise<void>;
}

const [tid, mid] = ["T0000021", "M00000000000021"];

export async function startScenario(): Promise<Scenario> {
  const beganAt = new Date().toISOString();
  const service = await startTestService();
  const host = await FakeHost.listen();
  const cafe = await service.register({ name: "Cafe on the corner", retry: [1, 3_600] });
  const bakery = await service.register({ name: "Bakery & Sons", retry: [1] });
  await service.register({ name: "Night market", callBackUrlChange: "partner" });
  await service.operator("PUT", "/operator/v1/acquirers/first-bank", {
    profile,
    hosts: [`127.0.0.1:${host.port}`, "127.0.0.1:1"],
    tls: "off",
  });
  await terminal(service, cafe, tid, { mid, merchantName: "Cafe on the corner" });
  await terminal(service, cafe, "T0000031", { mid, merchantName: "Cafe on the corner", acquirer: "first-bank" });
  await terminal(service, bakery, "T0000041", { mid: "M00000000000041", merchantName: "Bakery & Sons" });

  await eventually("the link to be up", async () => {
    const { body } = await service.operator("GET", "/operator/v1/acquirers/first-bank");
    return (body["link"] as { ok: boolean }).ok ? true : undefined;
  });
  await cafe.run(sale({ tid: "T0000031", mid, merchantTransId: "order-15", amount: "75000" }));

  const settledOrder = "order-16";
  await cafe.run(sale({ tid, mid, merchantTransId: settledOrder, amount: "250000" }));
  await cafe.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid });
  for (const amount of ["45000", "150000", "80000", "99000"]) {
    const merchantTransId = amount === "150000" ? "order-17" : `order-${amount}`;
    const { body } = await cafe.run(sale({ tid, mid, merchantTransId, amount }));
    if (amount === "80000") await cafe.run({ command: "VOID", reqId: randomUUID(), transactionId: body["id"] });
  }
  const differing = sale({ tid: "SETTLE_MISMATCH", mid, merchantTransId: "order-30", amount: "320000" });
  await cafe.run(differing);
  const { body: settlement } = await cafe.run({
    command: "SETTLEMENT",
    reqId: randomUUID(),
    tid: "SETTLE_MISMATCH",
    mid,
  });
  const { body: doubtful } = await cafe.run(sale({ tid, mid, merchantTransId: "order-40", amount: "60000" }));
  service.acquirer.behave(next("REVERSAL", { declines: "12" }));
  await cafe.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: doubtful["id"] });

  bakery.server.answersAlways({ status: 500, headers: {}, body: "the database is away" });
  const loaves: string[] = [];
  for (const order of ["loaf-1", "loaf-2"]) {
    const { body } = await bakery.run(sale({ tid: "T0000041", mid: "M00000000000041", merchantTransId: order }));
    loaves.push((body["notification"] as { id: string }).id);
  }
  const parkAgain = async () => {
    for (const id of loaves) await bakery.settled(id, "parked");
  };
  await parkAgain();
  cafe.server.answersAlways(503);
  await cafe.run(sale({ tid, mid, merchantTransId: "order-18", amount: "150000" }));
  await eventually("its second attempt", async () => {
    const { body } = await service.operator("GET", "/operator/v1/notifications?q=order-18");
    return (body["items"] as { attemptsMade: number }[])[0]?.attemptsMade === 2 ? true : undefined;
  });
  cafe.server.answersAlways(204);
  await service.operator("POST", `/operator/v1/partners/${cafe.id}/keys/rotate`, {
    key: "webhookSecret",
    overlapHours: 72,
  });
  const pulled = (await bakery.call("GET", "/v1/notifications?limit=1")).body;
  await bakery.call("GET", `/v1/notifications?after=${String(pulled["next"])}&limit=1`);
  await service.operator("POST", "/operator/v1/operators", { name: "anna", role: "operator" });
  const browser = await openBrowser(service.baseUrl);
  return {
    ...{ service, browser, cafe, bakery, beganAt, settledOrder, parkAgain, settlementId: String(settlement["id"]) },
    async close() {
      await browser.close();
      await service.stop();
      await host.close();
    },
  };
}

async function terminal(service: WholeService, { id }: TestPartner, name: string, json: object): Promise<void> {
  const { status, text } = await service.operator("PUT", `/operator/v1/partners/${id}/terminals/${name}`, json);
  if (status !== 200) throw new Error(`the terminal ${name} was not registered: ${text}`);
}
