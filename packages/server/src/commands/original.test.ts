import { describe, expect, test } from "vitest";
import type { ErrorCode } from "../errors.ts";
import { dayMs, approvedPreAuth as preAuth, preAuthDays, approvedSale as sale } from "./original.fixture.ts";
import { originalRefusal } from "./original.ts";
import type { OriginalState, ReferringCommand } from "./states.ts";

const ask =
  (command: ReferringCommand) =>
  (original: OriginalState, nowMs = 0, amountMinor = original.amountMinor) =>
    originalRefusal(original, { command, amountMinor, nowMs, preAuthDays });
const refusals = {
  void: ask("VOID"),
  complete: ask("PREAUTH_COMPLETE"),
  reverse: ask("REVERSAL"),
  refund: ask("REFUND"),
};
type Verb = keyof typeof refusals;
const successor = (command: "VOID" | "PREAUTH_COMPLETE" | "REVERSAL", state: "in_flight" | "in_doubt" | "done") => ({
  successor: { command, state },
});
const declined = { state: "ERROR" } as const;
const inFlight = { state: "INIT" } as const;

describe("a transaction that stands", () => {
  test.each<[Verb, OriginalState]>([
    ["void", sale],
    ["void", { ...sale, command: "PREAUTH_COMPLETE" }],
    ["void", preAuth],
    ["complete", preAuth],
    ["reverse", sale],
    ["reverse", { ...sale, command: "PREAUTH_COMPLETE" }],
    ["reverse", preAuth],
    ["reverse", { ...sale, state: "INIT" }],
    ["reverse", { ...preAuth, state: "INIT" }],
    // A settlement waits for what is in flight, and for its Reversal.
    ["reverse", { ...sale, state: "INIT", batch: "closing" }],
  ])("lets one %s it (case %#)", (verb, original) => {
    expect(refusals[verb](original)).toBeUndefined();
  });
});

describe("a refusal", () => {
  test.each<[Verb, ErrorCode, OriginalState, RegExp]>([
    ["void", "not_voidable", { ...sale, command: "VOID" }, /is a VOID: void a SALE/],
    ["void", "not_voidable", { ...sale, command: "SETTLEMENT" }, /is a SETTLEMENT/],
    ["void", "not_voidable", { ...sale, command: "LOGON" }, /is a LOGON/],
    ["complete", "not_completable", sale, /is a SALE: complete a PREAUTH/],
    ["complete", "not_completable", { ...sale, command: "PREAUTH_COMPLETE" }, /is a PREAUTH_COMPLETE/],
    ["reverse", "not_reversible", { ...sale, command: "VOID" }, /is a VOID: reverse a SALE/],
    ["reverse", "not_reversible", { ...sale, command: "REVERSAL" }, /is a REVERSAL/],
    ["reverse", "not_reversible", { ...sale, reversal: "stands" }, /refuses for good/],
    ["refund", "not_refundable", preAuth, /is a PREAUTH: refund a SALE/],
    ["refund", "not_settled", sale, /not settled yet: void it/],
    ["refund", "amount_above_refundable", { ...sale, batch: "closed", refundedMinor: 1n }, /Less than that is left/],
    ["void", "owned_by_switch", { ...sale, origin: "switch" }, /void it there/],
    ["complete", "owned_by_switch", { ...preAuth, origin: "switch" }, /complete it there/],
    ["reverse", "owned_by_switch", { ...sale, origin: "switch" }, /reverse it there/],
    ["void", "in_flight", { ...sale, ...inFlight }, /no outcome yet: wait .* or reverse it now/],
    ["complete", "in_flight", { ...preAuth, ...inFlight }, /no outcome yet: wait/],
    ["void", "in_flight", { ...sale, ...successor("VOID", "in_flight") }, /A VOID of .* wait for it/],
    ["complete", "in_flight", { ...preAuth, ...successor("VOID", "in_flight") }, /A VOID of/],
    ["reverse", "in_flight", { ...sale, ...inFlight, ...successor("REVERSAL", "in_flight") }, /A REVERSAL of/],
    ["void", "in_doubt", { ...sale, ...successor("VOID", "in_doubt") }, /unanswered VOID of .* wait/],
    ["complete", "in_doubt", { ...preAuth, ...successor("PREAUTH_COMPLETE", "in_doubt") }, /unanswered PREAUTH_COMPL/],
    ["reverse", "in_doubt", { ...sale, reversal: "pending" }, /not answered yet: wait/],
    [
      "reverse",
      "in_doubt",
      { ...sale, ...declined, reversal: "pending", ...successor("REVERSAL", "in_flight") },
      /not answered yet: wait/,
    ],
    ["void", "in_doubt", { ...sale, reversal: "parked" }, /Reversal of .* is parked.*the operator/],
    [
      "void",
      "in_doubt",
      { ...sale, successor: { command: "VOID", state: "in_doubt", reversal: "parked" } },
      /Reversal of the VOID of .* is parked.*the operator/,
    ],
    ["void", "in_doubt", { ...sale, ...declined, reversal: "pending" }, /not answered yet/],
    ["void", "in_doubt", { ...sale, ...successor("REVERSAL", "done"), reversal: "pending" }, /not answered yet/],
    ["void", "not_successful", { ...sale, ...declined }, /nothing to void/],
    ["reverse", "not_successful", { ...sale, ...declined, reversal: "done" }, /nothing to reverse/],
    ["void", "already_voided", { ...sale, ...successor("VOID", "done") }, /was voided/],
    ["complete", "already_voided", { ...preAuth, ...successor("VOID", "done") }, /was voided/],
    ["reverse", "already_voided", { ...sale, ...successor("VOID", "done") }, /was voided/],
    [
      "void",
      "already_completed",
      { ...preAuth, ...successor("PREAUTH_COMPLETE", "done") },
      /void its PREAUTH_COMPLETE/,
    ],
    ["complete", "already_completed", { ...preAuth, ...successor("PREAUTH_COMPLETE", "done") }, /was completed/],
    ["reverse", "already_completed", { ...preAuth, ...successor("PREAUTH_COMPLETE", "done") }, /was completed/],
    ["void", "already_reversed", { ...sale, reversal: "done" }, /was reversed/],
    ["reverse", "already_reversed", { ...sale, ...successor("REVERSAL", "done") }, /was reversed/],
    ["void", "batch_settled", { ...sale, batch: "closed" }, /settled, so nothing can void it: refund it/],
    ["reverse", "batch_settled", { ...sale, batch: "closed" }, /nothing can reverse it/],
    ["void", "batch_settled", { ...sale, batch: "none" }, /is settled/],
    ["void", "settlement_in_progress", { ...sale, batch: "closing" }, /being settled: repeat/],
    ["reverse", "settlement_in_progress", { ...sale, batch: "closing" }, /being settled: repeat/],
    // Final states are reported before temporary ones.
    ["void", "already_voided", { ...sale, ...successor("VOID", "done"), batch: "closing" }, /was voided/],
    ["void", "already_voided", { ...sale, ...successor("VOID", "done"), batch: "closed" }, /was voided/],
  ])("to %s it is %s (case %#)", (verb, code, original, message) => {
    const refusal = refusals[verb](original);
    expect(refusal).toMatchObject({ code });
    expect(refusal?.message).toMatch(message);
    expect(refusal?.message).toContain(original.id);
    expect(refusal?.retryAfterS).toBe(code === "settlement_in_progress" ? 5 : undefined);
  });
});

describe("a PreAuth", () => {
  const lastMs = preAuthDays * dayMs;

  test("is completed until the last millisecond of its days", () => {
    expect(refusals.complete(preAuth, lastMs)).toBeUndefined();
    expect(refusals.complete(preAuth, lastMs + 1)).toMatchObject({
      code: "preauth_expired",
      message: expect.stringMatching(/older than 30 days: void it/),
    });
  });

  test("is voided at any age: to release a hold is always allowed", () => {
    expect(refusals.void(preAuth, lastMs + 1)).toBeUndefined();
    expect(refusals.void(preAuth, 400 * dayMs)).toBeUndefined();
  });

  test("is completed for at most its amount", () => {
    expect(refusals.complete(preAuth, 0, 1n)).toBeUndefined();
    expect(refusals.complete(preAuth, 0, 10_000n)).toBeUndefined();
    expect(refusals.complete(preAuth, 0, 10_001n)).toMatchObject({ code: "amount_above_authorised" });
  });

  test("outlives any settlement: no batch is its own", () => {
    for (const batch of ["open", "closing", "closed", "none"] as const) {
      expect(refusals.complete({ ...preAuth, batch })).toBeUndefined();
      expect(refusals.void({ ...preAuth, batch })).toBeUndefined();
    }
  });

  test("lets a Sale of any age be voided, as long as its batch is open", () => {
    expect(refusals.void(sale, 400 * dayMs)).toBeUndefined();
  });
});
