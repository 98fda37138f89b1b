import { generate } from "selfsigned";
import { expect, test } from "vitest";
import { connectTo, type TlsOptions } from "./connection.ts";
import { answerTo, FakeHost, framing, wire } from "./fake-host.fixture.ts";

const signal = new AbortController().signal;

async function certificate() {
  const names = { name: "subjectAltName" as const, altNames: [{ type: 7 as const, ip: "127.0.0.1" }] };
  return generate([{ name: "commonName", value: "127.0.0.1" }], { extensions: [names] });
}

function connect(host: FakeHost, tls: TlsOptions, onMessage: (bytes: Buffer) => void = () => undefined) {
  return connectTo(
    { host: "127.0.0.1", port: host.port },
    { framing, tls, connectTimeoutMs: 600_000, onMessage },
    signal,
  );
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
    const unknown = await connect(host, { cert: stranger.cert, key: stranger.private, ca: server.cert });
    expect(await unknown.ended).not.toBe("");
  } finally {
    await host.close();
  }
});
