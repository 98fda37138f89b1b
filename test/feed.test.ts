import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { createDatabase } from "./support/database.ts";
import { eventually, startTestService, type WholeService } from "./support/service.ts";

interface Entry {
  readonly type?: string;
  readonly id: string;
  readonly kind: string;
  readonly action?: string;
  readonly seq?: number;
}

const folder = await mkdtemp(join(tmpdir(), "paybell-feed-"));
const path = join(folder, "feed.jsonl");
const database = await createDatabase();
const masterKey = Buffer.alloc(32, 3);
const how = { database, masterKey, env: { PAYBELL_FEED: pathToFileURL(path).href } };
const services: WholeService[] = [await startTestService(how), await startTestService(how)];
const [service, other] = services as [WholeService, WholeService];
afterAll(async () => {
  await Promise.all(services.map((one) => one.stop()));
  await database.drop();
  await rm(folder, { recursive: true });
});

async function read(query: string, one = service): Promise<{ items: Entry[]; next: string }> {
  const { status, body } = await one.operator("GET", `/operator/v1/feed?${query}`);
  expect(status).toBe(200);
  return body as unknown as { items: Entry[]; next: string };
}

/**
 * What comes next. A wait ends after 30 s, and an event waits for every older transaction of the database server, those
 * of other tests too.
 */
async function nextOf(after: string, one: WholeService): Promise<readonly Entry[]> {
  const { items, next } = await read(`after=${after}&wait=30`, one);
  return items.length > 0 ? items : await nextOf(next, one);
}

async function written(): Promise<readonly Entry[]> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry);
}

test("an event reaches the caller that waits at any instance, and the file once, with the audit", async () => {
  const { next } = await read("after=now");
  const waiting = nextOf(next, other);
  const partner = await service.register();
  partner.server.answersAlways(410);
  await service.operator("POST", `/operator/v1/partners/${partner.id}/pause`);
  await service.operator("POST", `/operator/v1/partners/${partner.id}/resume`);
  await partner.call("POST", "/v1/test-notification");
  const items = await waiting;
  expect(items.map(({ kind }) => kind)).toEqual(["endpoint_gone"]);
  const entries = await eventually("the file to have the event and the audit", async () => {
    const all = await written();
    const isWhole =
      all.some(({ kind }) => kind === "endpoint_gone") && all.some(({ action }) => action === "resumePartner");
    return isWhole ? all : undefined;
  });
  expect(entries.filter(({ kind }) => kind === "endpoint_gone").map(({ id }) => id)).toEqual([items[0]?.id]);
  const audit = entries.filter(({ type }) => type === "audit").map(({ seq }) => seq);
  expect(audit).toEqual(audit.map((_, nth) => nth + 1));
});

test("a caller whose token is revoked while it waits is refused", async () => {
  const { body } = await service.operator("POST", "/operator/v1/operators", { name: "Vera", role: "viewer" });
  const { next } = await read("after=now");
  const path = `/operator/v1/feed?after=${next}&wait=30`;
  const waiting = service.operator("GET", path, undefined, String(body["token"]));
  await service.operator("POST", `/operator/v1/operators/${body["id"]}/revoke`);
  const partner = await service.register();
  partner.server.answersAlways(410);
  await partner.call("POST", "/v1/test-notification");
  expect(await waiting).toMatchObject({ status: 401, body: { code: "unauthorized" } });
});

test("the metrics say when the file has everything", async () => {
  await service.operator("POST", "/operator/v1/alerts/test");
  await eventually("the file to have everything", async () => {
    const { text } = await service.operator("GET", "/metrics");
    return (/^paybell_feed_lag_seconds 0$/m.test(text) && /^paybell_feed_entries_waiting 0$/m.test(text)) || undefined;
  });
});

test("bad queries are refused, by field", async () => {
  for (const [query, code] of [
    ["after=nonsense", "invalid_cursor"],
    ["limit=0", "invalid_value"],
    ["wait=31", "invalid_value"],
  ]) {
    const { status, body } = await service.operator("GET", `/operator/v1/feed?${query}`);
    expect([status, body["code"]]).toEqual([400, code]);
  }
});

test("another instance continues where the one that wrote has stopped", async () => {
  const before = await written();
  const [first] = services.splice(0, 1);
  await first?.stop();
  await other.operator("PATCH", `/operator/v1/partners/${(await other.register()).id}`, { name: "Renamed" });
  const after = await eventually("the other one to write", async () => {
    const all = await written();
    return all.some(({ action }) => action === "changePartner") ? all : undefined;
  });
  expect(after.slice(0, before.length)).toEqual(before);
  const audit = after.filter(({ type }) => type === "audit").map(({ seq }) => seq);
  expect(audit).toEqual(audit.map((_, nth) => nth + 1));
});

test("a file that cannot be written is an alert, in the words of the system", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const PAYBELL_FEED = pathToFileURL(join(folder, "missing", "feed.jsonl")).href;
  const one = await startTestService({ database, env: { PAYBELL_FEED } });
  onTestFinished(() => one.stop());
  await one.register();
  const event = await eventually("the alert", async () => {
    const { body } = await one.operator("GET", "/operator/v1/events?state=feed_failed");
    return (body["items"] as readonly { detail: object }[])[0];
  });
  expect(event.detail).toEqual({
    target: join(folder, "missing", "feed.jsonl"),
    detail: expect.stringContaining("ENOENT"),
  });
});
