import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../../ids.ts";
import { acceptedAttempt, failedAttempt } from "../delivery.fixture.ts";
import type { Attempt, FailureReason } from "../delivery.ts";
import {
  afterSignal,
  type Circuit,
  circuitLimits,
  closedCircuit,
  type EndpointSignal,
  effectOf,
  probeWaitMs,
} from "./circuit.ts";
import { type CircuitChange, Circuits, circuitsPerPartnerMax, originCircuit, urlCircuit } from "./circuits.ts";

const { failuresToTrip, probeStepMaxMs, probeStepMs } = circuitLimits;

const middle = 0.5;
const fails: EndpointSignal = { effect: "fails", reason: "timeout", retryAfterMs: null, isProbe: false };
const lives: EndpointSignal = { effect: "lives", reason: null, retryAfterMs: null, isProbe: false };
const goneSignal: EndpointSignal = { effect: "gone", reason: "gone", retryAfterMs: null, isProbe: false };

function circuitAfter(signals: readonly EndpointSignal[], from: Circuit = closedCircuit): Circuit {
  return signals.reduce((circuit, signal) => afterSignal(circuit, signal, middle), from);
}

const open = circuitAfter(Array.from({ length: failuresToTrip }, () => fails));

describe("an attempt", () => {
  test.each<[FailureReason | null, number | null, ReturnType<typeof effectOf>]>([
    [null, 204, "lives"],
    ["connect", null, "fails"],
    ["connect_timeout", null, "fails"],
    ["dns", null, "fails"],
    ["tls", null, "fails"],
    ["timeout", null, "fails"],
    ["reset", null, "fails"],
    ["bad_response", null, "fails"],
    ["rate_limited", 429, "fails"],
    ["status", 500, "fails"],
    ["status", 503, "fails"],
    ["status", 400, "lives"],
    ["status", 401, "lives"],
    ["status", 404, "lives"],
    ["too_large", 413, "lives"],
    ["redirect", 302, "lives"],
    ["gone", 410, "gone"],
    ["address_refused", null, "fails"],
    ["no_callback_url", null, "nothing"],
    ["key_exhausted", null, "nothing"],
    ["content_changed", null, "nothing"],
    ["internal", null, "nothing"],
  ])("that ends with %s (status %s) tells of the endpoint: %s, %s", (reason, httpStatus, effect) => {
    expect(effectOf({ reason, httpStatus })).toBe(effect);
  });
});

describe("the circuit breaker", () => {
  test("trips with the fifth failure in a row, and is probed after 5 s", () => {
    expect(circuitAfter(Array.from({ length: failuresToTrip - 1 }, () => fails))).toMatchObject({
      state: "closed",
      failures: 4,
    });
    expect(open).toEqual({ state: "open", failures: 5, probes: 0, probeInMs: probeStepMs, lastReason: "timeout" });
  });

  test("resets its count with every response", () => {
    expect(circuitAfter([fails, fails, fails, fails, lives, fails, fails, fails, fails])).toMatchObject({
      state: "closed",
      failures: 4,
    });
  });

  test("is closed by any response, of a probe or of an attempt in flight", () => {
    for (const isProbe of [true, false]) {
      expect(circuitAfter([{ ...lives, isProbe }], open)).toMatchObject({
        state: "closed",
        failures: 0,
        probeInMs: null,
      });
    }
  });

  test.each([
    [1, 10_000],
    [2, 20_000],
    [3, 40_000],
    [5, 160_000],
    [6, 300_000],
    [60, 300_000],
  ])("waits, after probe %i failed, for %i ms", (probes, waitMs) => {
    const before = { ...open, probes: probes - 1, probeInMs: 0 };
    expect(circuitAfter([{ ...fails, isProbe: true }], before)).toMatchObject({ probes, probeInMs: waitMs });
  });

  test("is not changed by failures of attempts that were in flight when it tripped", () => {
    expect(circuitAfter([fails, fails, fails], open).probeInMs).toBe(open.probeInMs);
  });

  test("waits for Retry-After if that is longer, up to an hour", () => {
    const asks = (retryAfterMs: number) => ({ ...fails, reason: "rate_limited" as const, retryAfterMs });
    const fifth = circuitAfter([fails, fails, fails, fails]);
    expect(circuitAfter([asks(60_000)], fifth).probeInMs).toBe(60_000);
    expect(circuitAfter([asks(1_000)], fifth).probeInMs).toBe(probeStepMs);
    expect(circuitAfter([asks(86_400_000)], fifth).probeInMs).toBe(3_600_000);
    expect(circuitAfter([asks(60_000)], open).probeInMs).toBe(60_000);
  });

  test("of a URL that is gone is not changed by any attempt", () => {
    const left = circuitAfter([goneSignal]);
    expect(left).toMatchObject({ state: "gone", lastReason: "gone", probeInMs: null });
    expect(circuitAfter([lives, fails, goneSignal], left)).toEqual(left);
  });

  const signal = fc.record({
    effect: fc.constantFrom("lives" as const, "fails" as const),
    reason: fc.constant("timeout" as const),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 10_000_000 })),
    isProbe: fc.boolean(),
  });

  test("is open after exactly those sequences that end in five failures or more", () => {
    fc.assert(
      fc.property(fc.array(signal, { maxLength: 60 }), (signals) => {
        const lastAnswer = signals.findLastIndex(({ effect }) => effect === "lives");
        const failures = signals.length - lastAnswer - 1;
        const circuit = circuitAfter(signals);
        expect(circuit.failures).toBe(failures);
        expect(circuit.state).toBe(failures >= failuresToTrip ? "open" : "closed");
        expect(circuit.probeInMs === null).toBe(circuit.state === "closed");
      }),
    );
  });

  test("is probed within 5 min + 15 % unless the endpoint asked for a longer wait", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1_000_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (probes, random) => {
          const waitMs = probeWaitMs(probes, random);
          expect(waitMs).toBeGreaterThanOrEqual(probeStepMs * 0.85 - 1e-6);
          expect(waitMs).toBeLessThanOrEqual(probeStepMaxMs * 1.15);
        },
      ),
    );
  });
});

const partnerId = newId<"partner">();
const other = newId<"partner">();
const url = "https://partner.example/ipn";
const otherUrl = "https://partner.example/second";
const origin = originCircuit(url);
const probe = { partnerId, id: newId<"notification">() };
const gone: Attempt = { ...failedAttempt, httpStatus: 410, reason: "gone" };
const told: Attempt = { ...failedAttempt, httpStatus: null, reason: "internal" };
const tripped: Circuit = { state: "open", failures: 5, probes: 0, probeInMs: probeStepMs, lastReason: "status" };

function circuitsOf() {
  const clock = { ms: 1_000 };
  // Without jitter: 0.5 is the middle of the range.
  const circuits = new Circuits(
    () => 0.5,
    () => clock.ms,
  );
  const observe = (attempt: Attempt, more: { isProbe?: boolean; isRegistered?: boolean; retryAfterMs?: number } = {}) =>
    circuits.observe({ partnerId, attempt, retryAfterMs: null, isProbe: false, isRegistered: true, epoch: 3, ...more });
  const trip = (): readonly CircuitChange[] =>
    Array.from({ length: failuresToTrip }, () => observe(failedAttempt)).flat();
  const urls = (callBackUrl: string | null) => ({ callBackUrl, callBackUrlByCommand: {} });
  const gate = (registered: string | null = url) =>
    circuits.gateOf({ partnerId, command: "SALE", callBackUrl: null }, urls(registered));
  const gateOfOrigin = (name: string) => circuits.gateOfQueue({ partnerId, queue: name }, urls(null));
  return { circuits, clock, observe, trip, gate, gateOfOrigin };
}

const shut = { untilMs: 1_000 + probeStepMs, reason: "status" };

describe("the gate of an endpoint", () => {
  test("is open if nothing is known", () => {
    const { gate, gateOfOrigin } = circuitsOf();
    expect([gate(), gate(null), gateOfOrigin(origin)]).toEqual(["passes", "passes", "passes"]);
  });

  test("is shut, until the probe, for every URL of a tripped origin", () => {
    const { trip, gate, gateOfOrigin } = circuitsOf();
    trip();
    expect([gate(), gate(otherUrl), gateOfOrigin(origin)]).toEqual([shut, shut, shut]);
  });

  test("stays open for other origins, other partners, and if no URL is registered or it is invalid", () => {
    const { circuits, trip, gate, gateOfOrigin } = circuitsOf();
    trip();
    expect(gateOfOrigin("https://elsewhere.example")).toBe("passes");
    expect(gate("https://elsewhere.example/ipn")).toBe("passes");
    expect(gate(null)).toBe("passes");
    expect(gate("no URL")).toBe("passes");
    expect(circuits.gateOfQueue({ partnerId: other, queue: origin }, undefined)).toBe("passes");
    expect(circuits.gateOfQueue({ partnerId, queue: "" }, undefined)).toBe("passes");
  });

  test("is shut indefinitely for a registered URL that answered 410, and open for its neighbours", () => {
    const { observe, gate, gateOfOrigin } = circuitsOf();
    observe(gone);
    expect(gate()).toEqual({ untilMs: undefined, reason: "gone" });
    expect([gate(otherUrl), gateOfOrigin(origin)]).toEqual(["passes", "passes"]);
  });

  test("stays open for a command's own URL that answered 410: its origin counts as responding", () => {
    const { observe, gate } = circuitsOf();
    observe(failedAttempt);
    const changes = observe(gone, { isRegistered: false });
    expect(changes).toMatchObject([{ kind: "origin", target: origin, circuit: { state: "closed", failures: 0 } }]);
    expect(gate()).toBe("passes");
  });
});

describe("a tripped circuit is probed", () => {
  test("once at a time, when it is due", () => {
    const { circuits, clock, observe, trip, gate, gateOfOrigin } = circuitsOf();
    trip();
    clock.ms += probeStepMs - 1;
    expect(gate()).toEqual(shut);
    clock.ms += 1;
    expect(gate()).toBe("probe");
    circuits.probeBegins(url, probe);
    expect([gate(), gateOfOrigin(origin)]).toEqual(Array(2).fill({ untilMs: undefined, reason: "status" }));
    // It goes on while another fails, whose outcome cannot be stored, and while a person has it probed.
    circuits.withdraw(observe(failedAttempt));
    expect(gate()).toEqual({ untilMs: undefined, reason: "status" });
    circuits.load([{ partnerId, queue: origin, circuit: { ...tripped, probeInMs: 0 }, controlNo: 1 }]);
    expect(gate()).toEqual({ untilMs: undefined, reason: "status" });
    // An attempt of the same notification that an earlier ownership began.
    circuits.probeEnded({ ...probe });
    expect(gate()).not.toBe("probe");
    circuits.probeEnded(probe);
    expect(gate()).toBe("probe");
  });

  test("later after a failed probe, and no more after one with a response", () => {
    const { clock, observe, trip, gate } = circuitsOf();
    trip();
    clock.ms += probeStepMs;
    observe(failedAttempt, { isProbe: true });
    expect(gate()).toEqual({ untilMs: clock.ms + 2 * probeStepMs, reason: "status" });
    clock.ms += 2 * probeStepMs;
    const [change] = observe(acceptedAttempt, { isProbe: true });
    expect(change).toMatchObject({ circuit: { state: "closed" }, event: { kind: "breaker_closed" } });
    expect(gate()).toBe("passes");
  });

  test("after another wait if the attempt said nothing about it, and nothing is written", () => {
    const { circuits, clock, observe, trip, gate } = circuitsOf();
    trip();
    clock.ms += probeStepMs;
    circuits.probeBegins(url, probe);
    circuits.probeEnded(probe);
    expect(observe(told, { isProbe: true })).toEqual([]);
    expect(gate()).toEqual({ untilMs: clock.ms + probeStepMs, reason: "status" });
    clock.ms += probeStepMs;
    expect(gate()).toBe("probe");
    // Another one closed it meanwhile.
    observe(acceptedAttempt);
    expect([observe(told, { isProbe: true }), gate()]).toEqual([[], "passes"]);
  });

  test("on time, although attempts in flight when it tripped said nothing, or failed as well", () => {
    const { clock, observe, trip, gate } = circuitsOf();
    trip();
    clock.ms += 1_000;
    observe(told);
    observe(failedAttempt);
    expect(gate()).toEqual(shut);
  });
});

describe("the change by an attempt", () => {
  test("is nothing if an endpoint that has not failed responds", () => {
    const { observe } = circuitsOf();
    expect(observe(acceptedAttempt)).toEqual([]);
    observe(gone);
    expect(observe({ ...acceptedAttempt, url: "https://elsewhere.example/ipn" })).toEqual([]);
  });

  test("is numbered in order, under the epoch of the shard", () => {
    const { trip } = circuitsOf();
    const changes = trip();
    expect(changes.map(({ changeNo }) => changeNo)).toEqual([1, 2, 3, 4, 5]);
    expect(changes.map(({ circuit }) => circuit.failures)).toEqual([1, 2, 3, 4, 5]);
    expect(changes.map(({ circuit }) => circuit.probeInMs)).toEqual([null, null, null, null, probeStepMs]);
    expect(changes.every(({ epoch, queue, kind }) => epoch === 3 && queue === origin && kind === "origin")).toBe(true);
  });

  test("has an event only if the state changes", () => {
    const { trip } = circuitsOf();
    const events = trip().map(({ event }) => event?.kind);
    expect(events).toEqual([undefined, undefined, undefined, undefined, "breaker_open"]);
  });

  test("with a 410 is the URL only, once; its origin counts as responding", () => {
    const { observe } = circuitsOf();
    observe(failedAttempt);
    const [ofOrigin, ofUrl, ...others] = observe(gone);
    expect(others).toEqual([]);
    expect(ofOrigin).toMatchObject({ kind: "origin", target: origin, circuit: { state: "closed", failures: 0 } });
    expect(ofUrl).toMatchObject({ kind: "url", target: url, queue: urlCircuit(url), circuit: { state: "gone" } });
    expect(ofUrl?.event?.kind).toBe("endpoint_gone");
    expect(observe(gone)).toEqual([]);
  });
});

describe("a change that could not be stored", () => {
  test("is undone, unless another followed it", () => {
    const { circuits, observe, trip, gate, gateOfOrigin } = circuitsOf();
    circuits.withdraw(observe(gone));
    expect(gate()).toBe("passes");
    const changes = trip();
    circuits.withdraw(changes.slice(0, -1));
    expect(gateOfOrigin(origin)).toEqual(shut);
    circuits.withdraw(changes.slice(-1));
    expect(gateOfOrigin(origin)).toBe("passes");
  });

  test("is undone after a success too, and the endpoint is probed again, at its time", () => {
    const { circuits, clock, observe, trip, gateOfOrigin } = circuitsOf();
    trip();
    clock.ms += 1_000;
    circuits.withdraw(observe(acceptedAttempt));
    expect(gateOfOrigin(origin)).toEqual(shut);
    clock.ms += probeStepMs - 1_000;
    const closed = observe(acceptedAttempt, { isProbe: true });
    expect(gateOfOrigin(origin)).toBe("passes");
    circuits.withdraw(closed);
    expect(gateOfOrigin(origin)).toBe("probe");
  });

  test("leaves the next probe at its time after one that failed", () => {
    const { circuits, clock, observe, trip, gateOfOrigin } = circuitsOf();
    trip();
    clock.ms += probeStepMs;
    const failed = observe(failedAttempt, { isProbe: true });
    clock.ms += 1_000;
    circuits.withdraw(failed);
    expect(gateOfOrigin(origin)).toEqual({ untilMs: 1_000 + 3 * probeStepMs, reason: "status" });
    clock.ms += 2 * probeStepMs;
    expect(gateOfOrigin(origin)).toBe("probe");
  });
});

describe("a loaded circuit", () => {
  const loaded = (circuit: Circuit, controlNo = 0) => [{ partnerId, queue: origin, circuit, controlNo }];

  test("is used if nothing is known yet, and its probe counts from then", () => {
    const { circuits, gate } = circuitsOf();
    expect(circuits.load(loaded(tripped))).toEqual([{ partnerId, queue: origin }]);
    expect(gate()).toEqual(shut);
  });

  test("is ignored if the owner knows a newer one, unless a person changed it since", () => {
    const { circuits, trip, gate } = circuitsOf();
    trip();
    expect(circuits.load(loaded(closedCircuit))).toEqual([]);
    expect(gate()).toEqual(shut);
    expect(circuits.load(loaded(closedCircuit, 1))).toEqual([{ partnerId, queue: origin }]);
    expect(gate()).toBe("passes");
    expect(circuits.load(loaded(tripped, 1))).toEqual([]);
    expect(gate()).toBe("passes");
  });

  test("is changed under the version that the person left", () => {
    const { circuits, observe } = circuitsOf();
    expect(observe(failedAttempt)[0]?.controlNo).toBe(0);
    circuits.load(loaded(closedCircuit, 7));
    expect(observe(failedAttempt)[0]).toMatchObject({ controlNo: 7, circuit: { failures: 1 } });
  });

  test("applies again after the shard was owned by another worker", () => {
    const { circuits, trip, gate } = circuitsOf();
    trip();
    circuits.forget((id) => id === other);
    expect(gate()).toEqual(shut);
    circuits.forget((id) => id === partnerId);
    expect(gate()).toBe("passes");
    circuits.load(loaded(tripped));
    expect(gate()).toEqual(shut);
  });
});

describe("the memory", () => {
  test("has no entry for an endpoint that has recovered, unless a person has changed its circuit", () => {
    const { circuits, observe, trip } = circuitsOf();
    trip();
    observe(failedAttempt);
    expect(circuits.countOf(partnerId)).toBe(1);
    observe({ ...acceptedAttempt, url });
    expect(circuits.countOf(partnerId)).toBe(0);
    circuits.load([{ partnerId, queue: origin, circuit: closedCircuit, controlNo: 2 }]);
    expect(observe(failedAttempt)).toMatchObject([{ controlNo: 2 }]);
    observe({ ...acceptedAttempt, url });
    expect(observe(failedAttempt)).toMatchObject([{ controlNo: 2 }]);
  });

  test("is bounded per partner, however many of its URLs are gone, and keeps those that changed last", () => {
    const { circuits, observe, gate } = circuitsOf();
    const urls = Array.from({ length: circuitsPerPartnerMax + 50 }, (_, order) => `${url}/${order}`);
    for (const one of urls) observe({ ...gone, url: one });
    expect(circuits.countOf(partnerId)).toBe(circuitsPerPartnerMax);
    expect(gate(urls.at(-1))).toMatchObject({ reason: "gone" });
    expect(gate(urls[0])).toBe("passes");
    expect(observe({ ...gone, url: urls[0] ?? "" })).toMatchObject([{ queue: urlCircuit(urls[0] ?? "") }]);
  });
});
