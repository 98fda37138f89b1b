import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { claimedOf } from "./claimed.fixture.ts";
import { type Attempted, Dispatcher } from "./dispatcher.ts";
import type { EndpointKey } from "./endpoints-store.ts";
import type { Claimed, Taken } from "./store.ts";

const instance = { id: newId<"instance">(), epoch: 1 };
const url = "https://partner.example/ipn";

interface GivenBack {
  readonly ids: readonly Taken["id"][];
  readonly delayMs: number;
}

interface Released extends EndpointKey {
  readonly delayMs: number;
}

/** What is due, what the database has under the lease, and what became of it. */
let due: Claimed[];
let held: Taken[];
let posted: Claimed[];
let answers: (() => void)[];
let givenBack: GivenBack[];
let released: Released[];
let partners: Map<PartnerId, Partial<Partner>>;
let dispatcher: Dispatcher;

beforeEach(() => {
  vi.useFakeTimers();
  [due, held, posted, answers, givenBack, released] = [[], [], [], [], [], []];
  partners = new Map();
});
afterEach(async () => {
  for (const answer of answers) answer();
  const stopped = dispatcher.stop();
  await vi.advanceTimersByTimeAsync(1_000);
  await stopped;
  vi.useRealTimers();
});

async function start({ slotsMax = 2, bytesInFlightMax = 1_000 } = {}): Promise<void> {
  const directory = { peek: partnerOf, find: async (id: PartnerId) => partnerOf(id) };
  dispatcher = new Dispatcher({
    store: {
      claim: async (_, { rowsMax }) => due.splice(0, rowsMax),
      record: async () => "applied",
      giveBack: async (_, taken, delayMs) => {
        givenBack.push({ ids: taken.map(({ id }) => id), delayMs });
      },
      held: async () => held,
      releaseDead: async () => 0,
      announceDue: async () => {},
    },
    endpoints: {
      troubled: async () => [],
      livingInstances: async () => 1,
      parkOverdue: async () => 0,
      search: () => expect.unreachable(),
      close: () => expect.unreachable(),
      releaseProbe: async (key, delayMs) => {
        released.push({ ...key, delayMs });
      },
    },
    clock: { monotonicMs: () => performance.now() },
    directory: directory as unknown as ConstructorParameters<typeof Dispatcher>[0]["directory"],
    lease: { current: () => instance, remainingMs: () => 8_000 },
    attempt: (claimed) => {
      posted.push(claimed);
      const { promise, resolve } = Promise.withResolvers<Attempted>();
      answers.push(() => resolve(accepted()));
      return promise;
    },
    log: pino({ level: "silent" }),
    slotsMax,
    bytesInFlightMax,
    drainTimeoutMs: 100,
    probeLeaseMs: 20_000,
  });
  dispatcher.start();
  await vi.advanceTimersByTimeAsync(50);
}

function partnerOf(id: PartnerId): Partner {
  const settings = { maxInFlight: 32, maxPerSecond: null, callBackUrl: url, retry: [5] };
  return { id, state: "active", settings, ...partners.get(id) } as unknown as Partner;
}

function accepted(): Attempted {
  const attempt = {
    startedAtMs: 0,
    durationMs: 1,
    url,
    address: null,
    httpStatus: 204,
    reason: null,
    detail: null,
    answer: null,
    keyId: null,
  };
  return { attempt, next: { kind: "accepted" } };
}

async function claim(...rows: Claimed[]): Promise<void> {
  due.push(...rows);
  dispatcher.wake();
  await vi.advanceTimersByTimeAsync(50);
}

function handOver(written: Claimed): void {
  const handoff = dispatcher.reserve(written.partnerId, written.content.length, null) ?? expect.unreachable();
  handoff.send(written);
}

test("a probe that finds no place is due again with its row, for any delivery to that endpoint", async () => {
  await start({ bytesInFlightMax: 4 });
  const large = claimedOf(newId<"partner">(), { content: "{  }" });
  const probe = claimedOf(newId<"partner">(), { callBackUrl: "https://own.example/ipn", isProbe: true });
  await claim(large, probe);
  expect(posted).toEqual([large]);
  expect(givenBack).toEqual([{ ids: [probe.id], delayMs: 250 }]);
  expect(released).toEqual([{ partnerId: probe.partnerId, queue: "https://own.example", delayMs: 250 }]);
});

test("a probe of a partner that is paused by now is passed on", async () => {
  await start();
  const probe = claimedOf(newId<"partner">(), { isProbe: true });
  partners.set(probe.partnerId, { state: "paused" });
  await claim(probe);
  expect(posted).toEqual([]);
  expect(givenBack).toEqual([{ ids: [probe.id], delayMs: 0 }]);
  expect(released).toEqual([{ partnerId: probe.partnerId, queue: "https://partner.example", delayMs: 0 }]);
});

test("what is no probe releases none", async () => {
  await start({ bytesInFlightMax: 4 });
  await claim(claimedOf(newId<"partner">(), { content: "{  }" }), claimedOf(newId<"partner">()));
  expect(givenBack).toHaveLength(1);
  expect(released).toEqual([]);
});

test("a place given back goes to a partner that has a token, behind one that has none", async () => {
  await start();
  const [limited, unlimited] = [claimedOf(newId<"partner">()), claimedOf(newId<"partner">())];
  partners.set(limited.partnerId, { settings: { ...partnerOf(limited.partnerId).settings, maxPerSecond: 1 } });
  await claim(claimedOf(newId<"partner">()), claimedOf(newId<"partner">()));
  handOver(limited);
  handOver(unlimited);
  dispatcher.admission.rates.take(limited.partnerId, 1);
  expect(posted).toHaveLength(2);
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(1);
  expect(posted[2]).toEqual(unlimited);
  expect(givenBack).toEqual([{ ids: [limited.id], delayMs: 0 }]);
});

test("a row whose refused write comes to stand under the lease after it was disowned is made due", async () => {
  await start();
  const { partnerId, id, claimNo } = claimedOf(newId<"partner">());
  const taken = { partnerId, id, claimNo };
  dispatcher.disown(taken);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(givenBack).toEqual([{ ids: [id], delayMs: 0 }]);
  held = [taken];
  await vi.advanceTimersByTimeAsync(10_000);
  expect(givenBack.slice(1)).toContainEqual({ ids: [id], delayMs: 0 });
});
