import { afterEach, expect, test } from "vitest";
import { connectProxy } from "../packages/server/src/delivery/transport/connect-proxy.fixture.ts";
import { reportedSale } from "./support/commands.ts";
import type { ReceivedDelivery } from "./support/receiver.ts";
import {
  eventually,
  notificationIdOf,
  startTestService,
  type TestPartner,
  type WholeService,
} from "./support/service.ts";

let service: WholeService;
afterEach(() => service.stop());

const password = "not-to-be-logged";

async function start() {
  const proxy = await connectProxy({ credentials: `paybell:${password}` });
  service = await startTestService({
    env: {
      PAYBELL_EGRESS_PROXY: `http://paybell:${password}@127.0.0.1:${proxy.port}`,
      PAYBELL_EGRESS_PROXY_EXCEPT: "none.test",
    },
  });
  return proxy;
}

async function sell(partner: TestPartner, count = 1): Promise<void> {
  await service.report(Array.from({ length: count }, () => reportedSale(partner.id)));
}

async function events(kind: string): Promise<readonly Record<string, unknown>[]> {
  const { body } = await service.operator("GET", `/operator/v1/events?state=${kind}`);
  return body["items"] as Record<string, unknown>[];
}

async function circuits(): Promise<readonly Record<string, unknown>[]> {
  const { body } = await service.operator("GET", "/operator/v1/endpoints");
  return body["items"] as Record<string, unknown>[];
}

test("an IPN is delivered through the proxy, and its password is logged nowhere", async () => {
  const proxy = await start();
  const partner = await service.register();
  await sell(partner);
  const [delivered] = await partner.server.next(1);
  expect(delivered?.received).toBeDefined();
  expect(proxy.asked).toContain(new URL(partner.server.url).host);
  expect(service.logged()).not.toContain(password);
});

test("a proxy that dies trips no circuit and uses up no attempt, and all is delivered once it is back", async () => {
  const first = await start();
  const partners = await Promise.all([service.register(), service.register()]);
  for (const partner of partners) await sell(partner);
  // Their connections are kept.
  for (const { server, settled } of partners) {
    const [delivered] = await server.next(1);
    await settled(notificationIdOf(delivered as ReceivedDelivery), "accepted");
  }
  await first.stop();
  for (const partner of partners) await sell(partner, 8);
  await eventually("the operator to be told", async () =>
    (await events("egress_failed")).length > 0 ? true : undefined,
  );
  expect(await circuits()).toEqual([]);
  await connectProxy({ credentials: `paybell:${password}`, port: first.port });
  for (const { server } of partners) {
    const deliveries = await server.next(9);
    expect(deliveries.every(({ headers }) => headers["paybell-attempt"] === "1")).toBe(true);
  }
  expect(service.logged()).not.toContain(password);
});
