import { constants, createHash, createPrivateKey, X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { systemClock } from "../../clock.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner, PartnerSettings } from "../../partners/partner.ts";
import { httpsPeer, makeAuthority, type Peer, transportTo, weakPeer } from "./transport.fixture.ts";
import type { PostResult } from "./transport.ts";

const authority = await makeAuthority("An authority");
const another = await makeAuthority("Another authority");
const certificate = await authority.issue("callback.test");

const dayMs = 86_400_000;
const ok = (issued = certificate) => httpsPeer(issued, (_, response) => response.writeHead(204).end());

function post(peer: Peer, partner: Partner, transport = transportTo(authority)): Promise<PostResult> {
  const url = `https://callback.test:${peer.port}/ipn`;
  return transport.post({ partner, url, headers: {}, body: "{}", deadlineMs: 600_000 });
}

const partnerWith = (settings: Partial<PartnerSettings>) => partnerSnapshot(settings);
const accepted = { httpStatus: 204 };
const pinOf = (pem: string) => {
  const spki = new X509Certificate(pem).publicKey.export({ type: "spki", format: "der" });
  return `sha256/${createHash("sha256").update(spki).digest("base64")}`;
};

test("a partner's own CA replaces every other one", async () => {
  const peer = await ok();
  expect(await post(peer, partnerWith({ callbackCa: authority.cert }))).toMatchObject(accepted);
  expect(await post(peer, partnerWith({ callbackCa: another.cert }))).toMatchObject({ reason: "tls" });
  const theirs = await ok(await another.issue("callback.test"));
  expect(await post(theirs, partnerWith({ callbackCa: another.cert }))).toMatchObject(accepted);
  expect(await post(theirs, partnerWith({}))).toMatchObject({ reason: "tls" });
});

test("a server whose public key is not pinned gets no byte, whatever CA signed it", async () => {
  const peer = await ok();
  const pinned = pinOf(certificate.cert);
  const other = pinOf(another.cert);
  expect(await post(peer, partnerWith({ callbackPins: [other, pinned] }))).toMatchObject(accepted);
  const requests: string[] = [];
  const spied = await httpsPeer(await authority.issue("callback.test"), (request, response) => {
    requests.push(request.url ?? "");
    response.end();
  });
  expect(await post(spied, partnerWith({ callbackPins: [pinned] }))).toMatchObject({
    reason: "tls",
    detail: expect.stringContaining("is not among callbackPins"),
  });
  expect(requests).toEqual([]);
});

test("with a pin no session is resumed: it would have no certificate whose key could be compared", async () => {
  const resumed: boolean[] = [];
  const peer = await httpsPeer(certificate, (request, response) => {
    resumed.push((request.socket as TLSSocket).isSessionReused());
    response.writeHead(204, { connection: "close" }).end();
  });
  const transport = transportTo(authority);
  const callbackPins = [pinOf(certificate.cert)];
  for (const partner of [partnerWith({}), partnerWith({ callbackPins })]) {
    for (let nth = 0; nth < 2; nth += 1) expect(await post(peer, partner, transport)).toMatchObject(accepted);
  }
  expect(resumed).toEqual([false, true, false, false]);
});

test("a session that the server refuses to resume is not offered again", async () => {
  const peer = await weakPeer(certificate, { maxVersion: "TLSv1.2", secureOptions: constants.SSL_OP_NO_TICKET });
  const known = new Set<string>();
  peer.server.on("newSession", (id: Buffer, _session: Buffer, done: () => void) => {
    known.add(id.toString("hex"));
    done();
  });
  // A client that offers TLS 1.3 sends a random id with no session behind it, too.
  peer.server.on("resumeSession", (id: Buffer, done: (error: Error | null, session: null) => void) => {
    done(known.has(id.toString("hex")) ? new Error("it is refused") : null, null);
  });
  const [partner, transport] = [partnerWith({}), transportTo(authority, { idleConnectionsMax: 0 })];
  const results: PostResult[] = [];
  for (let nth = 0; nth < 3; nth += 1) results.push(await post(peer, partner, transport));
  expect(results).toMatchObject([{ httpStatus: 200 }, { reason: "tls" }, { httpStatus: 200 }]);
});

test("a pin applies to every connection", async () => {
  const peer = await ok();
  const transport = transportTo(authority);
  const settings = { callbackPins: [pinOf(certificate.cert)] };
  const partner = partnerWith(settings);
  expect(await post(peer, partner, transport)).toMatchObject(accepted);
  const withAnother = partnerSnapshot({ callbackPins: [pinOf(another.cert)] }, partner.id);
  expect(await post(peer, withAnother, transport)).toMatchObject({ reason: "tls" });
  expect(await post(peer, partner, transport)).toMatchObject(accepted);
  expect(peer.connections).toBe(3);
});

test("a server that requests a client certificate gets its partner's, and no other partner's", async () => {
  const shown: (string | undefined)[] = [];
  const options = { requestCert: true, rejectUnauthorized: false, ca: [another.cert] };
  const peer = await weakPeer(certificate, options);
  peer.server.on("secureConnection", (socket: TLSSocket) => {
    shown.push(socket.authorized ? String(socket.getPeerCertificate().subject.CN) : undefined);
  });
  const issued = await another.issue("paybell.test");
  const client = { id: "c", certificate: issued.cert, key: createPrivateKey(issued.key) };
  const plain = partnerWith({});
  const transport = transportTo(authority);
  await post(peer, { ...plain, keys: { ...plain.keys, client } }, transport);
  await post(peer, plain, transport);
  await post(peer, partnerWith({}), transport);
  expect(shown).toEqual(["paybell.test", undefined, undefined]);
});

test("a port that was not agreed on is not connected to", async () => {
  const peer = await ok();
  expect(await post(peer, partnerWith({ callbackPorts: [443] }))).toMatchObject({
    reason: "address_refused",
    detail: expect.stringContaining("callbackPorts"),
  });
  expect(peer.connections).toBe(0);
  expect(await post(peer, partnerWith({ callbackPorts: [443, peer.port] }))).toMatchObject(accepted);
});

test.each([
  [13, 1],
  [15, 0],
])("a certificate that ends in %i days is reported %i times a day, and delivery goes on", async (days, times) => {
  let nowMs = Date.now();
  const told: unknown[] = [];
  const transport = transportTo(authority, {
    clock: { ...systemClock, nowMs: () => nowMs },
    onCertificateEnding: (...args) => told.push(args),
  });
  // Issued for one day from now: the warning depends on how long before its end it is checked.
  const endsAt = new Date(Math.floor(Date.now() / 1_000) * 1_000 + dayMs / 2);
  nowMs = endsAt.getTime() - days * dayMs;
  const issued = await authority.issue("callback.test", endsAt);
  const peer = await ok(issued);
  const partner = partnerWith({});
  // Other settings need another connection, which shows the certificate again.
  for (const current of [partner, partnerSnapshot({ callbackPins: [pinOf(issued.cert)] }, partner.id)]) {
    expect(await post(peer, current, transport)).toMatchObject(accepted);
  }
  const origin = `https://callback.test:${peer.port}`;
  expect(told).toEqual(Array.from({ length: times }, () => [partner.id, origin, endsAt]));
});
