import { afterAll, expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { startPartnerServer } from "./support/receiver.ts";
import { eventually, startTestService } from "./support/service.ts";

const service = await startTestService();
const other = await startPartnerServer();
afterAll(async () => {
  await service.stop();
  await other.close();
});

test("a command's own callBackUrl has priority over the registered one", async () => {
  const partner = await service.register();
  other.opensWith(partner.keys);
  const own = await partner.run(sale({ callBackUrl: `${other.url}/of-this-command?till=3` }));
  const registered = await partner.run(sale());
  const [toOther] = await other.next(1);
  const [toRegistered] = await partner.server.next(1);
  expect(toOther).toMatchObject({ path: "/ipn/of-this-command?till=3", received: { ipn: { id: own.body["id"] } } });
  expect(toRegistered?.received?.ipn.id).toBe(registered.body["id"]);
});

test("a redelivery goes to the original URL, or on request to the registered one", async () => {
  const partner = await service.register();
  other.opensWith(partner.keys);
  const callBackUrl = `${other.url}/original`;
  const { id } = await partner.notify(sale({ callBackUrl }), "accepted");
  await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: { to: "registered" } });
  await partner.server.next(1);
  await partner.settled(id, "accepted");
  await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: { to: "original" } });
  await other.until((all) => all.filter(({ path }) => path === "/ipn/original").length === 2);
  const { attempts } = await eventually("three attempts", async () => {
    const found = await partner.settled(id, "accepted");
    return (found["attempts"] as unknown[]).length === 3 ? (found as { attempts: { url: string }[] }) : undefined;
  });
  expect(attempts.map(({ url }) => url)).toEqual([callBackUrl, partner.server.url, callBackUrl]);
});

test("a name whose addresses are not on the allowlist is not called, and only operators see exactly why", async () => {
  const partner = await service.register({ callbackAddresses: ["127.0.0.2/32"], callBackUrl: null, retry: [3_600] });
  const { port } = new URL(other.url);
  const before = other.deliveries.length;
  const callBackUrl = `https://localhost:${port}/outside`;
  const [transactionId = ""] = await service.report([reportedSale(partner.id, { callBackUrl })]);
  const found = await eventually("the attempt", async () => {
    const { body } = await service.operator("GET", `/operator/v1/notifications?q=${transactionId}`);
    const [item] = body["items"] as { id: string; attemptsMade: number }[];
    return item?.attemptsMade === 1 ? service.operator("GET", `/operator/v1/notifications/${item.id}`) : undefined;
  });
  expect(found.body).toMatchObject({ state: "pending", lastReason: "address_refused" });
  const [attempt] = found.body["attempts"] as { detail: string; httpStatus: null; url: string }[];
  expect(attempt).toMatchObject({ httpStatus: null, url: callBackUrl });
  expect(attempt?.detail).toMatch(/localhost.*127\.0\.0\.1 is outside callbackAddresses \(127\.0\.0\.2\/32\)/);
  expect(other.deliveries).toHaveLength(before);
  const seen = await partner.call("GET", `/v1/notifications/${String(found.body["id"])}`);
  expect(seen.body).toMatchObject({ lastReason: "address_refused", attempts: [{ reason: "address_refused" }] });
  expect(seen.text).not.toContain("127.0.0.");
});

test("without any callback URL a command is refused before it is processed", async () => {
  const partner = await service.register({ callBackUrl: null });
  const booked = service.acquirer.bank.all().length;
  expect(await partner.run(sale())).toMatchObject({ status: 409, body: { code: "no_callback_url" } });
  expect(service.acquirer.bank.all()).toHaveLength(booked);
});

test("a corrected registration also applies to queued notifications", async () => {
  const partner = await service.register({ retry: Array(30).fill(1) });
  partner.server.answersAlways(404);
  const { body } = await partner.run(sale());
  await partner.server.next(1);
  const healed = await startPartnerServer();
  healed.opensWith(partner.keys);
  await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, { callBackUrl: healed.url });
  const [delivery] = await healed.next(1);
  expect(delivery?.received?.ipn.id).toBe(body["id"]);
  await partner.settled((body["notification"] as { id: string }).id, "accepted");
  await healed.close();
});
