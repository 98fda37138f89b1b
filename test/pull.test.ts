import { randomBytes } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { createDatabase } from "./support/database.ts";
import { eventually, startTestService, type WholeService } from "./support/service.ts";

let service: WholeService;
let other: WholeService;
const masterKey = randomBytes(32);

const database = await createDatabase();
[service, other] = await Promise.all([
  startTestService({ database, masterKey }),
  startTestService({ database, masterKey }),
]);
const partner = await service.register();

afterAll(async () => {
  await Promise.all([service.stop(), other.stop()]);
  await database.drop();
});

interface Page {
  readonly items: readonly { readonly id: string }[];
  readonly next: string;
}

async function pull(of: WholeService, query: string, key = partner.secrets.apiKey): Promise<{ status: number } & Page> {
  const url = `${of.baseUrl}/v1/notifications?${query}`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  return { status: response.status, ...((await response.json()) as Page) };
}

async function waiting(of: WholeService, count: number): Promise<void> {
  await eventually(`${count} to wait`, async () => {
    const text = await (await fetch(`${of.baseUrl}/metrics`)).text();
    return text.includes(`paybell_pulls_pending ${count}\n`) ? true : undefined;
  });
}

async function notified(): Promise<string> {
  const { status, text, body } = await partner.run(sale());
  expect(status, text).toBe(200);
  return (body["notification"] as { id: string }).id;
}

test("a waiting caller gets the next notification, whichever instance it waits at", async () => {
  // Until it is settled it follows `now`: any older transaction of the server, in any database, delays that.
  await partner.listed(await notified());
  for (const instance of [service, other]) {
    const page = pull(instance, "after=now&wait=30");
    await waiting(instance, 1);
    const id = await notified();
    expect((await page).items.map((item) => item.id)).toEqual([id]);
    await waiting(instance, 0);
  }
});

test("page by page, nothing is skipped and nothing shown twice", async () => {
  let { next } = await pull(service, "after=now");
  const made = Promise.all(Array.from({ length: 40 }, notified));
  const seen: string[] = [];
  while (seen.length < 40) {
    const page = await pull(service, `after=${next}&wait=30&limit=7`);
    expect(page.items.length).toBeGreaterThan(0);
    seen.push(...page.items.map(({ id }) => id));
    next = page.next;
  }
  expect(seen.toSorted()).toEqual((await made).toSorted());
});

test("an empty page comes when the time is over", async () => {
  const { status, items, next } = await pull(service, "after=now&wait=1");
  expect({ status, items, next: next.length }).toEqual({ status: 200, items: [], next: 64 });
});

test("one partner has at most sixteen waiting requests, and blocks no other partner", async () => {
  const crowd = Array.from({ length: 16 }, () => pull(service, "after=now&wait=30"));
  await waiting(service, 16);
  const refused = await fetch(`${service.baseUrl}/v1/notifications?after=now&wait=30`, {
    headers: { authorization: `Bearer ${partner.secrets.apiKey}` },
  });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.json()).toMatchObject({ code: "too_many_requests", detail: expect.stringContaining("16") });
  const neighbour = await service.register();
  expect((await pull(service, "after=now&wait=1", neighbour.secrets.apiKey)).status).toBe(200);
  const id = await notified();
  for (const { items } of await Promise.all(crowd)) expect(items.map((item) => item.id)).toEqual([id]);
});

test("a stop answers waiting callers with the cursor to continue from, and is not delayed", async () => {
  const third = await startTestService({ database, masterKey });
  const page = pull(third, "after=now&wait=30");
  await waiting(third, 1);
  const stopped = third.stop();
  const { status, items, next } = await page;
  expect({ status, items }).toEqual({ status: 200, items: [] });
  await stopped;
  const id = await notified();
  expect((await pull(service, `after=${next}&wait=30`)).items.map((item) => item.id)).toEqual([id]);
});

test("a partner sees what it has not received and how far it has pulled, and sends its parked ones again", async () => {
  const shop = await service.register({ retry: [1] });
  shop.server.answersAlways(500);
  const { body: sold } = await shop.run(sale());
  await shop.settled((sold["notification"] as { id: string }).id, "parked");
  const backlog = async () => (await shop.call("GET", "/v1/backlog")).body;
  expect(await backlog()).toEqual({ trouble: null, pending: 0, oldestPendingAt: null, parked: 1, pull: null });
  const first = await eventually("it to be settled", async () => {
    const page = await pull(service, "limit=1", shop.secrets.apiKey);
    return page.items.length === 1 ? page : undefined;
  });
  expect(await pull(service, `after=${first.next}`, shop.secrets.apiKey)).toMatchObject({ items: [] });
  expect(await backlog()).toMatchObject({ pull: { left: 0, problem: null, upTo: expect.any(String) } });
  shop.server.answersAlways(204);
  const again = (json: object) => shop.call("POST", "/v1/redeliveries", { json: { filter: {}, ...json } });
  expect(await again({ dryRun: true })).toMatchObject({ status: 200, body: { matched: 1, redelivered: 0 } });
  expect(await again({ filter: { partner: partner.id } })).toMatchObject({ status: 400 });
  expect(await again({})).toMatchObject({ body: { matched: 1, redelivered: 1 } });
  await shop.settled((sold["notification"] as { id: string }).id, "accepted");
  expect(await backlog()).toMatchObject({ pending: 0, parked: 0 });
});
