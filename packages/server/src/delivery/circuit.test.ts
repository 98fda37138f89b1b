import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  afterSignal,
  type Circuit,
  closedCircuit,
  type EndpointSignal,
  effectOf,
  failuresToTrip,
  probeStepMaxMs,
  probeStepMs,
  probeWaitMs,
} from "./circuit.ts";
import type { FailureReason } from "./store.ts";

const middle = 0.5;
const fails: EndpointSignal = { effect: "fails", reason: "timeout", retryAfterMs: null, isProbe: false };
const lives: EndpointSignal = { effect: "lives", reason: null, retryAfterMs: null, isProbe: false };
const gone: EndpointSignal = { effect: "gone", reason: "gone", retryAfterMs: null, isProbe: false };

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
    const left = circuitAfter([gone]);
    expect(left).toMatchObject({ state: "gone", lastReason: "gone", probeInMs: null });
    expect(circuitAfter([lives, fails, gone], left)).toEqual(left);
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
