import { beforeEach, describe, expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { type PartnerServer, startPartnerServer } from "./support/receiver.ts";
import { eventually, operatorToken, serviceOfFile, type TestPartner, type WholeService } from "./support/service.ts";

const service = await serviceOfFile();

let books: PartnerServer;
let tills: PartnerServer;
beforeEach(async () => {
  [books, tills] = await Promise.all([startPartnerServer(), startPartnerServer()]);
  return async () => void (await Promise.all([books.close(), tills.close()]));
});

type Settings = NonNullable<Parameters<WholeService["register"]>[0]>;

/** A partner whose settlements go to `books`, or as `settings` say. */
async function register(
  settings: Settings = { callBackUrlByCommand: { SETTLEMENT: books.url } },
): Promise<TestPartner> {
  const partner = await service.register(settings);
  for (const server of [books, tills]) server.opensWith(partner.keys);
  return partner;
}

const settle = { command: "SETTLEMENT", reqId: "", tid: sale()["tid"], mid: sale()["mid"] };
const settlement = () => ({ ...settle, reqId: crypto.randomUUID() });
const patch = (partner: TestPartner, settings: Settings) =>
  service.operator("PATCH", `/operator/v1/partners/${partner.id}`, settings);
const change = (partner: TestPartner, json: unknown) => partner.call("PUT", "/v1/callback-url", { json });
const routesOf = async (partner: TestPartner) => {
  const { body } = await service.operator("GET", `/operator/v1/partners/${partner.id}`);
  return (body["settings"] as { callBackUrlByCommand: Record<string, string> }).callBackUrlByCommand;
};
const idsAt = (server: PartnerServer) => server.deliveries.map(({ received }) => received?.ipn.id);

test("a redelivery goes to the original URL, or on request to the registered one", async () => {
  const partner = await register({});
  const callBackUrl = `${tills.url}/original`;
  const { id } = await partner.notify(sale({ callBackUrl }), "accepted");
  await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: { to: "registered" } });
  await partner.server.next(1);
  await partner.settled(id, "accepted");
  await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: { to: "original" } });
  await tills.until((all) => all.filter(({ path }) => path === "/ipn/original").length === 2);
  const { attempts } = await eventually("three attempts", async () => {
    const found = await partner.settled(id, "accepted");
    return (found["attempts"] as unknown[]).length === 3 ? (found as { attempts: { url: string }[] }) : undefined;
  });
  expect(attempts.map(({ url }) => url)).toEqual([callBackUrl, partner.server.url, callBackUrl]);
});

test("a name whose addresses are not on the allowlist is not called, and only operators see exactly why", async () => {
  const partner = await service.register({ callbackAddresses: ["127.0.0.2/32"], callBackUrl: null, retry: [3_600] });
  const { port } = new URL(tills.url);
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
  expect(tills.deliveries).toEqual([]);
  const seen = await partner.call("GET", `/v1/notifications/${String(found.body["id"])}`);
  expect(seen.body).toMatchObject({ lastReason: "address_refused", attempts: [{ reason: "address_refused" }] });
  expect(seen.text).not.toContain("127.0.0.");
});

describe("a URL registered for a command", () => {
  test("gets the command's IPNs once, and the others go to callBackUrl", async () => {
    const partner = await register();
    const sold = await partner.run(sale());
    const settled = await partner.run(settlement());
    const [toBooks] = await books.next(1);
    await partner.server.next(1);
    expect(toBooks?.received?.ipn).toMatchObject({ id: settled.body["id"], callbackUrl: books.url });
    await partner.settled((settled.body["notification"] as { id: string }).id, "accepted");
    expect([idsAt(partner.server), idsAt(books)]).toEqual([[sold.body["id"]], [settled.body["id"]]]);
  });

  test("gets the reported ones too, and yields to the command's own", async () => {
    const partner = await register({ callBackUrlByCommand: { SALE: tills.url } });
    const [reported] = await service.report([reportedSale(partner.id)]);
    await tills.next(1);
    const own = await partner.run(sale({ callBackUrl: `${books.url}/own` }));
    await books.next(1);
    expect([idsAt(tills), idsAt(books)]).toEqual([[reported], [own.body["id"]]]);
    expect(partner.server.deliveries).toEqual([]);
  });

  test("suffices without callBackUrl, for this command", async () => {
    const partner = await register({ callBackUrl: null, callBackUrlByCommand: { SALE: tills.url } });
    await partner.run(sale());
    await tills.next(1);
    const booked = service.acquirer.bank.all().length;
    const preAuth = await partner.run({ ...sale(), command: "PREAUTH" });
    expect(preAuth).toMatchObject({ status: 409, body: { code: "no_callback_url" } });
    expect(service.acquirer.bank.all()).toHaveLength(booked);
  });

  test("is not slowed by another URL of the partner that accepts nothing", async () => {
    const partner = await register({ callBackUrlByCommand: { SETTLEMENT: books.url }, ordering: "none" });
    partner.server.answersAlways(503);
    for (let count = 0; count < 6; count += 1) await partner.run(sale());
    await partner.server.next(5);
    const settled = await partner.run(settlement());
    await partner.settled((settled.body["notification"] as { id: string }).id, "accepted");
    expect(idsAt(books)).toEqual([settled.body["id"]]);
  });
});

describe("a changed registration", () => {
  test("also applies to what is queued, whose queue keeps its name: a changed, an added and a removed URL", async () => {
    const partner = await register({ callBackUrlByCommand: { SALE: tills.url }, retry: Array(30).fill(1) });
    for (const server of [tills, partner.server]) server.answersAlways(404);
    const { id, body: sold } = await partner.notify(sale());
    await tills.next(1);
    expect(await patch(partner, { callBackUrlByCommand: {} })).toMatchObject({ status: 200 });
    await partner.server.next(1);
    const queues = "SELECT queue FROM pending WHERE partner_id = $1";
    expect(await queryHomes(service.database, queues, [partner.id])).toEqual([{ queue: "SALE" }]);
    expect(await patch(partner, { callBackUrlByCommand: { SALE: books.url } })).toMatchObject({ status: 200 });
    await books.next(1);
    const accepted = await partner.settled(id, "accepted");
    const urls = (accepted["attempts"] as { url: string }[]).map(({ url }) => url);
    expect([urls[0], urls.at(-1)]).toEqual([tills.url, books.url]);
    expect(urls).toContain(partner.server.url);
    expect(idsAt(books)).toEqual([sold["id"]]);
  });

  test("also applies to what waits for an endpoint whose circuit is open", async () => {
    const partner = await register({ ordering: "none", callBackUrlByCommand: {} });
    partner.server.answersAlways(410);
    await partner.run(sale());
    await partner.server.next(1);
    const { id, body: settled } = await partner.notify(settlement());
    const waiting = await service.operator("GET", `/operator/v1/notifications/${id}`);
    expect(waiting.body).toMatchObject({ state: "pending", waiting: { because: "gone", target: partner.server.url } });
    await patch(partner, { callBackUrlByCommand: { SETTLEMENT: books.url } });
    await books.next(1);
    await partner.settled(id, "accepted");
    expect(idsAt(books)).toEqual([settled["id"]]);
  });

  test("is where a redelivery to the registered URL goes", async () => {
    const partner = await register({ callBackUrlByCommand: {} });
    const { id, body: sold } = await partner.notify(sale(), "accepted");
    await patch(partner, { callBackUrlByCommand: { SALE: tills.url } });
    await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: { to: "registered" } });
    await tills.next(1);
    expect(idsAt(tills)).toEqual([sold["id"]]);
  });

  test("shows which endpoint a notification waits for", async () => {
    const partner = await register({ callBackUrlByCommand: { SALE: tills.url } });
    tills.answersAlways(410);
    const sold = await partner.run(sale());
    await tills.next(1);
    const { id } = sold.body["notification"] as { id: string };
    const next = await partner.run(sale());
    const { id: nextId } = next.body["notification"] as { id: string };
    for (const waits of [id, nextId]) {
      const body = await eventually("it to wait for the endpoint", async () => {
        const { body: shown } = await service.operator("GET", `/operator/v1/notifications/${waits}`);
        return (shown["waiting"] as { because: string } | null)?.because === "gone" ? shown : undefined;
      });
      expect(body).toMatchObject({ state: "pending", waiting: { because: "gone", target: tills.url } });
    }
  });
});

describe("a registration is refused", () => {
  test("with every field that is wrong, and nothing changes", async () => {
    const partner = await register();
    const before = await routesOf(partner);
    const refused = await patch(partner, {
      callBackUrlByCommand: {
        SALE: "https://127.0.0.1/ipn#here",
        VOID: "https://203.0.113.9/ipn",
        PREAUTH: 7,
        LOGON: books.url,
      },
    } as unknown as Settings);
    expect(refused).toMatchObject({
      status: 400,
      body: {
        errors: [
          { field: "callBackUrlByCommand.SALE", code: "invalid_callback_url" },
          { field: "callBackUrlByCommand.VOID", code: "address_not_whitelisted" },
          { field: "callBackUrlByCommand.PREAUTH", code: "wrong_type" },
          { field: "callBackUrlByCommand.LOGON", code: "unknown_field", message: /SALE, VOID, .*SETTLEMENT/ },
        ].map(({ message, ...problem }) => ({
          ...problem,
          ...(message && { message: expect.stringMatching(message) }),
        })),
      },
    });
    expect(await routesOf(partner)).toEqual(before);
  });

  test("when it names a command twice", async () => {
    const partner = await register();
    const url = `${service.baseUrl}/operator/v1/partners/${partner.id}`;
    const response = await fetch(url, {
      method: "PATCH",
      headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" },
      body: `{"callBackUrlByCommand": {"SALE": "${books.url}", "SALE": "${tills.url}"}}`,
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("appears twice")]);
  });

  test("for a port that is not agreed, as for callBackUrl", async () => {
    const partner = await register({ callBackUrlByCommand: {} });
    const { port } = new URL(partner.server.url);
    const refused = await patch(partner, { callbackPorts: [Number(port)], callBackUrlByCommand: { SALE: tills.url } });
    expect(refused.body["errors"]).toMatchObject([
      { field: "callBackUrlByCommand.SALE", code: "invalid_callback_url" },
    ]);
  });
});

describe("a partner's own change of a command's URL", () => {
  test("takes place once the URL has accepted a test IPN of the command's kind", async () => {
    const partner = await register({ callBackUrlChange: "partner" });
    const changed = await change(partner, { callBackUrl: books.url, command: "SETTLEMENT" });
    expect(changed).toMatchObject({ status: 200, body: { settings: { callBackUrl: partner.server.url } } });
    const [tested] = await books.next(1);
    expect(tested?.received).toMatchObject({ kind: "settlement", ipn: { tid: "TEST", settlementList: [] } });
    await change(partner, { callBackUrl: tills.url, command: "SALE" });
    await tills.next(1);
    expect(await routesOf(partner)).toEqual({ SETTLEMENT: books.url, SALE: tills.url });
    await partner.run(sale());
    await tills.next(1);
    await partner.run(settlement());
    await books.next(1);
    expect(partner.server.deliveries).toEqual([]);
  });

  test("removes it, and the command's IPNs go to callBackUrl again", async () => {
    const partner = await register({ callBackUrlChange: "partner", callBackUrlByCommand: { SALE: tills.url } });
    const removed = await change(partner, { callBackUrl: null, command: "SALE" });
    expect(removed).toMatchObject({ status: 200, body: { settings: { callBackUrlByCommand: {} } } });
    await partner.run(sale());
    await partner.server.next(1);
    expect(tills.deliveries).toEqual([]);
  });

  test("does not take place unless it is allowed, accepted and within the agreed addresses", async () => {
    const fixed = await register({ callBackUrlByCommand: { SALE: tills.url } });
    for (const callBackUrl of [books.url, null]) {
      expect(await change(fixed, { callBackUrl, command: "SALE" })).toMatchObject({
        status: 409,
        body: { code: "callback_url_fixed" },
      });
    }
    expect(await routesOf(fixed)).toEqual({ SALE: tills.url });
    const partner = await register({ callBackUrlChange: "partner" });
    books.answersAlways(503);
    const refused = [
      [{ callBackUrl: books.url, command: "SALE" }, 409, "callback_url_not_confirmed"],
      [{ callBackUrl: "https://192.0.2.1/ipn", command: "SALE" }, 400, "address_not_whitelisted"],
      [{ callBackUrl: books.url, command: "LOGON" }, 400, "invalid_value"],
      [{ callBackUrl: null }, 400, "invalid_value"],
    ] as const;
    for (const [json, status, code] of refused)
      expect(await change(partner, json)).toMatchObject({ status, body: { code } });
    expect(await routesOf(partner)).toEqual({});
  });

  test("changes no other partner's", async () => {
    const [one, another] = [
      await register({ callBackUrlChange: "partner" }),
      await register({ callBackUrlChange: "partner" }),
    ];
    books.opensWith(one.keys);
    await change(one, { callBackUrl: books.url, command: "SALE" });
    expect([await routesOf(one), await routesOf(another)]).toEqual([{ SALE: books.url }, {}]);
    await another.run(sale());
    await another.server.next(1);
    expect(books.deliveries).toHaveLength(1);
  });
});
