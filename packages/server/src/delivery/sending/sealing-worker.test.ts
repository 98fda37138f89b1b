import { openAndVerify } from "@paybell/contract";
import { pino } from "pino";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../clock.ts";
import { type NotificationId, newId } from "../../ids.ts";
import type { IpnFacts } from "../../ipn/facts.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner } from "../../partners/partner.ts";
import { attemptMaker } from "../attempt.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import { httpsPeer, makeAuthority } from "../transport/transport.fixture.ts";
import { Transport } from "../transport/transport.ts";
import { dataOf, type EnvelopeFor } from "./envelope.ts";
import { SealingQueueFull, SealingWorker, SealingWorkerDied, type SealingWorkerOptions } from "./sealing-worker.ts";

const entries = 50_000;

const sale: IpnFacts = { kind: "card", command: "SALE", fields: { id: "t-1", amount: "150000", currency: "VND" } };

function settlementOf(count: number): string {
  const settlement: IpnFacts = {
    kind: "settlement",
    command: "SETTLEMENT",
    fields: { id: "s-1", saleTotalAmount: "10", voidTotalAmount: "2", status: "SUCCESS", mid: "Bún bò 🍜" },
    settlementList: Array.from({ length: count }, (_, at) => ({ reqId: `5f0c2a${at}`, refNo: String(at) })),
    currency: "USD",
  };
  return JSON.stringify(settlement);
}

function attempt(): EnvelopeFor {
  return {
    notificationId: newId() as NotificationId,
    command: "SETTLEMENT",
    originalId: null,
    attemptNo: 1,
    callbackUrl: "https://callback.test/ipn",
    outOfOrder: false,
    nowMs: 1_750_000_000_999,
  };
}

const lines: string[] = [];
const workers: SealingWorker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  lines.length = 0;
});

function sealingWorker(options: Partial<SealingWorkerOptions> = {}): SealingWorker {
  const worker = new SealingWorker({ log: pino({}, { write: (line) => void lines.push(line) }), ...options });
  workers.push(worker);
  return worker;
}

function opened(partner: Partner, body: string | Buffer) {
  const { settings, keys } = partner;
  return openAndVerify(body.toString(), {
    sealing: settings,
    signing: settings.signing,
    encryptionKeys: [keys.encryption],
    signingKeys: [keys.signing.key],
  });
}

describe("a large envelope", () => {
  test.each(["aes-256-gcm", "aes-256-cbc", "jwe"] as const)(
    "sealed with %s in the thread opens to the IPN that it was",
    async (cipher) => {
      const worker = sealingWorker();
      const partner = partnerSnapshot({ cipher, signing: { mode: "whole" } });
      const at = attempt();
      const { body, headers, keyId } = await worker.make(settlementOf(entries), partner, at);
      expect(body).toBeInstanceOf(Buffer);
      const { ipn, kind } = opened(partner, body);
      expect(kind).toBe("settlement");
      expect(ipn).toMatchObject({ id: "s-1", mid: "Bún bò 🍜", callbackUrl: at.callbackUrl });
      expect((ipn as unknown as { settlementList: unknown[] }).settlementList).toHaveLength(entries);
      expect(JSON.parse(body.toString())).toEqual({ data: dataOf(body) });
      expect(headers["webhook-id"]).toBe(at.notificationId);
      expect(keyId).toBe(partner.keys.encryption.id);
    },
  );

  test("is made by one thread for all, at most four at a time, and each caller gets its own", async () => {
    const worker = sealingWorker({ smallCharsMax: 0 });
    const asked = Array.from({ length: 20 }, () => {
      const partner = partnerSnapshot();
      return { partner, envelope: worker.make(settlementOf(10), partner, attempt()) };
    });
    expect(worker.status.jobs).toBe(4);
    const { threadId } = worker.status;
    for (const { partner, envelope } of asked) {
      const { body } = await envelope;
      expect(opened(partner, body).keyId).toBe(partner.keys.encryption.id);
      expect(worker.status.jobs).toBeLessThanOrEqual(4);
    }
    expect(worker.status).toEqual({ jobs: 0, waitingChars: 0, threadId });
  });

  test("reports how long it waited for the thread, once each", async () => {
    const waited: number[] = [];
    const worker = sealingWorker({ jobsMax: 1, onHanded: (waitedMs) => void waited.push(waitedMs) });
    const partner = partnerSnapshot();
    // Made before: each one's wait begins when it is requested.
    const settlement = settlementOf(entries);
    await Promise.all([1, 2, 3].map(() => worker.make(settlement, partner, attempt())));
    expect(waited).toHaveLength(3);
    // The first is passed on at once, each other after the one before it.
    expect([...waited].sort((a, b) => a - b)).toEqual(waited);
    expect(waited[1]).toBeGreaterThan(waited[0] ?? 0);
    await worker.make(settlementOf(1), partner, attempt());
    expect(waited).toHaveLength(3);
  });

  test("is refused at once if the queue is full, and those before it are made", async () => {
    const content = settlementOf(100);
    const worker = sealingWorker({ smallCharsMax: 0, waitingCharsMax: 2 * content.length });
    const partner = partnerSnapshot();
    const made = Array.from({ length: 6 }, () => worker.make(content, partner, attempt()));
    const refused = worker.make(content, partner, attempt());
    await expect(refused).rejects.toBeInstanceOf(SealingQueueFull);
    await expect(refused).rejects.toMatchObject({ code: "unavailable", retryAfterS: 1 });
    for (const envelope of made) expect((await envelope).keyId).toBe(partner.keys.encryption.id);
    await expect(worker.make(content, partner, attempt())).resolves.toHaveProperty("headers");
  });

  test("larger than the queue's limit is made when nothing else waits", async () => {
    const worker = sealingWorker({ smallCharsMax: 0, jobsMax: 1, waitingCharsMax: 10 });
    const made = [1, 2].map(() => worker.make(settlementOf(100), partnerSnapshot(), attempt()));
    expect(await Promise.all(made)).toHaveLength(2);
  });

  test("with invalid facts fails without quoting them, and the thread continues", async () => {
    const worker = sealingWorker({ smallCharsMax: 0 });
    const partner = partnerSnapshot();
    const bad = Promise.resolve(worker.make("cardHolder NGUYEN VAN A", partner, attempt()));
    const failure = await bad.then(String, (error: unknown) => String(error));
    expect(failure).toContain("It cannot be sealed");
    expect(failure).not.toContain("NGUYEN");
    const { threadId } = worker.status;
    await expect(worker.make(settlementOf(1), partner, attempt())).resolves.toHaveProperty("body");
    expect(worker.status.threadId).toBe(threadId);
  });

  test("that exceeds the thread's memory ends the thread, and not the process", async () => {
    const worker = sealingWorker({ heapMbMax: 32 });
    const partner = partnerSnapshot();
    const large = worker.make(settlementOf(10 * entries), partner, attempt());
    const behind = worker.make(settlementOf(entries / 5), partner, attempt());
    const { threadId } = worker.status;
    await expect(large).rejects.toThrow(/thread ended .* before it had sealed this/);
    expect(lines.join("")).toContain("the sealing thread failed");
    // A new thread makes what waited behind it.
    const { body } = await behind;
    expect(opened(partner, body).kind).toBe("settlement");
    expect(worker.status.threadId).not.toBe(threadId);
  });

  test("fails if the thread is silent for too long", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const stuck = sealingWorker({ smallCharsMax: 0, silentMs: 1_000 });
    const made = Promise.resolve(stuck.make(settlementOf(1), partnerSnapshot(), attempt()));
    // The thread has not even started by then.
    vi.advanceTimersByTime(1_000);
    await expect(made).rejects.toThrow(/stuck/);
    expect(stuck.status).toEqual({ jobs: 0, waitingChars: 0, threadId: undefined });
    expect(lines.join("")).toContain("the sealing thread is stuck");
  });

  test("fails if it is requested after the stop, or not made by then", async () => {
    const worker = sealingWorker({ smallCharsMax: 0, jobsMax: 1 });
    const made = [1, 2].map(() => worker.make(settlementOf(1), partnerSnapshot(), attempt()));
    const stopped = worker.stop();
    for (const envelope of made) await expect(envelope).rejects.toBeInstanceOf(SealingWorkerDied);
    await expect(worker.make(settlementOf(1), partnerSnapshot(), attempt())).rejects.toThrow(/stopped/);
    await stopped;
    expect(worker.status).toEqual({ jobs: 0, waitingChars: 0, threadId: undefined });
  });

  test("starts the thread, which ends when it was not needed for a while", async () => {
    const worker = sealingWorker({ smallCharsMax: 0, idleMs: 20 });
    expect(worker.status.threadId).toBeUndefined();
    await worker.make(settlementOf(1), partnerSnapshot(), attempt());
    expect(worker.status.threadId).toBeGreaterThan(0);
    await expect.poll(() => worker.status.threadId).toBeUndefined();
    expect(lines).toEqual([]);
    await expect(worker.make(settlementOf(1), partnerSnapshot(), attempt())).resolves.toHaveProperty("body");
  });
});

test("a small envelope is made at once, without a thread", () => {
  const worker = sealingWorker();
  const made = worker.make(JSON.stringify(sale), partnerSnapshot(), attempt());
  expect(made).toHaveProperty("body", expect.any(Buffer));
  expect(worker.status.threadId).toBeUndefined();
});

test("small deliveries are accepted while a settlement of 50,000 entries is being sealed", async () => {
  const authority = await makeAuthority("Partners of a test");
  const peer = await httpsPeer(await authority.issue("localhost"), (_request, response) =>
    response.writeHead(204).end(),
  );
  const log = pino({ level: "silent" });
  const worker = sealingWorker();
  const transport = new Transport({
    clock: systemClock,
    resolve: async () => ["127.0.0.1"],
    sandbox: true,
    extraCas: [authority.cert],
    connectTimeoutMs: 60_000,
  });
  const send = attemptMaker({
    transport,
    seals: { spend: () => undefined },
    makeEnvelope: worker.make,
    clock: systemClock,
    log,
    attemptTimeoutMs: 60_000,
    random: () => 0.5,
  });
  const partner = partnerSnapshot({ callBackUrl: `https://localhost:${peer.port}/ipn` });
  const delivered: string[] = [];
  const deliver = async (name: string, content: string) => {
    const options = { outOfOrder: false, mayWrite: () => true };
    const made = await send(deliveryOf(partner.id, { content, command: "SETTLEMENT" }), partner, options);
    delivered.push(`${name} ${"attempt" in made ? made.attempt.httpStatus : "put off"}`);
  };
  try {
    // The connection and the thread exist: only the sealing remains.
    const settlement = settlementOf(entries);
    await Promise.all([deliver("first", JSON.stringify(sale)), worker.make(settlement, partner, attempt())]);
    let salesAreDue = true;
    // The thread always has another one, however slow or quick this machine is.
    const keepSealing = async () => {
      while (salesAreDue) await worker.make(settlement, partner, attempt());
    };
    const sealing = Array.from({ length: 5 }, keepSealing);
    const settlements = Array.from({ length: 2 }, () => deliver("settlement", settlement));
    for (let nth = 0; nth < 2; nth += 1) {
      await deliver("sale", JSON.stringify(sale));
      expect(worker.status.jobs).toBeGreaterThan(0);
    }
    salesAreDue = false;
    await Promise.all([...sealing, ...settlements]);
  } finally {
    transport.close();
  }
  expect(delivered.toSorted()).toEqual(["first 204", "sale 204", "sale 204", "settlement 204", "settlement 204"]);
});
