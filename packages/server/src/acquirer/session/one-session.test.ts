import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../../test/support/ports.ts";
import { systemClock } from "../../clock.ts";
import {
  type AcquirerAnswer,
  type AcquirerHealth,
  NoAnswer,
  NotSent,
  OtherSite,
  type UnmatchedAnswer,
} from "../acquirer.ts";
import { askUnanswered } from "../conformance.ts";
import { profile } from "../iso8583/example-profile.fixture.ts";
import { Iso8583Acquirer } from "../iso8583/iso8583.ts";
import { answerTo, FakeHost } from "../iso8583/link/fake-host.fixture.ts";
import { isoMessage } from "../iso8583/message/codec.fixture.ts";
import { emptyTotals, Till } from "../till.fixture.ts";
import { InstanceRpc, SessionGone } from "./instance-rpc.ts";
import { OneSession, type SessionHolder, type SessionStore } from "./one-session.ts";

const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };
const shift = (bytes: Buffer, by: number) => Buffer.from(bytes.map((byte) => (byte + by) & 0xff));

/** Time passes in small steps, between which everything else gets its turn: a paused machine loses no time. */
beforeEach(() => {
  const toFake = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] as const;
  vi.useFakeTimers({ shouldAdvanceTime: true, toFake: [...toFake] });
});
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  vi.useRealTimers();
});

/** The database shared by the instances: the holder of the session, and their messages. */
class Shared implements SessionStore {
  holder: SessionHolder = { leaseId: null, isUp: false, isSignedOff: false, detail: "" };
  readonly published: string[] = [];
  readonly rpcs: InstanceRpc[] = [];
  isDeaf = false;
  readonly troubles: unknown[] = [];
  /** The database answers a claim after this. */
  answers: Promise<unknown> | undefined;

  async claim(_: string, leaseId: string): Promise<SessionHolder> {
    if (this.answers !== undefined) await this.answers;
    if (this.holder.leaseId === null) this.holder = { leaseId, isUp: false, isSignedOff: false, detail: "" };
    return this.holder;
  }

  async describe(_: string, leaseId: string, { ok, isSignedOff = false, detail }: AcquirerHealth): Promise<void> {
    if (this.holder.leaseId === leaseId) this.holder = { leaseId, isUp: ok, isSignedOff, detail };
  }

  async release(_: string, leaseId: string): Promise<void> {
    if (this.holder.leaseId === leaseId) this.holder = { leaseId: null, isUp: false, isSignedOff: false, detail: "" };
  }

  async publish(text: string): Promise<void> {
    // PostgreSQL's own bound.
    if (text.length > 7_999) throw new Error("payload string too long");
    this.published.push(text);
    if (this.isDeaf) return;
    setImmediate(() => {
      for (const rpc of this.rpcs) rpc.received(text);
    });
  }
}

async function hosted() {
  const host = await FakeHost.listen();
  closing.push(() => host.close());
  const shared = new Shared();
  closing.push(() => expect(shared.troubles).toEqual([]));
  const start = (nth: number, after?: Promise<void>, port = host.port) => {
    let lease: string | undefined = `0000000${nth}-0000-7000-8000-000000000000`;
    const unmatched: UnmatchedAnswer[] = [];
    const rpc = new InstanceRpc({
      publish: (payload) => shared.publish(payload),
      seal: (plain) => shift(plain, 1),
      open: (sealed) => shift(sealed, -1),
      onTrouble: (error) => expect.fail(String(error)),
    });
    shared.rpcs.push(rpc);
    const session = new OneSession({
      name: "first",
      session: "the one session",
      open: () =>
        new Iso8583Acquirer({
          profile,
          hosts: [{ host: "127.0.0.1", port }],
          clock: systemClock,
          connectsLater: true,
          timings: { backOffMs: () => 1 },
        }),
      store: shared,
      rpc,
      lease: () => lease,
      after,
      onTrouble: (error) => void shared.troubles.push(error),
    });
    session.onUnmatchedAnswer((answer) => unmatched.push(answer));
    closing.push(() => session.close());
    const loseLease = () => {
      if (shared.holder.leaseId === lease)
        shared.holder = { leaseId: null, isUp: false, isSignedOff: false, detail: "" };
      lease = undefined;
      session.look();
    };
    const takeLease = (id: string) => {
      lease = id;
      session.look();
    };
    /** It ends while the process stands still. */
    const endLease = () => {
      lease = undefined;
    };
    return { session, rpc, unmatched, loseLease, takeLease, endLease };
  };
  const first = start(1);
  await expect.poll(() => first.session.health().ok).toBe(true);
  return { host, shared, start, first };
}

test("one instance connects; another passes its messages on, and gets the same answers", async () => {
  const { host, shared, start, first } = await hosted();
  const second = start(2);
  const till = new Till();
  expect((await second.session.ask(till.sale("tok_approve"), patient)).responseCode).toBe("00");
  host.answer = (request) => answerTo(request, "51");
  expect((await second.session.ask(till.sale("tok_decline_51"), patient)).responseCode).toBe("51");
  expect((await second.session.ask(till.settlement({ ...emptyTotals, saleQuantity: 3 }), patient)).responseCode).toBe(
    "51",
  );
  expect((await first.session.ask(till.sale("tok_approve"), patient)).responseCode).toBe("51");
  expect(host.sockets.size).toBe(1);
  expect(shared.published.join()).not.toContain(Buffer.from("tok_approve").toString("base64").slice(0, 8));
  await expect
    .poll(() => second.session.health())
    .toMatchObject({
      ok: true,
      detail: expect.stringMatching(/^another instance has the one session: signed on at 127/),
    });
});

test("a message is passed on only to the noted host, which the other instance knows from then on", async () => {
  const { host, shared, start, first } = await hosted();
  const second = start(2);
  const site = `127.0.0.1:${host.port}`;
  expect(first.session.site()).toBe(site);
  const sale = new Till().sale("tok_approve");
  await expect(second.session.ask(sale, { ...patient, site: null })).rejects.toMatchObject({ site });
  expect(host.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
  expect(second.session.site()).toBe(site);
  expect(await second.session.ask(sale, { ...patient, site })).toMatchObject({ responseCode: "00", site });
  shared.holder = { ...shared.holder, leaseId: "00000009-0000-7000-8000-000000000000" };
  await expect.poll(() => second.session.site()).toBeUndefined();
  // Whatever its lease says: the database has another holder.
  await expect.poll(() => host.sockets.size).toBe(0);
});

test("concurrent messages get each its own answer", async () => {
  const { host, start } = await hosted();
  const second = start(2);
  host.answer = (request) => answerTo(request, request.fields.get(11)?.slice(-2) ?? "");
  const till = new Till();
  const sales = Array.from({ length: 60 }, () => till.sale("tok_approve"));
  const answers = await Promise.all(sales.map((sale) => second.session.ask(sale, patient)));
  expect(answers.map(({ responseCode }) => responseCode)).toEqual(sales.map(({ traceNo }) => traceNo.slice(-2)));
});

test("the instance that takes over the session connects, and gets the messages from then on", async () => {
  const { host, start, first } = await hosted();
  const second = start(2);
  const till = new Till();
  await second.session.ask(till.sale("tok_approve"), patient);
  first.loseLease();
  await expect.poll(() => second.session.health().detail).toMatch(/^signed on at/);
  expect((await second.session.ask(till.sale("tok_approve"), patient)).responseCode).toBe("00");
  await expect.poll(() => host.sockets.size).toBe(1);
  expect(first.session.health().ok).toBe(false);
});

test("an instance that stops gives the session to another, and loses no answer that has come", async () => {
  const { host, start, first } = await hosted();
  const second = start(2);
  await first.session.close();
  await expect.poll(() => second.session.health().detail).toMatch(/^signed on at/);
  expect(host.sockets.size).toBe(1);
  await expect(first.session.ask(new Till().sale("tok_approve"), patient)).rejects.toBeInstanceOf(NotSent);
});

test("an answer that is too long for one message of the database is passed on whole", async () => {
  const { start, first } = await hosted();
  const second = start(2);
  const ownTotals = Object.fromEntries(Array.from({ length: 12 }, (_, nth) => [`${nth}`, '"'.repeat(999)]));
  const answer = {
    responseCode: "00",
    approveCode: "",
    refId: "ẽ",
    tc: "",
    ownTotals,
    ownFigures: { saleTotalMinor: 5n },
  };
  const address = "00000009-0000-7000-8000-000000000000";
  first.rpc.serve("long", address, async () => answer);
  const ask = () => second.rpc.ask(address, "long", new Till().settlement(emptyTotals), patient);
  expect(await Promise.all([ask(), ask()])).toEqual([answer, answer]);
});

test("a message that could not be passed on in its time is not wanted any more", async () => {
  const wanted: (() => boolean)[] = [];
  const rpc = new InstanceRpc({
    publish: (_, isWanted = () => expect.fail("it may not be sent late")) => {
      wanted.push(isWanted);
      return Promise.withResolvers<void>().promise;
    },
    seal: (plain) => plain,
    open: (sealed) => sealed,
    onTrouble: (error) => expect.fail(String(error)),
  });
  const address = "00000009-0000-7000-8000-000000000000";
  const asked = rpc.ask(address, "first", new Till().sale("tok_approve"), { ...patient, timeoutMs: 20 });
  asked.catch(() => undefined);
  vi.advanceTimersByTime(19);
  expect(wanted.map((isWanted) => isWanted())).toEqual([true]);
  vi.advanceTimersByTime(1);
  await expect(asked).rejects.toBeInstanceOf(NoAnswer);
  expect(wanted.map((isWanted) => isWanted())).toEqual([false]);
  rpc.close();
});

test("only requests to the lost instance, and for this acquirer, end with it", async () => {
  const same = (bytes: Buffer) => bytes;
  const onTrouble = (error: unknown) => expect.fail(String(error));
  const rpc = new InstanceRpc({ publish: async () => undefined, seal: same, open: same, onTrouble });
  const addresses = ["00000008-0000-7000-8000-000000000000", "00000009-0000-7000-8000-000000000000"] as const;
  const ended: string[] = [];
  for (const to of addresses) {
    for (const acquirer of ["first", "second"]) {
      rpc.ask(to, acquirer, new Till().sale("tok_approve"), patient).catch(() => ended.push(`${to} ${acquirer}`));
    }
  }
  rpc.instanceLost(addresses[0], "second");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(ended).toEqual([`${addresses[0]} second`]);
  rpc.close();
  await expect.poll(() => ended).toHaveLength(4);
});

test("the wait for a session is a part of the time that a message has", async () => {
  const shared = new Shared();
  const holder = "00000009-0000-7000-8000-000000000000";
  shared.claim = async () => shared.holder;
  const left = Promise.withResolvers<number>();
  const session = new OneSession({
    name: "first",
    session: "the one session",
    open: () => new Iso8583Acquirer({ profile, hosts: [], clock: systemClock, connectsLater: true }),
    store: shared,
    rpc: {
      ask: async (_to, _name, _message, { timeoutMs }) => {
        left.resolve(timeoutMs);
        throw new NoAnswer("none");
      },
      serve: () => () => undefined,
      instanceLost: () => undefined,
    },
    lease: () => "00000001-0000-7000-8000-000000000000",
    onTrouble: (error) => expect.fail(String(error)),
  });
  closing.push(() => session.close());
  const answer = session.ask(new Till().sale("tok_approve"), patient);
  await vi.advanceTimersByTimeAsync(100);
  shared.holder = { leaseId: holder, isUp: true, isSignedOff: false, detail: "" };
  await expect(answer).rejects.toBeInstanceOf(NoAnswer);
  expect(await left.promise).toBeLessThanOrEqual(patient.timeoutMs - 100);
});

/** The second instance has the session and no way to the host; the third waits. */
async function cutOffAndThird() {
  const { host, shared, start, first } = await hosted();
  const port = await freePort();
  await first.session.close();
  const cutOff = start(2, undefined, port);
  await expect.poll(() => cutOff.session.health().detail).toContain("ECONNREFUSED");
  return { host, shared, cutOff, third: start(3) };
}

test("an instance that cannot reach the host for a minute leaves the session to another, and passes its messages on", async () => {
  const { host, cutOff, third } = await cutOffAndThird();
  await expect.poll(() => third.session.health().detail).toContain("another instance has the one session");
  await vi.advanceTimersByTimeAsync(60_000);
  await expect.poll(() => third.session.health().detail).toContain("signed on at");
  await expect.poll(() => cutOff.session.health().ok).toBe(true);
  expect((await cutOff.session.ask(new Till().sale("tok_approve"), patient)).responseCode).toBe("00");
  expect(host.sockets.size).toBe(1);
});

test.each([
  ["reaches the host", { ok: true }],
  ["reaches a host that has signed off", { ok: false, isSignedOff: true }],
])("an instance that was relieved by one that %s leaves the session after a minute again", async (_, health) => {
  const { shared, cutOff, third } = await cutOffAndThird();
  const { describe } = Shared.prototype;
  vi.spyOn(shared, "describe").mockImplementation((acquirer, leaseId, { detail }) => {
    const isOfThird = leaseId.startsWith("00000003");
    return describe.call(shared, acquirer, leaseId, isOfThird ? { ...health, detail } : { ok: false, detail });
  });
  await vi.advanceTimersByTimeAsync(62_000);
  await expect.poll(() => cutOff.session.health().detail).toContain("signed on at");
  await third.session.close();
  await expect.poll(() => cutOff.session.health().detail).toContain("ECONNREFUSED");
  const release = vi.spyOn(shared, "release");
  await vi.advanceTimersByTimeAsync(62_000);
  expect(release).toHaveBeenCalledTimes(1);
});

test("an instance that nobody relieves takes the session again, and keeps it for longer each time", async () => {
  const { start, first, shared } = await hosted();
  const port = await freePort();
  await first.session.close();
  const release = vi.spyOn(shared, "release");
  const cutOff = start(2, undefined, port);
  await expect.poll(() => cutOff.session.health().detail).toContain("ECONNREFUSED");
  await vi.advanceTimersByTimeAsync(600_000);
  // After one, two and four minutes; the next would be eight.
  expect(release).toHaveBeenCalledTimes(3);
  expect(shared.holder.leaseId).not.toBeNull();
});

test.each(["", ", also at the moment at which it would leave it"])(
  "an instance that stops gives the session up only when its link is closed: the host allows no second one%s",
  async (leaving) => {
    const { shared, first, host } = await hosted();
    const closes = vi.spyOn(Iso8583Acquirer.prototype, "close");
    onTestFinished(() => closes.mockRestore());
    let atRelease: unknown;
    vi.spyOn(shared, "release").mockImplementation(async () => {
      atRelease = closes.mock.settledResults.map(({ type }) => type);
    });
    if (leaving !== "") {
      await host.close();
      await expect.poll(() => first.session.health().ok).toBe(false);
      const closing = Promise.withResolvers<void>();
      vi.spyOn(shared, "claim").mockImplementation(async () => {
        closing.resolve(first.session.close());
        return shared.holder;
      });
      const laterMs = performance.now() + 60_000;
      const clock = vi.spyOn(systemClock, "monotonicMs").mockReturnValue(laterMs);
      onTestFinished(() => clock.mockRestore());
      first.session.look();
      await closing.promise;
    }
    await first.session.close();
    expect(atRelease).toEqual(["fulfilled"]);
  },
);

test("an instance that stops waits for answers that it owes, and later messages for the next holder", async () => {
  const { host, start, first } = await hosted();
  const second = start(2);
  const { promise, resolve } = Promise.withResolvers<Parameters<FakeHost["answer"]>[0]>();
  host.answer = (request) => {
    resolve(request);
    return undefined;
  };
  const asked = second.session.ask(new Till().sale("tok_approve"), patient);
  asked.catch(() => undefined);
  const request = await promise;
  const closed = first.session.close();
  host.answer = (later) => answerTo(later, "51");
  // It comes when the session has been given up, and no other instance may take it yet.
  const meanwhile = second.session.ask(new Till().sale("tok_approve"), patient);
  meanwhile.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(30_000);
  host.send(answerTo(request, "00"));
  await closed;
  expect((await asked).responseCode).toBe("00");
  expect((await meanwhile).responseCode).toBe("51");
});

test("an instance that stops waits for no answer once its lease has ended: it is another instance's", async () => {
  const { host, start, first } = await hosted();
  const second = start(2);
  host.answer = () => undefined;
  const asked = second.session.ask(new Till().sale("tok_approve"), patient);
  await host.hears("0200");
  const ended = Promise.allSettled([asked]);
  const closed = first.session.close();
  first.loseLease();
  await closed;
  expect(await ended).toMatchObject([{ reason: { name: "NoAnswer" } }]);
});

test("an instance that gets the session again connects once its link before is closed, and hears strays", async () => {
  const { host, first } = await hosted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const order: string[] = [];
  const { close, connect } = Iso8583Acquirer.prototype;
  const spies = [
    vi.spyOn(Iso8583Acquirer.prototype, "close").mockImplementationOnce(async function closes(this: Iso8583Acquirer) {
      await promise;
      await close.call(this);
      order.push("closed");
    }),
    vi.spyOn(Iso8583Acquirer.prototype, "connect").mockImplementation(function connects(this: Iso8583Acquirer) {
      order.push("connects");
      connect.call(this);
    }),
  ];
  onTestFinished(() => spies.forEach((spy) => void spy.mockRestore()));
  first.loseLease();
  first.takeLease("00000004-0000-7000-8000-000000000000");
  await vi.advanceTimersByTimeAsync(2_000);
  resolve();
  await expect.poll(() => first.session.health().ok).toBe(true);
  expect(order).toEqual(["closed", "connects"]);
  host.send(isoMessage("0210", { 3: "000000", 11: "000777", 39: "00", 41: "T0000001" }));
  await expect.poll(() => first.unmatched).toMatchObject([{ traceNo: "000777" }]);
});

test("the state of a link that could not be stored for the others is stored at the next look", async () => {
  const { host, shared, first } = await hosted();
  await expect.poll(() => shared.holder.isUp).toBe(true);
  const away = new Error("the database is away");
  vi.spyOn(shared, "describe").mockRejectedValueOnce(away);
  host.signOnCode = "91";
  host.breakConnections();
  await expect.poll(() => shared.troubles.splice(0)).toEqual([away]);
  expect(first.session.health().ok).toBe(false);
  await expect.poll(() => shared.holder.isUp).toBe(false);
});

test("another instance waits for a link that was just lost, and tells a host that signed off from one out of reach", async () => {
  const { host, start } = await hosted();
  const second = start(2);
  await expect.poll(() => second.session.away()).toBeUndefined();
  host.signOnCode = "91";
  host.breakConnections();
  await expect.poll(() => second.session.health().ok).toBe(false);
  const waiting = second.session.away();
  host.signOnCode = "00";
  expect(await waiting).toBeUndefined();
  const code = async () => (await second.session.away())?.code;
  host.send(isoMessage("0800", { 7: "0131093001", 11: "000777", 70: "002" }));
  await expect.poll(code).toBe("acquirer_signed_off");
  host.signOnCode = "91";
  host.breakConnections();
  await vi.advanceTimersByTimeAsync(3_000);
  await expect.poll(code).toBe("acquirer_unreachable");
});

test("a link in another's place claims the session once that one has ended", async () => {
  const { shared, start, first } = await hosted();
  first.loseLease();
  const { promise, resolve } = Promise.withResolvers<void>();
  const second = start(2, promise);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(shared.holder.leaseId).toBeNull();
  resolve();
  await expect.poll(() => second.session.health().ok).toBe(true);
});

test("a claim that is answered when the lease has ended takes no session", async () => {
  const { shared, start, first } = await hosted();
  first.loseLease();
  const { promise, resolve } = Promise.withResolvers<void>();
  shared.answers = promise;
  const connects = vi.spyOn(Iso8583Acquirer.prototype, "connect");
  onTestFinished(() => connects.mockRestore());
  const second = start(2);
  second.loseLease();
  resolve();
  await expect.poll(() => shared.holder.leaseId).toMatch(/^00000002/);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(connects).not.toHaveBeenCalled();
});

test("an instance whose lease ends leaves the host, even while the database does not answer it", async () => {
  const { host, shared, first } = await hosted();
  const { promise, resolve } = Promise.withResolvers<void>();
  shared.answers = promise;
  first.session.look();
  first.loseLease();
  try {
    await expect.poll(() => host.sockets.size).toBe(0);
  } finally {
    resolve();
  }
});

test("without a session nothing is sent; a message that may have reached the other instance is in doubt", async () => {
  const { shared, start, first } = await hosted();
  const second = start(2);
  const till = new Till();
  await second.session.ask(till.sale("tok_approve"), patient);
  shared.isDeaf = true;
  const hurried = { ...patient, timeoutMs: 30 };
  expect(await askUnanswered(second.session, till.sale("tok_approve"), patient)).toBeInstanceOf(NoAnswer);
  shared.isDeaf = false;
  first.rpc.close();
  await expect(second.session.ask(till.sale("tok_approve"), hurried)).rejects.toBeInstanceOf(NotSent);
  const third = start(3);
  third.loseLease();
  first.loseLease();
  second.loseLease();
  await expect(third.session.ask(till.sale("tok_approve"), hurried)).rejects.toBeInstanceOf(NotSent);
});

test("an instance whose lease ended while it stood still sends no message that waited: it may be reversed by now", async () => {
  const { host, shared, start, first } = await hosted();
  const second = start(2);
  const holder = shared.holder.leaseId ?? expect.fail("the first holds it");
  first.endLease();
  const asked = second.rpc.ask(holder, "first", new Till().sale("tok_approve"), patient);
  await expect(asked).rejects.toBeInstanceOf(SessionGone);
  expect(host.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
});

test("a message whose time was over before it knew who has the session is not passed on", async () => {
  const { host, shared, start } = await hosted();
  const { promise, resolve } = Promise.withResolvers<void>();
  shared.answers = promise;
  const second = start(2);
  const { monotonicMs } = systemClock;
  const now = vi.spyOn(systemClock, "monotonicMs");
  onTestFinished(() => now.mockRestore());
  const asked = second.session.ask(new Till().sale("tok_approve"), patient);
  // The process stands still.
  now.mockImplementation(() => monotonicMs() + patient.timeoutMs);
  resolve();
  await expect(asked).rejects.toBeInstanceOf(NotSent);
  expect(shared.published).toEqual([]);
  expect(host.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
});

test("a request to an instance that died ends once another has the session", async () => {
  const { shared, start, first } = await hosted();
  const second = start(2);
  const till = new Till();
  await second.session.ask(till.sale("tok_approve"), patient);
  shared.isDeaf = true;
  const asked = second.session.ask(till.sale("tok_approve"), { ...patient, timeoutMs: 100_000 });
  await expect.poll(() => shared.published).toHaveLength(3);
  shared.isDeaf = false;
  first.loseLease();
  await expect(asked).rejects.toBeInstanceOf(NoAnswer);
  expect((await second.session.ask(till.sale("tok_approve"), patient)).responseCode).toBe("00");
});

test("a late answer is reported by the instance with the session, because the asking one may be gone", async () => {
  const { host, shared, start, first } = await hosted();
  const second = start(2);
  const requests: Parameters<FakeHost["answer"]>[0][] = [];
  host.answer = (request) => void requests.push(request);
  const till = new Till();
  const sale = till.sale("tok_approve");
  const settlement = till.settlement(emptyTotals);
  const onLateAnswer = () => expect.fail("it was reported once");
  // A Reversal is repeated: its late answer is nobody's approval.
  const asked = [till.reversal(sale), sale, settlement].map((message) =>
    second.session.ask(message, { timeoutMs: 60_000, onLateAnswer }),
  );
  const ended = Promise.allSettled(asked);
  await expect.poll(() => requests).toHaveLength(3);
  vi.advanceTimersByTime(60_000);
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  // The one with the session has given up, too, and said so.
  await expect.poll(() => shared.published).toHaveLength(6);
  for (const request of requests) host.send(answerTo(request, "00"));
  await expect.poll(() => first.unmatched).toHaveLength(2);
  const [late, settled] = first.unmatched.toSorted((a, b) => Number(a.isSettlement) - Number(b.isSettlement));
  expect(settled?.mayAnswer(settlement)).toBe(true);
  const { tid, mid, traceNo } = sale;
  expect(late).toMatchObject({
    tid,
    responseCode: "00",
    isSettlement: false,
    known: { command: "SALE", tid, mid, traceNo },
  });
  expect(late?.mayAnswer(sale)).toBe(true);
  for (const other of [
    { command: "PREAUTH" },
    { tid: "T2" },
    { mid: "M2" },
    { traceNo: "000999" },
    { atMs: 0 },
  ] as const) {
    expect(late?.mayAnswer({ ...sale, ...other }), Object.keys(other).join()).toBe(false);
  }
});

const elsewhere = "00000009-0000-7000-8000-000000000000";

test("what came of a message at the other instance is told as it was there", async () => {
  const { start, first } = await hosted();
  const second = start(2);
  const sale = new Till().sale("tok_approve");
  for (const error of [new NoAnswer("none"), new NotSent("it was full"), new OtherSite("127.0.0.1:1")]) {
    first.rpc.serve("failing", elsewhere, () => Promise.reject(error));
    const { name, message } = error;
    const asked = second.rpc.ask(elsewhere, "failing", sale, patient);
    await expect(asked).rejects.toThrow(expect.objectContaining({ name, message }));
  }
  const long = second.rpc.ask(elsewhere, "failing", { ...sale, emv: "9F".repeat(4_000) }, patient);
  await expect(long).rejects.toBeInstanceOf(NotSent);
});

test("a message whose sending failed may have arrived all the same: a late answer is handed over, once", async () => {
  const same = (bytes: Buffer) => bytes;
  const sent: string[] = [];
  const publish = (payload: string) => {
    sent.push(payload);
    return Promise.reject(new Error("the connection broke"));
  };
  const rpc = new InstanceRpc({ publish, seal: same, open: same, onTrouble: () => undefined });
  const late: AcquirerAnswer[] = [];
  const onLateAnswer = (answer: AcquirerAnswer) => void late.push(answer);
  const asked = rpc.ask(elsewhere, "first", new Till().sale("tok_approve"), { ...patient, onLateAnswer });
  await expect(asked).rejects.toBeInstanceOf(NoAnswer);
  const [, sealed = ""] = sent[0]?.split(" ") ?? [];
  const { id, from } = JSON.parse(Buffer.from(sealed, "base64").toString()) as { id: string; from: string };
  const answer = { responseCode: "00", approveCode: "A1B2C3", refId: "1", tc: "" };
  const reply = Buffer.from(JSON.stringify({ kind: "reply", id, answer })).toString("base64");
  for (let times = 0; times < 2; times += 1) rpc.received(`${from} ${reply}`);
  expect(late).toEqual([answer]);
  rpc.close();
});
