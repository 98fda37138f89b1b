import { openAndVerify } from "@paybell/contract";
import { pino } from "pino";
import { afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../clock.ts";
import { newId } from "../../ids.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { httpsPeer, makeAuthority, tcpPeer } from "../transport/transport.fixture.ts";
import type { EnvelopeFor } from "./envelope.ts";
import { LeaseLost, type Sending, type SendingPartner } from "./sender.ts";
import { SendingThread, type SendingThreadOptions } from "./sending-thread.ts";
import { SendingThreads } from "./sending-threads.ts";

let authority: Awaited<ReturnType<typeof makeAuthority>>;
let certificate: { key: string; cert: string };

beforeAll(async () => {
  authority = await makeAuthority("Partners of a test");
  certificate = await authority.issue("localhost");
});

const lines: string[] = [];
const threads: SendingThread[] = [];
afterEach(async () => {
  await Promise.all(threads.splice(0).map((thread) => thread.close()));
  lines.length = 0;
});

function sendingThread(options: Partial<SendingThreadOptions> = {}): SendingThread {
  const thread = new SendingThread({
    log: pino({}, { write: (line) => void lines.push((JSON.parse(line) as { msg: string }).msg) }),
    sandbox: true,
    extraCas: [authority.cert],
    connectTimeoutMs: 5_000,
    ...options,
  });
  threads.push(thread);
  return thread;
}

const content = JSON.stringify({
  kind: "card",
  command: "SALE",
  fields: { id: "t-1", amount: "150000", currency: "VND", merchantName: "Bún bò 🍜" },
});

function envelopeFor(callbackUrl: string): EnvelopeFor {
  return {
    notificationId: newId<"notification">(),
    command: "SALE",
    originalId: null,
    attemptNo: 1,
    callbackUrl,
    outOfOrder: false,
    nowMs: 1_750_000_000_999,
  };
}

function sending(port: number, partner: SendingPartner, more: Partial<Sending> = {}): Sending {
  return {
    partner,
    content,
    attempt: envelopeFor(`https://localhost:${port}/ipn`),
    deadlineMs: 5_000,
    startBeforeMs: systemClock.monotonicMs() + 8_000,
    ...more,
  };
}

/** Answers 204, and keeps what came. */
async function keepingPeer() {
  const bodies: string[] = [];
  const peer = await httpsPeer(certificate, (_request, response) => response.writeHead(204).end());
  peer.server.on("request", (request: AsyncIterable<Buffer>) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      bodies.push(Buffer.concat(chunks).toString());
    })();
  });
  return { port: peer.port, bodies };
}

function merchantOf(partner: SendingPartner, body: string): unknown {
  const { settings, keys } = partner;
  const { ipn } = openAndVerify(body, {
    sealing: settings,
    signing: settings.signing,
    encryptionKeys: [keys.encryption],
    signingKeys: [keys.signing.key],
  });
  return (ipn as unknown as Record<string, unknown>)["merchantName"];
}

test("seals and POSTs in its thread, with the keys and settings that the partner has at that moment", async () => {
  const peer = await keepingPeer();
  const thread = sendingThread();
  const before = partnerSnapshot();
  const after = { ...partnerSnapshot({ cipher: "jwe" }), id: before.id };
  for (const partner of [before, after, before]) {
    const result = await thread.send(sending(peer.port, partner));
    expect(result).toEqual({ httpStatus: 204, address: "127.0.0.1", answer: null });
    expect(merchantOf(partner, peer.bodies.pop() ?? "")).toBe("Bún bò 🍜");
  }
  expect(thread.busyMs).toBeGreaterThan(0);
});

test("knows each partner after more of them than it is told at once", async () => {
  const peer = await keepingPeer();
  const thread = sendingThread({ partnersMax: 2 });
  const partners = Array.from({ length: 5 }, () => partnerSnapshot());
  const twice = [...partners, ...partners];
  const results = await Promise.all(twice.map((partner) => thread.send(sending(peer.port, partner))));
  expect(results.map((result) => "httpStatus" in result && result.httpStatus)).toEqual(twice.map(() => 204));
});

test("POSTs what was sealed before, without a copy of it", async () => {
  const peer = await keepingPeer();
  const thread = sendingThread();
  const { attempt, ...rest } = sending(peer.port, partnerSnapshot());
  const body = Buffer.allocUnsafeSlow(5_000_000).fill("a");
  const envelope = { headers: { "content-type": "application/json" }, body, keyId: "k" };
  expect(await thread.post({ ...rest, envelope, url: attempt.callbackUrl })).toMatchObject({ httpStatus: 204 });
  expect(peer.bodies.map((one) => one.length)).toEqual([5_000_000]);
  expect(body.length).toBe(0);
});

test("starts no POST when the lease is over, by the main thread's clock", async () => {
  const peer = await keepingPeer();
  const thread = sendingThread();
  await thread.send(sending(peer.port, partnerSnapshot()));
  const over = sending(peer.port, partnerSnapshot(), { startBeforeMs: systemClock.monotonicMs() });
  await expect(thread.send(over)).rejects.toThrow(LeaseLost);
  expect(peer.bodies).toHaveLength(1);
});

test("gives a refusal's answer back as bytes, and a failure by its reason", async () => {
  const refusing = await httpsPeer(certificate, (_request, response) => {
    response.writeHead(503, { "retry-after": "7" }).end("not now");
  });
  const thread = sendingThread();
  const refused = await thread.send(sending(refusing.port, partnerSnapshot()));
  expect(refused).toMatchObject({ httpStatus: 503, retryAfterMs: 7_000 });
  expect("answer" in refused && refused.answer?.toString()).toBe("not now");
  const garbage = await tcpPeer((socket) => socket.end("garbage"));
  expect(await thread.send(sending(garbage.port, partnerSnapshot()))).toMatchObject({ reason: "tls" });
});

test("what cannot be sealed is told without a word of its content", async () => {
  const thread = sendingThread();
  await expect(thread.send(sending(1, partnerSnapshot(), { content: "Nguyen Van A" }))).rejects.toThrow(
    "The notification's facts are no JSON.",
  );
});

test("a thread that ends leaves its attempts failed, and the next one is served by another", async () => {
  const asked = Promise.withResolvers<void>();
  const silent = await httpsPeer(certificate, () => asked.resolve());
  const peer = await keepingPeer();
  const thread = sendingThread();
  const partner = partnerSnapshot();
  const lost = thread.send(sending(silent.port, partner));
  await asked.promise;
  await thread.end();
  expect(await lost).toEqual({
    reason: "internal",
    detail: "The thread that sends ended before it had told what became of this.",
    address: null,
  });
  expect(lines).toEqual(["the sending thread ended"]);
  expect(thread.jobs).toBe(0);
  expect(await thread.send(sending(peer.port, partner))).toMatchObject({ httpStatus: 204 });
});

test("a thread that is silent past its attempts' deadlines is ended", async () => {
  const silent = await httpsPeer(certificate, () => undefined);
  const thread = sendingThread({ graceMs: -4_900, watchEveryMs: 20 });
  const lost = await thread.send(sending(silent.port, partnerSnapshot()));
  expect(lost).toMatchObject({ reason: "internal" });
  expect(lines).toEqual(["the sending thread is stuck", "the sending thread ended"]);
});

test("closing ends the thread, and sends nothing more", async () => {
  const peer = await keepingPeer();
  const thread = sendingThread();
  await thread.send(sending(peer.port, partnerSnapshot()));
  await thread.close();
  await expect(thread.send(sending(peer.port, partnerSnapshot()))).rejects.toThrow("Sending was stopped.");
  expect(lines).toEqual([]);
});

test("of several threads each partner has its own, and all of them are used", async () => {
  const used: string[] = [];
  const one = (name: string) => ({
    send: async () => {
      used.push(name);
      return { httpStatus: 204, address: null, answer: null };
    },
    post: () => Promise.reject(new Error("nothing is large")),
    close: async () => void used.push(`${name} closed`),
  });
  const all = new SendingThreads([one("a"), one("b"), one("c")]);
  const partners = Array.from({ length: 64 }, () => partnerSnapshot());
  for (const partner of partners) {
    used.length = 0;
    await all.send(sending(1, partner));
    await all.send(sending(1, partner));
    expect(used[0]).toBe(used[1]);
  }
  used.length = 0;
  for (const partner of partners) await all.send(sending(1, partner));
  expect(new Set(used)).toEqual(new Set(["a", "b", "c"]));
  await all.close();
  expect(used.slice(-3)).toEqual(["a closed", "b closed", "c closed"]);
});
