import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { type NotificationDetail, unknownSubject } from "../notifications/view.ts";
import { asItsPartnerSees, reasonsOfPartner } from "./partner-attempts.ts";

type Attempt = NotificationDetail["attempts"][number];

function seen(attempt: Partial<Attempt>): Attempt {
  const recorded: Attempt = {
    attemptNo: 1,
    startedAt: "2026-01-31T00:00:00.000Z",
    durationMs: 3,
    url: "https://db.internal/ipn",
    address: "10.20.30.40",
    httpStatus: null,
    reason: null,
    detail: null,
    answer: null,
    keyId: null,
    instanceId: newId(),
    ...attempt,
  };
  const detail: NotificationDetail = {
    id: newId(),
    partnerId: newId(),
    transactionId: null,
    command: "SALE",
    kind: "card",
    state: "pending",
    waiting: null,
    schedule: null,
    partnerName: "Shop",
    attemptsMade: 1,
    nextAttemptAt: null,
    lastReason: null,
    createdAt: "2026-01-31T00:00:00.000Z",
    outcomeAt: null,
    callBackUrl: null,
    subject: unknownSubject,
    attempts: [recorded],
  };
  return asItsPartnerSees(detail).attempts[0] ?? recorded;
}

test.each([
  ["address_refused", "db.internal: 10.20.30.40 is a private address: callbackAddresses must name a block for it."],
  ["connect", "connect ECONNREFUSED 10.20.30.40:443."],
  ["connect_timeout", "connect ETIMEDOUT 10.20.30.40:443."],
  ["internal", "EHOSTUNREACH 10.20.30.40"],
] as const)(
  "a partner sees that an attempt failed by %s, and no address that the operator looked up",
  (reason, detail) => {
    const attempt = seen({ reason, detail });
    expect(attempt.reason).toBe(reason);
    expect(attempt.detail).not.toBe("");
    expect(JSON.stringify(attempt)).not.toMatch(/\d+\.\d+\.\d+\.\d+/);
  },
);

test("a partner cannot tell a name that does not resolve from one whose address is refused", () => {
  const refused = seen({ reason: "address_refused", detail: "db.internal: 10.20.30.40 is a private address." });
  const unknown = seen({ reason: "dns", detail: "db.internal cannot be resolved: ENOTFOUND by 10.0.0.2." });
  expect({ ...unknown, instanceId: "" }).toEqual({ ...refused, instanceId: "" });
  expect(reasonsOfPartner("address_refused")).toEqual(["address_refused", "dns"]);
  expect(reasonsOfPartner("dns")).toEqual([]);
});

test("the partner sees what its own server did", () => {
  const detail = "certificate has expired (CERT_HAS_EXPIRED).";
  expect(seen({ reason: "tls", detail }).detail).toBe(detail);
  expect(seen({ httpStatus: 500, reason: "status", detail: "Answered 500.", answer: "oh no" })).toMatchObject({
    httpStatus: 500,
    detail: "Answered 500.",
    answer: "oh no",
  });
});
