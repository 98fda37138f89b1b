import type { TLSSocket } from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../../test/support/ports.ts";
import { systemClock } from "../../clock.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { connectProxy } from "./connect-proxy.fixture.ts";
import { EgressProxy, type EgressProxyOptions } from "./egress-proxy.ts";
import { answer, httpsPeer, makeAuthority, type Peer, tlsPeer, transportTo } from "./transport.fixture.ts";
import type { TransportOptions } from "./transport.ts";

const authority = await makeAuthority("Paybell test authority");
const certificate = await authority.issue("callback.test");
const partner = partnerSnapshot({ callbackAddresses: ["127.0.0.0/8"] });

interface Setup {
  readonly proxy?: Partial<EgressProxyOptions>;
  readonly transport?: Partial<TransportOptions>;
}

/** @param port of the proxy */
function through(port: number, setup: Setup = {}) {
  const told: string[] = [];
  const kinds: string[] = [];
  const proxy = new EgressProxy({
    url: `http://127.0.0.1:${port}`,
    resolvesNames: false,
    except: [],
    resolve: () => Promise.resolve(["127.0.0.1"]),
    clock: systemClock,
    onFailure: (detail) => told.push(detail),
    onNotOpened: (kind) => kinds.push(kind),
    ...setup.proxy,
  });
  const transport = transportTo(authority, { proxy, ...setup.transport });
  const post = (url: string) =>
    transport.post({ partner, url, headers: {}, body: '{"data":"sealed"}', deadlineMs: 600_000 });
  return { proxy, told, kinds, post, transport };
}

function live(): Promise<Peer> {
  return httpsPeer(certificate, (_, response) => response.end());
}

/** A port that nobody listens on, another one each time: of 2,000 times that the system names three, two are equal once. */
const dead = freePort;

test("a callback is a tunnel to the address that was checked, with TLS of the name inside", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  const names: unknown[] = [];
  peer.server.on("secureConnection", (socket: TLSSocket) => names.push(socket.servername));
  const { post } = through(proxy.port);
  const url = `https://callback.test:${peer.port}/ipn`;
  expect(await post(url)).toMatchObject({ httpStatus: 200, address: "127.0.0.1" });
  expect(await post(url)).toMatchObject({ httpStatus: 200 });
  expect(proxy.asked).toEqual([`127.0.0.1:${peer.port}`]);
  expect(names).toEqual(["callback.test"]);
  expect(await post(`https://another.test:${peer.port}/ipn`)).toMatchObject({ reason: "tls" });
});

test("an address that the guard refuses is never asked for", async () => {
  const proxy = await connectProxy();
  const { post } = through(proxy.port, { transport: { sandbox: false } });
  expect(await post("https://callback.test:8443/ipn")).toMatchObject({ reason: "address_refused" });
  expect(proxy.asked).toEqual([]);
});

test("a proxy of https:// is verified, and gets its credentials", async () => {
  const credentials = "paybell:a secret/with@signs";
  const [proxy, peer] = [await connectProxy({ certificate, credentials }), await live()];
  const url = `https://paybell:${encodeURIComponent("a secret/with@signs")}@callback.test:${proxy.port}`;
  const callback = `https://callback.test:${peer.port}/ipn`;
  expect(await through(proxy.port, { proxy: { url } }).post(callback)).toEqual({ notWritten: "egress" });
  const { getCACertificates, setDefaultCACertificates } = await import("node:tls");
  const before = getCACertificates("default");
  onTestFinished(() => setDefaultCACertificates(before));
  setDefaultCACertificates([...before, authority.cert]);
  expect(await through(proxy.port, { proxy: { url } }).post(callback)).toMatchObject({ httpStatus: 200 });
});

test("a proxy that looks names up is asked for the name, and for no address that is refused", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  const resolve = vi.fn(() => Promise.resolve(["203.0.113.1"]));
  const { post } = through(proxy.port, { proxy: { resolvesNames: true }, transport: { resolve } });
  const answered = await post(`https://callback.test:${peer.port}/ipn`);
  expect(answered).toMatchObject({ httpStatus: 200, address: null });
  expect(await post("https://198.51.100.1/ipn")).toMatchObject({ reason: "address_refused" });
  expect(proxy.asked).toEqual([`callback.test:${peer.port}`]);
  expect(resolve).not.toHaveBeenCalled();
});

test("every allowed address of a name is tried before the origin counts as failed, and no other", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  for (const address of ["10.0.0.5", "127.0.0.2"]) proxy.answers.set(`${address}:${peer.port}`, 502);
  const resolve = () => Promise.resolve(["10.0.0.5", "127.0.0.2", "127.0.0.1"]);
  const { post } = through(proxy.port, { transport: { resolve } });
  expect(await post(`https://callback.test:${peer.port}/ipn`)).toMatchObject({ address: "127.0.0.1", httpStatus: 200 });
  expect(proxy.asked).toEqual([`127.0.0.2:${peer.port}`, `127.0.0.1:${peer.port}`]);
});

test("each tunnel that does not open is counted by its reason, and by the proxy if no origin can be reached", async () => {
  const proxy = await connectProxy();
  const { post, kinds } = through(proxy.port);
  for (const [nth, status] of [407, 403, 502].entries()) {
    proxy.answers.set(`127.0.0.1:${9000 + nth}`, status);
    await post(`https://${nth}.test:${9000 + nth}/ipn`);
  }
  expect(kinds).toEqual(["unauthorized", "refused", "every_origin"]);
  const away = through(await dead());
  await away.post("https://callback.test:8443/ipn");
  expect(away.kinds).toEqual(["unreachable"]);
  const [other, peer] = [await connectProxy(), await live()];
  other.answers.set("127.0.0.1:9000", 502);
  const one = through(other.port);
  await one.post("https://callback.test:9000/ipn");
  await one.post(`https://callback.test:${peer.port}/ipn`);
  expect(one.kinds).toEqual(["origin"]);
});

test("the hosts that are excepted are connected to directly", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  const except = ["callback.test", ".internal.test", "127.0.0.0/8"];
  const { post, proxy: it } = through(proxy.port, { proxy: { except } });
  expect(await post(`https://callback.test:${peer.port}/ipn`)).toMatchObject({ httpStatus: 200 });
  expect(await post(`https://127.0.0.1:${peer.port}/ipn`)).toMatchObject({ httpStatus: 200 });
  expect(proxy.asked).toEqual([]);
  expect(["a.internal.test", "callback.test", "127.0.0.9"].some((host) => it.isFor(host))).toBe(false);
  expect(["internal.test", "acallback.test", "192.0.2.1"].every((host) => it.isFor(host))).toBe(true);
});

test("407 is ours: nothing is sent, deliveries are held, and one event says so without the password", async () => {
  const proxy = await connectProxy({ credentials: "paybell:right" });
  const url = `http://paybell:wr0ng@127.0.0.1:${proxy.port}`;
  const { post, told, proxy: it } = through(proxy.port, { proxy: { url } });
  for (const name of ["callback", "another"]) {
    expect(await post(`https://${name}.test/ipn`)).toEqual({ notWritten: "egress" });
  }
  expect(it.waitMs()).toBeGreaterThan(0);
  expect(told).toHaveLength(1);
  expect(told[0]).toContain("407");
  expect(told[0]).not.toContain("wr0ng");
});

test("a refusal is ours: its origin's deliveries are postponed, and those of others are not held", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  proxy.answers.set("127.0.0.1:8443", 403);
  const { post, told, proxy: it } = through(proxy.port);
  for (let times = 0; times < 4; times += 1) {
    expect(await post("https://callback.test:8443/ipn")).toEqual({ notWritten: "egress" });
  }
  expect(it.waitMs()).toBe(0);
  expect(told).toEqual([
    `The egress proxy 127.0.0.1:${proxy.port} answered 403 to CONNECT for https://callback.test:8443.`,
  ]);
  expect(await post(`https://callback.test:${peer.port}/ipn`)).toMatchObject({ httpStatus: 200 });
});

test.each([502, 503, 504])("%i to CONNECT is the failure of its origin", async (status) => {
  const proxy = await connectProxy();
  proxy.answers.set("127.0.0.1:443", status);
  const { post, told, proxy: it } = through(proxy.port);
  for (let times = 0; times < 6; times += 1) {
    expect(await post("https://callback.test/ipn")).toMatchObject({ reason: "connect", address: null });
  }
  expect(it.waitMs()).toBe(0);
  expect(told).toEqual([]);
});

test("a CONNECT without an answer is the failure of its origin", async () => {
  const proxy = await connectProxy();
  proxy.answers.set("127.0.0.1:443", "silence");
  const { post } = through(proxy.port, { transport: { connectTimeoutMs: 300 } });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const posted = post("https://callback.test/ipn");
  // Until it is asked, the proxy itself may be what is away.
  await expect.poll(() => proxy.asked).toHaveLength(1);
  vi.advanceTimersByTime(300);
  expect(await posted).toMatchObject({ reason: "connect_timeout" });
});

test("the third origin in a row that fails is the proxy's failure, until something comes through it", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  const { post, told, proxy: it } = through(proxy.port);
  const ports = [await dead(), await dead(), await dead()];
  const url = (port = 0) => `https://callback.test:${port}/ipn`;
  expect(await post(url(ports[0]))).toMatchObject({ reason: "connect" });
  expect(await post(url(ports[1]))).toMatchObject({ reason: "connect" });
  expect(await post(url(ports[2]))).toEqual({ notWritten: "egress" });
  expect(it.waitMs()).toBeGreaterThan(0);
  expect(told).toEqual([`The egress proxy 127.0.0.1:${proxy.port} connects to nothing.`]);
  expect(await post(url(peer.port))).toMatchObject({ httpStatus: 200 });
  expect(it.waitMs()).toBe(0);
});

test("deliveries are held for 1, 2, 4, then 5 s while the proxy fails, and no longer for a failure meanwhile", () => {
  let nowMs = 10_000;
  const { proxy } = through(1, { proxy: { clock: { monotonicMs: () => nowMs } } });
  const waits = Array.from({ length: 5 }, () => {
    proxy.failed("https://callback.test", new Error("away"));
    const waitMs = proxy.waitMs();
    nowMs += waitMs / 2;
    proxy.failed("https://callback.test", new Error("away"));
    nowMs += waitMs / 2;
    expect(proxy.waitMs()).toBe(0);
    return waitMs;
  });
  expect(waits).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
});

test("dead origins beside a live one stay theirs, although its connection is an old one", async () => {
  const [proxy, peer] = [await connectProxy(), await live()];
  const { post, proxy: it } = through(proxy.port);
  const url = (port: number) => `https://callback.test:${port}/ipn`;
  await post(url(peer.port));
  for (let times = 0; times < 4; times += 1) {
    expect(await post(url(await dead()))).toMatchObject({ reason: "connect" });
    expect(await post(url(peer.port))).toMatchObject({ httpStatus: 200 });
  }
  expect(peer.connections).toBe(1);
  expect(it.waitMs()).toBe(0);
});

test("a POST in flight when the proxy dies counts as an attempt, and not against its endpoint", async () => {
  const proxy = await connectProxy();
  const received = Promise.withResolvers<void>();
  let requests = 0;
  const peer = await tlsPeer(certificate, (socket) => {
    requests += 1;
    if (requests === 1) socket.write(answer("200 OK"));
    else received.resolve();
  });
  const { post, told, proxy: it } = through(proxy.port);
  const url = `https://callback.test:${peer.port}/ipn`;
  expect(await post(url)).toMatchObject({ httpStatus: 200 });
  const inFlight = post(url);
  await received.promise;
  await proxy.stop();
  expect(await inFlight).toMatchObject({ reason: "egress" });
  expect(await post(url)).toEqual({ notWritten: "egress" });
  expect(it.waitMs()).toBeGreaterThan(0);
  expect(told[0]).toContain("ECONNREFUSED");
  await connectProxy({ port: proxy.port });
  requests = 0;
  expect(await post(url)).toMatchObject({ httpStatus: 200 });
  expect(it.waitMs()).toBe(0);
});
