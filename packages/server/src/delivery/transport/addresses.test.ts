import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createResolver } from "./addresses.ts";

let folder: string;
let hostsFile: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-hosts-"));
  hostsFile = join(folder, "hosts");
  await writeFile(
    hostsFile,
    "# ours\n127.0.0.9 callback.test other.test # both\nnot-an-address broken.test\n::1 callback.test\n",
  );
});

afterAll(() => rm(folder, { recursive: true }));

type Records = Readonly<Record<"a" | "aaaa", readonly (readonly number[])[] | "silence">>;

/** A name server on UDP that has these records for every name. */
async function nameServer(records: Records): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const type = question.readUInt16BE(question.length - 4);
    const found = records[type === 1 ? "a" : "aaaa"];
    if (found === "silence") return;
    const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, found.length, 0, 0, 0, 0]);
    const answers = found.map((bytes) =>
      Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]),
    );
    socket.send(Buffer.concat([head, question, ...answers]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  onTestFinished(() => void socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

const ipv6 = [0x20, 1, 0xd, 0xb8, ...Array<number>(11).fill(0), 1];

test("the hosts file comes first", async () => {
  const servers = [await nameServer({ a: [[192, 0, 2, 1]], aaaa: [] })];
  const resolve = createResolver({ hostsFile, servers });
  expect(await resolve("callback.test")).toEqual(["127.0.0.9", "::1"]);
  expect(await resolve("OTHER.test.")).toEqual(["127.0.0.9"]);
  expect(await resolve("broken.test")).toEqual(["192.0.2.1"]);
});

test("a machine without a hosts file has localhost all the same", async () => {
  const resolve = createResolver({ hostsFile: join(folder, "missing") });
  expect(await resolve("localhost")).toEqual(["127.0.0.1", "::1"]);
  expect(await resolve("receiver.localhost")).toEqual(["127.0.0.1", "::1"]);
});

test("IPv4 addresses come before IPv6 ones", async () => {
  const servers = [
    await nameServer({
      a: [
        [192, 0, 2, 1],
        [192, 0, 2, 2],
      ],
      aaaa: [ipv6],
    }),
  ];
  const found = await createResolver({ hostsFile, servers })("partner.example");
  expect(found).toHaveLength(3);
  expect(found.at(-1)).toBe("2001:db8::1");
});

test("a name with only IPv6 addresses is found", async () => {
  const servers = [await nameServer({ a: [], aaaa: [ipv6] })];
  expect(await createResolver({ hostsFile, servers })("partner.example")).toEqual(["2001:db8::1"]);
});

test("a name server that is silent about IPv6 does not delay IPv4", async () => {
  const servers = [await nameServer({ a: [[192, 0, 2, 1]], aaaa: "silence" })];
  expect(await createResolver({ hostsFile, servers })("partner.example")).toEqual(["192.0.2.1"]);
});

test("names that only the system knows are looked up one at a time, and only so many wait", async () => {
  const servers = [await nameServer({ a: [], aaaa: [] })];
  const asked: string[] = [];
  const answer = Promise.withResolvers<void>();
  const resolve = createResolver({
    hostsFile,
    servers,
    systemLookUp: async (name) => {
      asked.push(name);
      await answer.promise;
      if (name !== "later.example") throw new Error("no answer");
      return ["192.0.2.9"];
    },
  });
  const names = Array.from({ length: 12 }, (_, at) => `${at}.dead.example`);
  const refusals: string[] = [];
  const allRefused = Promise.withResolvers<void>();
  const found = names.map((name) =>
    resolve(name).catch((error: Error) => {
      refusals.push(error.message);
      if (refusals.length === 4) allRefused.resolve();
      return error.message;
    }),
  );
  // The name servers answer one name after the other: an answer now would make room for a ninth.
  await allRefused.promise;
  expect(new Set(refusals)).toEqual(new Set(["8 other names wait to be looked up"]));
  expect(asked).toHaveLength(1);
  answer.resolve();
  await Promise.all(found);
  // Each that failed has given up its place.
  expect(refusals.filter((message) => message === "no answer")).toHaveLength(8);
  expect(refusals).toHaveLength(12);
  expect(await resolve("later.example")).toEqual(["192.0.2.9"]);
});
