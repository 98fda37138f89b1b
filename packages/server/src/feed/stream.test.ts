import { once } from "node:events";
import { readFile, rename, stat, truncate } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../../test/support/ports.ts";
import { listening, temporaryFolder } from "../../../../test/support/temporary.ts";
import { ServiceError } from "../errors.ts";
import { newId } from "../ids.ts";
import type { AuditStore } from "../operators/audit.ts";
import type { FeedEvent } from "./feed.ts";
import { type FeedPosition, FeedStream, type FeedStreamParts } from "./stream.ts";
import { feedTarget } from "./targets.ts";

/** A feed whose cursor is the number of events read, and a stream of it that has begun. */
function streamTo(url: string, change: Partial<FeedStreamParts> = {}) {
  const events: FeedEvent[] = [];
  const it = { position: undefined as FeedPosition | undefined, failures: [] as unknown[], nowMs: 0 };
  const stream = new FeedStream({
    feed: {
      read: async ({ after = "0", limit }) => {
        const items = events.slice(Number(after), Number(after) + limit);
        return { items, next: String(Number(after) + items.length) };
      },
    },
    audit: { following: async () => [] },
    positions: {
      read: async () => it.position,
      write: async (position) => {
        it.position = position;
      },
    },
    lock: { hold: async () => ({ lost: new AbortController().signal, release: async () => undefined }) },
    open: () => feedTarget(url),
    nowMs: () => it.nowMs,
    onFailed: (_, error) => it.failures.push(error),
    onRestarted: () => undefined,
    ...change,
  });
  onTestFinished(() => stream.stop());
  const add = (name: string) =>
    events.push({
      id: newId(),
      at: new Date(0).toISOString(),
      kind: "parked",
      partnerId: null,
      subjectId: null,
      detail: { name },
    });
  stream.start();
  return Object.assign(it, { add, stop: () => stream.stop(), unwritten: () => stream.unwritten });
}

interface Collector {
  readonly port: number;
  /** Everything read so far. */
  text(): string;
  /** The number of times that this was read. */
  times(name: string): number;
  stop(): Promise<void>;
}

async function collector(port = 0, certificate?: { key: string; cert: string }): Promise<Collector> {
  const sockets = new Set<Socket>();
  let text = "";
  const take = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).on("data", (chunk) => (text += chunk.toString()));
  };
  const server = certificate === undefined ? createServer(take) : createTlsServer(certificate, take);
  await once(server.listen(port, "127.0.0.1"), "listening");
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await once(server.close(), "close");
  };
  onTestFinished(stop);
  return {
    port: (server.address() as AddressInfo).port,
    text: () => text,
    times: (name) => text.split(`"${name}"`).length - 1,
    stop,
  };
}

const namesIn = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as FeedEvent).detail["name"]);

test("a file that was moved away is made anew, and no line is lost or cut", async () => {
  const path = join(temporaryFolder(), "feed.jsonl");
  const stream = streamTo(pathToFileURL(path).href);
  stream.add("first");
  await expect.poll(() => stream.position?.events).toBe("1");
  await rename(path, `${path}.1`);
  stream.add("second");
  await expect.poll(() => stream.position?.events).toBe("2");
  expect([namesIn(await readFile(`${path}.1`, "utf8")), namesIn(await readFile(path, "utf8"))]).toEqual([
    ["first"],
    ["second"],
  ]);
  await truncate(path, 20);
  stream.add("third");
  await expect.poll(() => stream.position?.events).toBe("3");
  const [cut = "", line = ""] = (await readFile(path, "utf8")).split("\n");
  expect([cut.length, namesIn(line)]).toEqual([20, ["third"]]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test("an entry of the audit is written without its seal, and once", async () => {
  const path = join(temporaryFolder(), "feed.jsonl");
  type Stored = Awaited<ReturnType<AuditStore["following"]>>;
  const records = [{ seq: 9, atMs: 0, action: "createOperator", mac: Buffer.from("a seal") }] as unknown as Stored;
  const following = async (after: number) => (after < 9 ? records : []);
  const stream = streamTo(pathToFileURL(path).href, { audit: { following } });
  await expect.poll(() => stream.position?.audit).toBe(9);
  stream.add("first");
  await expect.poll(() => stream.position).toEqual({ events: "1", audit: 9 });
  const [entry, ...others] = (await readFile(path, "utf8")).trimEnd().split("\n");
  const at = new Date(0).toISOString();
  expect(JSON.parse(entry ?? "")).toEqual({ type: "audit", at, seq: 9, action: "createOperator" });
  expect(others).toHaveLength(1);
});

test("an instance that loses the lock ends its hold of it, and asks for it again", async () => {
  const path = join(temporaryFolder(), "feed.jsonl");
  const lost = new AbortController();
  let released = 0;
  const release = async () => {
    released += 1;
  };
  const stream = streamTo(pathToFileURL(path).href, { lock: { hold: async () => ({ lost: lost.signal, release }) } });
  stream.add("first");
  await expect.poll(() => stream.position?.events).toBe("1");
  expect(released).toBe(0);
  lost.abort();
  await expect.poll(() => released).toBe(1);
});

test.each([
  ["syslog://logs.example", "syslog://logs.example:514"],
  ["syslogs://logs.example", "syslogs://logs.example:6514"],
  ["syslogs://logs.example:1514", "syslogs://logs.example:1514"],
])("%s is %s", (url, name) => {
  expect(feedTarget(url).name).toBe(name);
});

test("a file that cannot be written holds the position", async () => {
  const path = join(temporaryFolder(), "later");
  const stream = streamTo(pathToFileURL(join(path, "feed.jsonl")).href);
  stream.add("first");
  await expect.poll(() => stream.failures.length).toBeGreaterThan(0);
  expect(stream.position).toBeUndefined();
  expect(stream.unwritten()).toEqual({ entries: 1, sinceMs: 0 });
  const { mkdir } = await import("node:fs/promises");
  await mkdir(path);
  await expect.poll(() => stream.position?.events).toBe("1");
  expect(stream.unwritten()).toBeUndefined();
  expect(namesIn(await readFile(join(path, "feed.jsonl"), "utf8"))).toEqual(["first"]);
});

test("a position of another database begins again, and one that cannot be read now does not", async () => {
  const answers = [new ServiceError("unavailable"), new ServiceError("cursor_from_another_history")];
  const asked: unknown[] = [];
  const audited: number[] = [];
  const stream = streamTo(pathToFileURL(join(temporaryFolder(), "feed.jsonl")).href, {
    positions: { read: async () => ({ events: "7", audit: 3 }), write: async () => undefined },
    audit: {
      following: async (after) => {
        audited.push(after);
        return [];
      },
    },
    feed: {
      read: async ({ after }) => {
        asked.push(after);
        const refused = answers.shift();
        if (refused !== undefined) throw refused;
        return { items: [], next: "0" };
      },
    },
  });
  await expect.poll(() => asked.slice(0, 3)).toEqual(["7", "7", undefined]);
  expect(audited.slice(0, 3)).toEqual([3, 3, 0]);
  expect(stream.failures).toMatchObject([{ code: "unavailable" }]);
});

test("a message of syslog has its length before it, as RFC 5424 and 6587 say", async () => {
  const target = await collector();
  const stream = streamTo(`syslog://127.0.0.1:${target.port}`);
  stream.add("naïve");
  await expect.poll(() => target.text()).toContain("na\\u00efve");
  const [, length = "", message = ""] = /^(\d+) (.*)$/s.exec(target.text()) ?? [];
  expect(message.length).toBe(Number(length));
  expect(message).toMatch(/^<132>1 1970-01-01T00:00:00\.000Z \S+ paybell \d+ parked - \{"type":"event","at":/);
});

test("a collector that was away gets everything, and again what it may have lost", async () => {
  const first = await collector(await freePort());
  const stream = streamTo(`syslog://127.0.0.1:${first.port}`);
  stream.add("received long ago");
  await expect.poll(() => first.times("received long ago")).toBe(1);
  stream.nowMs += 960_000;
  await expect.poll(() => stream.position?.events).toBe("1");
  stream.add("perhaps lost");
  await expect.poll(() => first.times("perhaps lost")).toBe(1);
  await first.stop();
  await expect.poll(() => stream.failures.length).toBeGreaterThan(0);
  stream.add("while it was away");
  const second = await collector(first.port);
  await expect.poll(() => second.times("while it was away")).toBe(1);
  expect(second.times("perhaps lost")).toBe(1);
  expect(second.times("received long ago")).toBe(0);
  expect(stream.position?.events).toBe("1");
});

test("a stop waits until the collector has read everything", async () => {
  const target = await collector();
  const stream = streamTo(`syslog://127.0.0.1:${target.port}`);
  stream.add("last words");
  await expect.poll(() => target.times("last words")).toBe(1);
  await stream.stop();
  expect(stream.position?.events).toBe("1");
});

test("a stop keeps the position if the collector breaks off before it has read the end", async () => {
  const read = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("data", () => read.resolve()).on("end", () => socket.resetAndDestroy());
  });
  const stream = streamTo(`syslog://127.0.0.1:${await listening(server)}`);
  stream.add("last words");
  await read.promise;
  await stream.stop();
  expect(stream.position).toBeUndefined();
});

test("a collector of syslogs:// with an unknown certificate gets nothing", async () => {
  const { makeAuthority } = await import("../delivery/transport/transport.fixture.ts");
  const certificate = await (await makeAuthority("Another authority")).issue("localhost");
  const target = await collector(0, certificate);
  const stream = streamTo(`syslogs://localhost:${target.port}`);
  stream.add("a secret");
  await expect.poll(() => stream.failures.length).toBeGreaterThan(0);
  expect(target.text()).toBe("");
});

test("an instance without the lock writes nothing", async () => {
  const target = await collector();
  const asked = Promise.withResolvers<void>();
  const hold = async () => void asked.resolve();
  const stream = streamTo(`syslog://127.0.0.1:${target.port}`, {
    lock: { hold: async () => hold().then(() => undefined) },
  });
  stream.add("of another");
  await asked.promise;
  await stream.stop();
  expect(target.text()).toBe("");
});
