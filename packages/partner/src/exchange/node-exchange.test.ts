import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { bodyBytesMax } from "../receiver/options.ts";
import { receiver } from "../receiver/receiver.ts";
import { sampleIpn, sampleKeys } from "../testing.ts";
import { nodeExchange, readStream } from "./node-exchange.ts";

const open = () => new Readable({ read: () => undefined });

it("sends no second answer if something else has answered in the meantime", async () => {
  const paybell = receiver(sampleKeys);
  const { body, headers } = sampleIpn();
  const ended = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    const handle = nodeExchange(paybell, () => void response.writeHead(503).end(), {}, "");
    handle(request, response).then(ended.resolve, ended.reject);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect((await fetch(url, { method: "POST", body, headers })).status).toBe(503);
  await ended.promise;
  server.closeAllConnections();
  await once(server.close(), "close");
});

describe("reading a body", () => {
  it("returns every byte, in one chunk or many, and none of an empty body", async () => {
    expect(await readStream(Readable.from([Buffer.from("ab")]))).toEqual({ body: Buffer.from("ab") });
    expect(await readStream(Readable.from([Buffer.from("a"), Buffer.from("b")]))).toEqual({ body: Buffer.from("ab") });
    expect(await readStream(Readable.from([]))).toEqual({ body: Buffer.alloc(0) });
  });

  it("returns the bytes of text: of a stream on which something called setEncoding", async () => {
    const stream = open();
    stream.setEncoding("utf8");
    const bytes = Buffer.from("é€😀");
    for (const byte of bytes) stream.push(Buffer.of(byte));
    stream.push(null);
    expect(await readStream(stream)).toEqual({ body: bytes });
  });

  it("reads up to the limit, and not one byte more", async () => {
    const most = Buffer.alloc(bodyBytesMax);
    const read = await readStream(Readable.from([most]));
    expect("body" in read && most.equals(Buffer.from(read.body))).toBe(true);
    expect(await readStream(Readable.from([most, Buffer.alloc(1)]))).toEqual({ failed: "too_large" });
  });

  it("discards what exceeds the limit, then closes the connection", async () => {
    const stream = open();
    const chunk = Buffer.alloc(bodyBytesMax);
    stream.push(chunk);
    stream.push(chunk);
    expect(await readStream(stream)).toEqual({ failed: "too_large" });
    expect(stream.destroyed).toBe(false);
    const closed = once(stream, "close");
    stream.push(Buffer.alloc(1));
    await closed;
    expect(stream.destroyed).toBe(true);
  });

  it("recognizes a stream that was read before", async () => {
    const stream = Readable.from([Buffer.from("ab")]);
    for await (const _ of stream);
    expect(await readStream(stream)).toEqual({ failed: "already_read" });
  });

  it("rejects if the sender disconnects, before the first byte or within the body", async () => {
    const before = open().destroy();
    await once(before, "close");
    await expect(readStream(before)).rejects.toThrow(/went away/);
    const within = open();
    within.push("a");
    const read = readStream(within);
    within.once("data", () => within.destroy());
    await expect(read).rejects.toThrow(/went away/);
  });
});
