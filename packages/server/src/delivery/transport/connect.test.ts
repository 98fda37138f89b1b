import { createSecureContext } from "node:tls";
import { expect, test } from "vitest";
import { AddressGuard } from "./address-guard.ts";
import { connect } from "./connect.ts";
import { tcpPeer } from "./transport.fixture.ts";

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
