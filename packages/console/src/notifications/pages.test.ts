import { createElement, type ReactElement } from "react";
import { expect, test } from "vitest";
import type { Session } from "../api/operations.ts";
import { OverviewPage } from "../overview/overview-page.tsx";
import { admin, operator, partner, reader, show, viewer } from "../shown.fixture.ts";
import { NotificationPage } from "./notification-page.tsx";
import { NotificationsPage } from "./notifications-page.tsx";
import { ParkedPage } from "./parked-page.tsx";
import { Delivered } from "./replay.tsx";
import { SearchPage } from "./search-page.tsx";

const at = (second: number) => `2020-11-22T10:00:0${second}.000Z`;
const of = (...items: readonly object[]) => ({ items, next: null });
const never = "2100-01-01T00:00:00.000Z";
const api = "/operator/v1";
const subject = {
  ...{ merchantTransId: "o-1", amount: "12.5", currency: "USD", tid: "T1", mid: "M1", merchantName: "Cafe" },
  ...{ refId: "417", approveCode: "A1", isoResponseCode: "51", reqId: "q-1", lastFour: "1007" },
};
const one = {
  ...{ id: "n-1", partnerId: "p-1", transactionId: "t-1", command: "SALE", kind: "card", state: "pending" },
  ...{ attemptsMade: 2, nextAttemptAt: never, lastReason: "status", lastHttpStatus: 503, createdAt: at(0) },
  ...{ outcomeAt: null, waiting: null, partnerName: "Shop", subject },
};
const attempt = {
  ...{ attemptNo: 1, startedAt: at(1), durationMs: 20, url: "https://u", address: "192.0.2.1", httpStatus: 503 },
  ...{ reason: "status", detail: null, answer: "away", keyId: "k-1", instanceId: "i" },
};
const detail = {
  ...one,
  callBackUrl: "https://own",
  schedule: { beganAt: at(1), attempts: [never, "2100-01-01T00:01:00.000Z"], endsAt: "2100-01-01T01:00:00.000Z" },
  attempts: [
    { ...attempt, attemptNo: 1, startedAt: at(0) },
    { ...attempt, attemptNo: 2, startedAt: at(2), durationMs: 30, httpStatus: null, reason: "timeout" },
  ],
  events: [{ kind: "redelivered", at: at(3), detail: { by: "ada" } }],
};
const trouble = {
  ...{ partnerId: "p-1", partnerName: "Shop", notificationId: "n-1", because: "retry", reason: "status" },
  ...{ httpStatus: 503, since: at(1), waiting: 4, nextAttemptAt: never, parkingAt: at(2) },
};
const parked = {
  ...{ partnerId: "p-2", partnerName: "Bakery", notificationId: "n-2", reason: "tls", httpStatus: null, since: at(3) },
  ...{ parked: 5, acceptedAt: null },
};
const overview = {
  ...{ trouble: [trouble], parked: [parked], pending: 6, oldestPendingAt: at(1) },
  figures: {
    ...{
      span: "day",
      asOf: at(0),
      points: [],
      accepted: 999,
      failed: 1,
      parked: 0,
      attemptP50Ms: 10,
      attemptP99Ms: 20,
    },
    ...{ deliveryP50Ms: 30, deliveryP99Ms: 40, failures: [] },
  },
  standing: { parked: 7, tripped: 8, reversalsParked: 1, reversalsPending: 20, settlementsWaiting: 300 },
  failing: [{ partnerId: "p-1", accepted: 1, failed: 3, parked: 9 }],
};
const counted = { matched: 2, redelivered: 2, id: "x-1", selection: { commands: {}, oldestAt: null, urls: [] } };
const answers: Readonly<Record<string, unknown>> = {
  [`${api}/partners`]: of({ id: "p-1", settings: { name: "Shop" } }),
  [`${api}/notifications`]: of(one, { ...one, id: "n-2", state: "accepted", attemptsMade: 3 }),
  [`${api}/notifications/n-1`]: detail,
  "/v1/notifications/n-1": detail,
  "/v1/notifications/search": of(one),
  "/v1/transactions/t-1": { command: "SALE", status: "SUCCESS", chain: [], batch: null, reversal: null },
  [`${api}/overview`]: overview,
  [`${api}/redeliveries`]: counted,
  "/v1/redeliveries": counted,
  [`${api}/redeliveries/x-1`]: {
    ...{ redelivered: 20, delivered: 1, pending: 12, failed: 3, parked: 4, held: { paused: 5, order: 6 } },
    nextAttemptAt: never,
  },
};

const filter = `state=parked&reason=tls&from=${at(1)}&to=${at(2)}`;
const page = createElement(NotificationPage, { id: "n-1" });
const list = createElement(NotificationsPage);
const parkedPage = createElement(ParkedPage);

test("the list asks by each filter, and shows each value under its name", async () => {
  const search = `tid=T1&partner=p-1&command=VOID&result=declined&${filter}`;
  const { asked, lines } = await show(list, operator, answers, search);
  expect(asked.map(decodeURIComponent)).toContain(
    `GET ${api}/notifications?tid=T1&partner=p-1&state=parked&command=VOID&result=declined&reason=tls` +
      `&from=${at(1)}&to=${at(2)}&limit=50`,
  );
  expect(lines).toEqual([
    "| State | Created | Order | Command | Amount | Partner | Merchant, terminal | Delivery",
    expect.stringContaining(
      `| Pending | ${at(0)} | o-1 → /notifications/n-1 | SALE declined (51) | 12.50 USD | Shop → /partners/p-1 | ` +
        "Cafe · T1 | 2 attempts · it answered 503 · next ",
    ),
    `| Delivered | ${at(0)} | o-1 → /notifications/n-2 | SALE declined (51) | 12.50 USD | Shop → /partners/p-1 | ` +
      "Cafe · T1 | 3 attempts",
  ]);
});

test.each([list, parkedPage])("a partner asks for its own alone, whatever its address says: %#", async (one) => {
  const { asked } = await show(one, reader, answers, `partner=p-9&${filter}`);
  expect(asked.map(decodeURIComponent)).toEqual([`GET /v1/notifications/search?${filter}&limit=50`]);
});

const about = (transaction: string) => [
  "Notification: n-1",
  `Transaction: t-1 → ${transaction}`,
  "reqId: q-1",
  "refId: 417",
  "Approve code: A1",
  "Result: Not sufficient funds",
  "Card: •••• 1007 → /notifications?lastFour=1007",
  "Terminal: T1 → /notifications?tid=T1",
  "Merchant: M1 → /notifications?mid=M1",
];

test("a notification has its schedule, its attempts in their order, and each value under its name", async () => {
  const { asked, lines, buttons } = await show(page, operator, answers);
  expect(asked).toContain(`GET ${api}/notifications/n-1`);
  expect(lines).toEqual([
    "Due now: it waits for a free slot or its partner's pace",
    // The attempt before the schedule began is none of its.
    expect.stringMatching(/^timeout.*:02$/),
    expect.stringMatching(/^Next tryin \d+ days$/),
    "+ 1 min",
    expect.stringMatching(/^Parked.*:00$/),
    `${at(0)} Command completed, IPN committed with it`,
    `${at(0)} Attempt 1: 503 after 20 ms · answer https://u · 192.0.2.1 · key k-1…`,
    `${at(2)} Attempt 2: did not answer in time after 30 ms · answer https://u · 192.0.2.1 · key k-1…`,
    `${at(3)} Redelivered by ada`,
    `${never} Next attempt`,
    ...about("/transactions/t-1"),
    "Partner: Shop → /partners/p-1",
    "Goes to: https://own",
  ]);
  expect(buttons).toEqual([
    ...["Send now", "", "To its own URL", "To the URL registered now", "Proof of delivery"],
    "Show the IPN and its signature",
  ]);
});

test("a partner's own notification asks for nothing of the operator's, and names no partner", async () => {
  const { asked, lines, typed } = await show(page, partner, answers);
  expect(asked).toEqual(["GET /v1/notifications/n-1", "GET /v1/transactions/t-1"]);
  expect(lines.slice(-10)).toEqual([...about("/transactions/t-1"), "Goes to: https://own"]);
  expect(typed).toMatchObject({ "Your encryption key": "••• " });
});

test.each<[who: string, session: Session, opens: boolean]>([
  ["a viewer", viewer, false],
  ["a key that may only read", reader, false],
  ["a key that may pull", { ...partner, scopes: ["pull"] }, true],
])("%s may not send a notification again, nor have its content or proof", async (_, session, opens) => {
  const { buttons, typed } = await show(page, session, answers);
  expect(buttons).toEqual([]);
  expect("Your encryption key" in typed).toBe(opens);
});

test("only an admin's page asks the audit who paused the partner", async () => {
  const waiting = { because: "paused", since: at(1), endpointId: null, target: null, reason: null, after: null };
  const paused = { ...answers, [`${api}/notifications/n-1`]: { ...detail, waiting } };
  const asks = `GET ${api}/audit?action=pausePartner&subject=p-1&limit=1`;
  expect((await show(page, admin, paused)).asked).toContain(asks);
  expect((await show(page, operator, paused)).asked).not.toContain(asks);
});

test.each<[button: string, one: ReactElement, session: Session, sent: string]>([
  ["Send now", page, operator, `POST ${api}/notifications/n-1/redeliver {"to":"original"}`],
  ["To its own URL", page, operator, `POST ${api}/notifications/n-1/redeliver {"to":"original"}`],
  ["To the URL registered now", page, operator, `POST ${api}/notifications/n-1/redeliver {"to":"registered"}`],
  ["Send now", page, partner, 'POST /v1/notifications/n-1/redeliver {"to":"original"}'],
  ["To the URL registered now", page, partner, 'POST /v1/notifications/n-1/redeliver {"to":"registered"}'],
  [
    ...(["Count them first", parkedPage, operator] as const),
    `POST ${api}/redeliveries {"filter":{"state":"parked","partner":"p-1","reason":"tls","from":"${at(1)}",` +
      `"to":"${at(2)}"},"to":"original","dryRun":true}`,
  ],
  [
    ...(["Count them first", parkedPage, partner] as const),
    `POST /v1/redeliveries {"filter":{"state":"parked","reason":"tls","from":"${at(1)}","to":"${at(2)}"},` +
      '"to":"original","dryRun":true}',
  ],
])("the button %s sends what is shown, and counts before it sends: %#", async (button, one, session, sent) => {
  const { click } = await show(one, session, answers, `partner=p-1&${filter}`);
  const effect = await click(button);
  expect(effect.sent).toEqual([sent]);
  if (one === page) expect(effect.stale).toEqual(["notification"]);
});

test("the proof is saved under the notification's id", async () => {
  const proof = { ...answers, [`${api}/notifications/n-1/proof`]: { proof: 1 } };
  const { sent, saved } = await (await show(page, operator, proof)).click("Proof of delivery");
  expect(sent).toEqual([`GET ${api}/notifications/n-1/proof`]);
  expect(saved).toEqual(["proof-n-1.json", '{\n  "proof": 1\n}\n']);
});

test("a search asks what each kind of number can be, one after the other, until something is found", async () => {
  const nothing = { ...answers, [`${api}/notifications`]: of() };
  const asked = async (q: string) => {
    const { asked: all } = await show(createElement(SearchPage), operator, nothing, `q=${q}`);
    const start = `GET ${api}/notifications?`;
    return all.filter((one) => one.startsWith(start)).map((one) => one.slice(start.length).replace("&limit=50", ""));
  };
  expect(await asked("1234")).toEqual(["q=1234", "lastFour=1234", "tid=1234", "contains=1234"]);
  expect(await asked("A1B2C3")).toEqual(["q=A1B2C3", "approveCode=A1B2C3", "tid=A1B2C3", "contains=A1B2C3"]);
  const refId = "417000000001";
  expect(await asked(refId)).toEqual([`q=${refId}`, `refId=${refId}`, `tid=${refId}`, `contains=${refId}`]);
});

test("a replay tells what became of all that it sent", async () => {
  const { asked, lines } = await show(createElement(Delivered, { id: "x-1" }), operator, answers);
  expect(asked).toEqual([`GET ${api}/redeliveries/x-1`]);
  expect(lines).toEqual([
    "1 of 20 delivered, 12 pending, 3 of them failed again, and are tried by their schedule, 5 of them held, because " +
      "the partner is paused, 6 of them held, until an earlier one of the chain was sent, 4 parked again; " +
      `the next attempt ${never} · Link to this → /replays/x-1`,
  ]);
});

test("the overview has each figure under its name, and leads to what it counts", async () => {
  const { asked, lines, tones } = await show(createElement(OverviewPage), operator, answers, "over=day");
  expect(asked).toContain(`GET ${api}/overview?span=day`);
  expect(lines).toEqual([
    "2 partners do not receive their notifications",
    "of attempts succeed: 99.9 %",
    "under way: 6",
    "Partner | What is wrong | Since | Waiting | Next try | Parking begins",
    `Shop → /partners/p-1 | it answered 503 → /notifications/n-1 | ${at(1)} | ` +
      `4 → /notifications?partner=p-1&state=pending | ${never} | now`,
    `Bakery → /partners/p-2 | parked: its certificate or TLS is not accepted → /notifications/n-2 | ${at(3)} | ` +
      "5 → /parked?partner=p-2 | when a person acts | parked",
    "Delivered 999",
    "Failed attempts 1",
    expect.stringMatching(/^Pending 6 oldest .* → \/notifications\?state=pending$/),
    "Parked 7 → /parked",
    "Tripped circuits 8 → /partners?tab=endpoints",
    "Money in doubt 321 → /money",
    "Delivery, median 30 ms created → accepted",
    "Delivery, 99th percentile 40 ms created → accepted",
    "Endpoints, median 10 ms one attempt",
    "Endpoints, 99th percentile 20 ms one attempt",
    "Partner | Failed attempts | Delivered | Parked | Succeeds",
    "Shop → /partners/p-1 | 3 | 1 | 9 → /parked?partner=p-1 | 25.0 %",
  ]);
  // The sentence, what failed, is parked, tripped and in doubt, and the partner that fails.
  expect(tones).toEqual(["bad", "wait", "bad", "bad", "bad", "bad"]);
});
