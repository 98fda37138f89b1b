import { createElement, type ReactElement } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import type { Session } from "../api/operations.ts";
import { admin, operator, type PageCase, partner, reader, show, viewer } from "../shown.fixture.ts";
import { MyPartnerPage } from "./my-partner-page.tsx";
import { PartnerPage } from "./partner-page.tsx";
import { NewKeys, PartnersPage } from "./partners-page.tsx";
import { inputOf, textsOf } from "./settings-form.tsx";

const at = (second: number) => `2020-11-22T10:00:0${second}.000Z`;
const of = (...items: readonly object[]) => ({ items, next: null });
const never = "2100-01-01T00:00:00.000Z";
const settings = {
  ...{
    name: "Shop",
    callBackUrl: "https://shop.example/ipn",
    callBackUrlByCommand: { VOID: "https://shop.example/v" },
  },
  ...{ callBackUrlChange: "partner", callbackAddresses: ["203.0.113.1/32"], callingAddresses: ["203.0.113.2/32"] },
  ...{ contactMails: ["a@shop.example"], contactUrl: "https://shop.example/told", timeZone: "Asia/Tokyo" },
  ...{ retry: [5, 60], cipher: "aes-256-cbc", encoding: "hex", wireNames: "sample", fields: "extended" },
  ...{ ordering: "chain", terminals: "registered", settlementTotal: "net", transactionTime: "iso8601" },
  ...{ swipeTypes: "contact", maxInFlight: 7, maxPerSecond: 8, signing: { mode: "whole" } },
};
const key = { activeFrom: at(1), expiresAt: null, createdAt: at(0) };
const shop = {
  ...{ id: "p-1", state: "active", createdAt: at(9), updatedAt: at(9), settings },
  keys: [
    { ...key, id: "w-1", kind: "webhookSecret" },
    { ...key, id: "s-1", kind: "signingKey", activeFrom: never },
    { ...key, id: "e-1", kind: "encryptionKey", expiresAt: at(2), seals: 2 ** 31 },
    { ...key, id: "e-2", kind: "encryptionKey", expiresAt: never, seals: 1 },
    { ...key, id: "a-1", kind: "apiKey", lastUsedAt: at(3) },
    { ...key, id: "a-2", kind: "apiKey", name: "till", scopes: ["read", "pull"] },
    { ...key, id: "a-3", kind: "apiKey", name: "old", scopes: ["read"], expiresAt: at(4) },
  ],
};
const self = { ...shop, egressAddresses: ["198.51.100.1/32"], proofPublicKey: "PUB" };
const endpoint = {
  ...{ id: "c-1", partnerId: "p-1", target: "https://shop.example", state: "open", failures: 6 },
  ...{ lastReason: "timeout", probeAt: never },
};
const figures = {
  ...{ span: "hour", asOf: at(0), points: [], accepted: 3, failed: 1, parked: 0, attemptP50Ms: 10, attemptP99Ms: 20 },
  ...{ deliveryP50Ms: 30, deliveryP99Ms: 40 },
  failures: [{ reason: "status", httpStatus: 503, attempts: 5, lastAt: at(5) }],
};
const all = {
  ...figures,
  accepted: 13,
  failed: 2,
  attemptP50Ms: 11,
  attemptP99Ms: 22,
  deliveryP50Ms: 33,
  deliveryP99Ms: 44,
};
const terminal = {
  ...{ partnerId: "p-1", tid: "T1", mid: "M1", merchantName: "Cafe", merchantAddress: "Quay 1", merchantId: "I1" },
  ...{ deviceId: "D1", appName: "A1", acquirer: "bank" },
};
const sums = { saleQuantity: 1, saleTotalAmount: "12.5", voidQuantity: 2, voidTotalAmount: "3" };
const sold = { ...sums, refundQuantity: 4, refundTotalAmount: "0.5", netAmount: "9", currency: "USD" };
const statement = {
  isComplete: true,
  totals: [{ ...sold, reversedQuantity: 6, reversedTotalAmount: "7" }],
  lines: [
    {
      ...{
        kind: "reversal",
        at: at(1),
        id: "t-1",
        notificationId: "n-1",
        command: "SALE",
        status: "SUCCESS",
        tid: "T1",
      },
      ...{ isoResponseCode: "00", currency: "USD", amount: "5", movement: "-12.5", merchantTransId: "o-1" },
      ...{ batchNo: "000007", originalId: "" },
    },
  ],
};
const backlog = {
  ...{ trouble: null, pending: 2, oldestPendingAt: at(1), parked: 3, parkedBecause: null },
  pull: { at: at(2), upTo: at(3), left: 4, problem: null },
};
const api = "/operator/v1";
const answers: Readonly<Record<string, unknown>> = {
  [`${api}/partners`]: of(shop),
  [`${api}/partners/p-1`]: shop,
  [`${api}/partners/p-1/key-use`]: of({ keyId: "e-2", accepted: 1, failed: 2, lastAcceptedAt: at(6) }),
  [`${api}/partners/p-1/figures`]: figures,
  [`${api}/overview`]: { figures: all, trouble: [], parked: [] },
  [`${api}/partners/p-1/certificates`]: of({ whose: "client", target: "shop.example", endsAt: never, problem: null }),
  [`${api}/partners/p-1/terminals`]: of(terminal),
  [`${api}/endpoints`]: of(endpoint),
  "/v1/self": self,
  "/v1/key-use": of(),
  "/v1/figures": figures,
  "/v1/endpoints": of(endpoint),
  "/v1/certificates": of({ whose: "server", target: "shop.example", endsAt: at(1), problem: null }),
  "/v1/backlog": backlog,
  "/v1/batches": of({ id: "b-1", tid: "T1", batchNo: "000007", closedAt: at(4), ...sold }),
  "/v1/settlements": of({
    ...{ id: "s-1", tid: "T1", batchNo: "000007", status: "ERROR", isoResponseCode: "95", createdAt: at(5) },
    ...{ completedAt: at(6), notificationId: "n-2" },
  }),
  "/v1/statements/2026-11-22": statement,
};

const shopPage = createElement(PartnerPage, { id: "p-1" });
const ownPage = createElement(MyPartnerPage);
const partnersPage = createElement(PartnersPage);
const circuits = (partners: readonly string[], action: string) => [
  [
    "Circuit | Endpoint",
    ...(partners.length > 0 ? ["Partner"] : []),
    "Failures | Last failure | Next try | Action",
  ].join(" | "),
  ["Tripped | https://shop.example", ...partners, `6 | it did not answer in time | ${never} |${action}`].join(" | "),
];
const perHour = [
  "Whose | Delivered | Failed attempts | Succeeds | Endpoint, median | Endpoint, 99th percentile | " +
    "Delivery, median | Delivery, 99th percentile",
];
const theirs = "3 | 1 | 75.0 % | 10 ms | 20 ms | 30 ms | 40 ms";
const failures = ["Why attempts failed | Attempts | Last", `it answered 503 | 5 | ${at(5)}`];
const valid = ["State | Whose | Ends", `Valid | Our client certificate for shop.example | ${never}`];
const ended = ["State | Whose | Ends", `Ended | The endpoint's server shop.example | ${at(1)}`];
const keys = (use: string) => [
  "Key | State | Version | Used from | Ends | Use | Action",
  `API key | In use | a-1 | ${at(1)} | never | last ${at(3)} | Rotate`,
  `API key “till” read, pull | In use | a-2 | ${at(1)} | never | | Revoke`,
  `API key “old” read | Ended | a-3 | ${at(1)} | ${at(4)} | |`,
  `Encryption key | Ended | e-1 | ${at(1)} | ${at(2)} | 50.0 % of its limit used |`,
  `Encryption key | In use, ends | e-2 | ${at(1)} | ${never} | ${use}under 0.1 % of its limit used | Rotate`,
  `Signing key | To be used | s-1 | ${never} | never | | Rotate`,
  `Webhook secret | In use | w-1 | ${at(1)} | never | | Rotate`,
];

const cases: readonly PageCase[] = [
  {
    of: "the partners",
    page: partnersPage,
    asks: [`${api}/partners?limit=500`, `${api}/overview?span=hour`],
    lines: [
      "Partner | State | Callback URL | Encryption | Registered",
      `Shop → /partners/p-1 | Active | https://shop.example/ipn | aes-256-cbc | ${at(9)}`,
    ],
  },
  {
    of: "all circuits",
    page: partnersPage,
    search: "tab=endpoints",
    asks: [`${api}/endpoints?limit=100`, `${api}/partners?limit=500`],
    lines: circuits(["Shop → /partners/p-1"], " Close the circuit"),
  },
  {
    of: "a partner's statistics",
    page: shopPage,
    search: "over=day",
    asks: [
      ...[`${api}/partners/p-1`, `${api}/overview?span=hour`, `${api}/partners/p-1/figures?span=day`],
      ...[`${api}/overview?span=day`, `${api}/endpoints?limit=100&partner=p-1`, `${api}/partners/p-1/certificates`],
    ],
    lines: [
      "It is at this partner: of the attempts at all others 90.9 % succeed.",
      ...perHour,
      `This partner | ${theirs}`,
      "All partners | 13 | 2 | 86.6 % | 11 ms | 22 ms | 33 ms | 44 ms",
      ...failures,
      ...circuits([], " Close the circuit"),
      ...valid,
    ],
  },
  {
    of: "a partner's keys",
    page: shopPage,
    search: "tab=keys",
    session: admin,
    asks: [`${api}/partners/p-1`, `${api}/overview?span=hour`, `${api}/partners/p-1/key-use`],
    lines: keys(`1 accepted, 2 not, last ${at(6)} `),
  },
  {
    of: "a partner's terminals",
    page: shopPage,
    search: "tab=terminals",
    asks: [`${api}/partners/p-1`, `${api}/overview?span=hour`, `${api}/partners/p-1/terminals?limit=50`],
    lines: [
      "Terminal | Merchant | Name | Address | Device | Acquirer | Actions",
      "T1 → /notifications?partner=p-1&tid=T1 | M1 | Cafe | Quay 1 | D1 | bank | ChangeRelease",
    ],
  },
  {
    of: "my statistics",
    page: ownPage,
    session: partner,
    search: "over=week",
    asks: ["/v1/self", "/v1/backlog", "/v1/figures?span=week", "/v1/endpoints?limit=100", "/v1/certificates"],
    lines: [...perHour, `You | ${theirs}`, ...failures, ...circuits([], " Close the circuit"), ...ended],
  },
  {
    of: "my statement, in my time zone",
    page: ownPage,
    session: partner,
    search: "tab=statements",
    asks: [
      ...["/v1/self", "/v1/backlog", "/v1/statements/2026-11-22", "/v1/batches?limit=50"],
      "/v1/settlements?limit=50",
    ],
    lines: [
      "Currency | Sales | Voids | Refunds | Reversed | Net",
      "USD | 12.5 (1) | 3 (2) | 0.5 (4) | 7 (6) | 9.00 USD",
      "When | Command | Status | Order | Terminal | Batch | Moves | IPN",
      `${at(1)} | SALE, reversed | SUCCESS 00 | o-1 | T1 | 000007 | -12.50 USD | Open → /notifications/n-1`,
      "Closed | Terminal | Batch | Sales | Voids | Refunds | Net",
      `${at(4)} | T1 | 000007 | 12.5 (1) | 3 (2) | 0.5 (4) | 9.00 USD`,
      "Requested | Terminal | Batch | Status | IPN",
      `${at(5)} | T1 | 000007 | ERROR 95 | Open → /notifications/n-2`,
    ],
  },
  {
    of: "my catch-up",
    page: ownPage,
    session: partner,
    search: "tab=catch-up&reason=tls&partner=p-9",
    asks: ["/v1/self", "/v1/backlog", "/v1/notifications/search?state=parked&reason=tls&limit=50"],
    lines: [
      expect.stringMatching(/^Pending 2 oldest .* → \/notifications\?state=pending$/),
      "Parked 3 no longer sent → /notifications?state=parked",
      expect.stringMatching(/^Left to pull 4 last pulled .*:02$/),
      expect.stringMatching(/^Pulled up to .*:03 you have everything created earlier$/),
      "Your catch-up has not reached the end: let it run, or send what is parked again.",
    ],
  },
  {
    of: "my settings",
    page: ownPage,
    session: partner,
    search: "tab=settings",
    asks: ["/v1/self", "/v1/backlog"],
    lines: [
      "Callback URL: https://shop.example/ipn",
      "URLs by command: VOID https://shop.example/v",
      "Callback addresses: 203.0.113.1/32",
      "Calling addresses: 203.0.113.2/32",
      "Our callbacks come from: 198.51.100.1/32",
      "Encryption: aes-256-cbc, hex",
      "Signature: over the whole IPN",
      "Order: IPNs of a chain are sent one after the other",
      "Retries after: 5, 60 seconds",
      "Messages in trouble go to: a@shop.example, https://shop.example/told",
      "Time zone: Asia/Tokyo",
      "Key for proofs of delivery: PUB",
    ],
  },
  {
    of: "my keys",
    page: ownPage,
    session: partner,
    search: "tab=keys",
    asks: ["/v1/self", "/v1/backlog", "/v1/key-use"],
    lines: keys(""),
  },
];

beforeEach(() => {
  // In Tokyo the next day has begun.
  vi.useFakeTimers({ now: Date.parse("2026-11-21T20:00:00.000Z"), toFake: ["Date"] });
  return () => void vi.useRealTimers();
});

test.each(cases)("the page of $of asks for it, and shows each value under its name", async (one) => {
  const { page, session = operator, search, asks, lines } = one;
  const shown = await show(page, session, answers, search);
  expect(shown.asked).toEqual(asks.map((path) => `GET ${path}`));
  expect(shown.lines).toEqual(lines);
});

test("what the API has counted no further is told as so many or more", async () => {
  const cut = { ...backlog, pull: { ...backlog.pull, left: 1_000 } };
  const { lines } = await show(ownPage, partner, { ...answers, "/v1/backlog": cut }, "tab=catch-up");
  expect(lines).toContainEqual(expect.stringMatching(/^Left to pull 1,000 or more /));
});

test("only what is well is green: of keys, of their use, of shares, circuits and certificates", async () => {
  const keysOf = await show(shopPage, viewer, answers, "tab=keys");
  expect(keysOf.tones).toEqual(["good", "good", "good", "quiet", "quiet", "wait", "wait", "wait", "good"]);
  expect((await show(shopPage, viewer, answers)).tones).toEqual(["good", "wait", "wait", "bad", "good"]);
  const troubled = { figures: all, parked: [], trouble: [{ partnerId: "p-1" }] };
  const list = await show(partnersPage, viewer, { ...answers, [`${api}/overview`]: troubled });
  expect(list.tones).toEqual(["bad"]);
});

test("the form of a partner's settings has each of them at its own field", async () => {
  const { typed } = await show(shopPage, operator, answers, "tab=settings");
  expect(typed).toMatchObject({
    ...{ Name: "Shop", "Time zone": "Asia/Tokyo", "Calling addresses": "203.0.113.2/32", Terminals: "registered" },
    ...{ "Callback URL": "https://shop.example/ipn", "Who changes the callback URL": "partner" },
    ...{ "Callback addresses": "203.0.113.1/32", "URLs by command": "VOID https://shop.example/v" },
    ...{ "By mail to": "a@shop.example", "By webhook to": "https://shop.example/told" },
    ...{ "Order of a chain's IPNs": "chain", "Retry schedule": "5, 60", "POSTs in flight, at most": "7" },
    ...{ "POSTs a second, at most": "8", Cipher: "aes-256-cbc", Encoding: "hex", "Names on the wire": "sample" },
    ...{ "Fields of its IPNs": "extended", "Settlement's totalAmount": "net", transaction_time: "iso8601" },
    "Swipe types": "contact",
  });
});

test("a setting is sent as the API has it, and only one that was changed, but for what a new partner needs", () => {
  const before = textsOf(settings as unknown as Parameters<typeof textsOf>[0]);
  const changed = {
    ...{ callBackUrl: " ", contactUrl: "", maxInFlight: "9", maxPerSecond: "", retry: "1, 2 3,soon", timeZone: "UTC" },
    ...{ callbackAddresses: "203.0.113.1/32, 203.0.113.3/32\n\n203.0.113.4/32", contactMails: "" },
    callBackUrlByCommand: "SALE https://a\n\n VOID  https://b ",
  };
  const sent = {
    ...{ callBackUrl: null, contactUrl: null, maxInFlight: 9, maxPerSecond: null, retry: [1, 2, 3, "soon"] },
    ...{ timeZone: "UTC", callbackAddresses: ["203.0.113.1/32", "203.0.113.3/32", "203.0.113.4/32"], contactMails: [] },
    callBackUrlByCommand: { SALE: "https://a", VOID: "https://b" },
  };
  expect(inputOf({ ...before, ...changed }, before, true)).toEqual(sent);
  expect(inputOf(before, before, true)).toEqual({});
  const { name, callbackAddresses, callingAddresses } = settings;
  expect(inputOf(before, before, false)).toEqual({ name, callbackAddresses, callingAddresses });
});

test("the keys of a new partner are hidden, each at its own name", async () => {
  const keys = { id: "p-2", apiKey: "a", encryptionKey: "e", signingKey: "s", webhookSecret: "w" };
  const { typed, buttons } = await show(createElement(NewKeys, { partner: keys }), admin, answers);
  expect(typed).toMatchObject({
    ...{ "Partner id": "p-2", "API key": "••• a", "Encryption key": "••• e", "Signing key": "••• s" },
    "Webhook secret": "••• w",
  });
  expect(buttons).toEqual(["Open the partner (disabled)"]);
});

const onShop = `${api}/partners/p-1`;
const rotation = (key: string) => `{"key":"${key}","overlapHours":24}`;

test.each<[button: string, page: ReactElement, search: string, session: Session, sent: string, stale: string]>([
  ["Rotate", shopPage, "tab=keys", admin, `POST ${onShop}/keys/rotate ${rotation("webhookSecret")}`, "partner"],
  ["Rotate", ownPage, "tab=keys", partner, `POST /v1/keys/rotate ${rotation("webhookSecret")}`, "self"],
  ["Revoke", shopPage, "tab=keys", operator, `POST ${onShop}/api-keys/a-2/revoke`, "partner"],
  ["Revoke", ownPage, "tab=keys", partner, "POST /v1/api-keys/a-2/revoke", "self"],
  ["Release", shopPage, "tab=terminals", operator, `DELETE ${onShop}/terminals/T1`, "terminals"],
  ["Close the circuit", shopPage, "", operator, `POST ${api}/endpoints/c-1/close`, "endpoints"],
  ["Close the circuit", ownPage, "", partner, "POST /v1/endpoints/c-1/close", "endpoints"],
  ["Pause deliveries", shopPage, "", operator, `POST ${onShop}/pause`, "figures"],
  ["Certify", shopPage, "tab=certify", operator, `POST ${onShop}/certify {}`, "overview"],
  ["Certify", ownPage, "tab=certify", partner, "POST /v1/certify {}", "self"],
  ["Send a test IPN", shopPage, "", operator, `POST ${onShop}/test-notification`, ""],
  ["Send a test IPN", ownPage, "", partner, "POST /v1/test-notification", ""],
])(
  "the button %s sends what it says, and its page is read again: %#",
  async (button, page, search, session, sent, stale) => {
    const { click } = await show(page, session, answers, search);
    const effect = await click(button);
    expect(effect.sent).toEqual([sent]);
    if (stale !== "") expect(effect.stale).toContain(stale);
  },
);

test("a partner that is paused is resumed, and the list of partners read again", async () => {
  const { click, buttons } = await show(shopPage, operator, { ...answers, [onShop]: { ...shop, state: "paused" } });
  expect(buttons).not.toContain("Pause deliveries");
  expect(await click("Resume deliveries")).toMatchObject({ sent: [`POST ${onShop}/resume`] });
});

test.each<[tab: string, page: ReactElement, who: Session]>(
  ["", "settings", "terminals", "keys", "endpoints", "certify", "catch-up"].flatMap((tab) => [
    [tab, shopPage, viewer] as [string, ReactElement, Session],
    [tab, ownPage, reader] as [string, ReactElement, Session],
  ]),
)("whoever may only look is offered no action: %s", async (tab, page, who) => {
  expect((await show(page, who, answers, `tab=${tab}`)).buttons).toEqual([]);
});

test("an operator may not rotate a key, nor register a partner, as an admin may", async () => {
  expect((await show(shopPage, operator, answers, "tab=keys")).buttons).not.toContain("Rotate");
  const registering = async (session: Session) => (await show(partnersPage, session, answers)).buttons;
  expect(await registering(operator)).toEqual([]);
  expect(await registering(admin)).toEqual(["Register a partner"]);
});
