import type { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../clock.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { AddressGuard } from "./addresses.ts";
import { connect } from "./connect.ts";
import { httpsPeer, makeAuthority, tcpPeer } from "./transport.fixture.ts";
import { Transport } from "./transport.ts";

/** Accepts every address that a name server returns, as if the connection went elsewhere than the checked address. */
class DeceivedGuard extends AddressGuard {
  override allowedOf(_hostname: string, addresses: readonly string[]): readonly string[] {
    return addresses;
  }
}

test("a socket that is connected to another address is closed before its first byte", async () => {
  const peer = await tcpPeer(() => undefined);
  const ended = Promise.withResolvers<void>();
  peer.server.once("connection", (socket) => socket.once("close", () => ended.resolve()));
  const rules = {
    guard: new DeceivedGuard(["203.0.113.0/24"], { loopbackAllowed: true }),
    resolve: () => Promise.resolve(["127.0.0.1"]),
    secureContext: createSecureContext(),
    connectTimeoutMs: 600_000,
  };
  const target = { hostname: "callback.test", port: peer.port, secure: true };
  await expect(connect(target, rules, { session: undefined }).connected).rejects.toMatchObject({
    reason: "address_refused",
    message: "127.0.0.1 is outside callbackAddresses (203.0.113.0/24).",
  });
  await ended.promise;
  expect(peer.bytes).toBe(0);
});

test("a connection that is abandoned is closed, whatever its stage", async () => {
  const peer = await tcpPeer(() => undefined);
  const ended = Promise.withResolvers<void>();
  const rules = {
    guard: new AddressGuard(["127.0.0.1/32"], { loopbackAllowed: true }),
    resolve: () => Promise.resolve(["127.0.0.1"]),
    secureContext: createSecureContext(),
    connectTimeoutMs: 600_000,
  };
  const connecting = connect({ hostname: "127.0.0.1", port: peer.port, secure: true }, rules, { session: undefined });
  peer.server.once("connection", (socket) => {
    socket.once("close", () => ended.resolve());
    connecting.abandon();
  });
  await expect(connecting.connected).rejects.toMatchObject({ reason: "timeout" });
  await ended.promise;
});

test("an abort closes every connection at once, and ends POSTs that connect or wait for a response", async () => {
  // Nothing is closed because it was idle for long.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const authority = await makeAuthority("Paybell test authority");
  const [asked, looksUp, closed] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  const peer = await httpsPeer(await authority.issue("callback.test"), ({ url }, response) => {
    if (url === "/idle") response.end();
    else asked?.resolve();
  });
  Object.assign(peer.server, { keepAliveTimeout: 0 });
  const open = new Set<Socket>();
  peer.server.on("secureConnection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      if (open.size === 0) closed?.resolve();
    });
  });
  const transport = new Transport({
    clock: systemClock,
    resolve: (name) => {
      if (name === "callback.test") return Promise.resolve(["127.0.0.1"]);
      looksUp?.resolve();
      return new Promise(() => undefined);
    },
    sandbox: true,
    extraCas: [authority.cert],
    connectTimeoutMs: 600_000,
  });
  const partner = partnerSnapshot();
  const post = (url: string) => transport.post({ partner, url, headers: {}, body: "{}", deadlineMs: 600_000 });
  const waiting = post(`https://callback.test:${peer.port}/waiting`);
  expect(await post(`https://callback.test:${peer.port}/idle`)).toMatchObject({ httpStatus: 200 });
  const connecting = post("https://silent.test/ipn");
  await Promise.all([asked?.promise, looksUp?.promise]);
  expect(open.size).toBe(2);
  transport.abort();
  expect(await waiting).toMatchObject({ reason: "reset", detail: "The service has stopped." });
  expect(await connecting).toMatchObject({ address: null, reason: "reset", detail: "The service has stopped." });
  await closed?.promise;
});
