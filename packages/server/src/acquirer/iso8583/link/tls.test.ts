import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { generate } from "selfsigned";
import { expect, test } from "vitest";
import { connectTo, type TlsOptions } from "./connection.ts";
import { answerTo, FakeHost, framing, wire } from "./fake-host.fixture.ts";

const signal = new AbortController().signal;

async function certificate(isForUs = true) {
  const ours = [{ type: 7, ip: "127.0.0.1" } as const, { type: 2, value: "localhost" } as const];
  const altNames = isForUs ? ours : [{ type: 2, value: "elsewhere.example" } as const];
  const names = { name: "subjectAltName" as const, altNames };
  return generate([{ name: "commonName", value: "127.0.0.1" }], { extensions: [names] });
}

function connect(
  { port }: Pick<FakeHost, "port">,
  tls: TlsOptions,
  onMessage: (bytes: Buffer) => void = () => undefined,
  name = "127.0.0.1",
) {
  return connectTo({ host: name, port }, { framing, tls, connectTimeoutMs: 600_000, onMessage }, signal);
}

test("a link over TLS shows its certificate, and checks the host's", async () => {
  const [server, client, stranger] = await Promise.all([certificate(), certificate(), certificate()]);
  const host = await FakeHost.listen({
    cert: server.cert,
    key: server.private,
    ca: client.cert,
    requestCert: true,
    rejectUnauthorized: true,
  });
  try {
    const known = { cert: client.cert, key: client.private };
    await expect(connect(host, { ...known, ca: stranger.cert })).rejects.toThrow();
    const heard = Promise.withResolvers<Buffer>();
    const connection = await connect(host, { ...known, ca: server.cert }, heard.resolve);
    const request = { mti: "0200", fields: new Map([[11, "000001"]]) };
    expect(connection.send(wire.write(request))).toBe(true);
    expect(wire.read(await heard.promise)).toEqual(answerTo(request, "00"));
    connection.close("done");
    expect(connection.send(wire.write(request))).toBe(false);
    await connect(host, { ...known, ca: server.cert }, undefined, "localhost");
    const names = () => [...host.sockets].map((socket) => (socket as TLSSocket).servername);
    await expect.poll(names).toContain("localhost");
    const unknown = await connect(host, { cert: stranger.cert, key: stranger.private, ca: server.cert });
    expect(await unknown.ended).not.toBe("");
  } finally {
    await host.close();
  }
});

test("a host that says nothing when it is connected to is given up in time", async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const options = { framing, tls: {}, connectTimeoutMs: 1, onMessage: () => undefined };
  await expect(connectTo({ host: "127.0.0.1", port }, options, signal)).rejects.toThrow("no connection within 1 ms");
  for (const socket of sockets) socket.destroy();
  silent.close();
  await once(silent, "close");
});

test("a host whose certificate is valid for another name is refused", async () => {
  const { cert, private: key } = await certificate(false);
  const host = await FakeHost.listen({ cert, key });
  await expect(connect(host, { ca: cert })).rejects.toThrow("127.0.0.1 is not in the cert's list");
  await host.close();
});
