import { createElement } from "react";
import { expect, test } from "vitest";
import { localInput } from "../display/time.tsx";
import { pagesOf } from "../shell/pages.ts";
import { admin, operator, partner, show, viewer } from "../shown.fixture.ts";
import { TryPage } from "../try-page.tsx";
import { AuditPage } from "./audit-page.tsx";
import { OperatorsPage } from "./operators-page.tsx";
import { ProposalsPage } from "./proposals-page.tsx";
import { SettingsPage } from "./settings-page.tsx";

const at = (second: number) => `2020-11-22T10:00:0${second}.000Z`;
const never = "2100-01-01T00:00:00.000Z";
const of = (...items: readonly object[]) => ({ items, next: null });
const api = "/operator/v1";
const entry = { at: at(1), actor: "ada", role: "admin", tokenId: "k-1", address: "192.0.2.1", hash: "h" };
const nothing = { before: null, after: null };
const person = { createdAt: at(1), expiresAt: never, lastUsedAt: at(2), revokedAt: null, subject: null };
const proposal = { partnerId: null, createdAt: at(1), expiresAt: at(2), proposedBy: "ben" };
const proposals = [
  { ...proposal, id: "q-1", action: "rotateKey", partnerId: "p-1", input: { key: "signingKey", overlapHours: 3 } },
  { ...proposal, id: "q-2", action: "addApiKey", partnerId: "p-1", input: { name: "till", scopes: ["read"] } },
  { ...proposal, id: "q-3", action: "addOperator", input: { name: "eve", role: "admin" } },
  { ...proposal, id: "q-4", action: "changePartner", partnerId: "p-1", input: { callbackPins: [] } },
  { ...proposal, id: "q-5", action: "changeTwoAdminRule", input: { minutes: 5 } },
];
const setting = { section: "Times", unit: "ms", default: "5", meaning: "How long" };
const answers: Readonly<Record<string, unknown>> = {
  [`${api}/partners`]: of({ id: "p-1", settings: { name: "Shop" } }),
  [`${api}/operators`]: of(
    { ...person, id: "o-1", name: "ada", role: "admin" },
    { ...person, id: "o-2", name: "ben", role: "operator", revokedAt: at(3), lastUsedAt: null },
    { ...person, id: "o-3", name: "eve", role: "viewer", expiresAt: at(4) },
  ),
  [`${api}/audit`]: of(
    { ...entry, seq: 1, action: "pausePartner", subject: "p-1", ...nothing },
    { ...entry, seq: 2, action: "putTerminal", subject: "p-1/T1", ...nothing, actor: "partner p-1" },
    { ...entry, seq: 3, action: "revokeOperator", subject: "o-2", ...nothing },
    { ...entry, seq: 4, action: "readNotification", subject: "n-1", ...nothing },
    { ...entry, seq: 5, action: "abortSettlement", subject: "s-1", ...nothing },
    { ...entry, seq: 6, action: "retryReversal", subject: "t-1", ...nothing },
    { ...entry, seq: 7, action: "putAcquirer", subject: "bank", ...nothing },
    { ...entry, seq: 8, action: "resolveClearingException", subject: "e-1", ...nothing },
  ),
  [`${api}/proposals`]: of(...proposals),
  [`${api}/two-admin-rule`]: { minutes: 30 },
  [`${api}/settings`]: of(
    { ...setting, name: "PAYBELL_A_MS", value: "7", source: "environment" },
    { ...setting, name: "PAYBELL_B_MS", value: "5", source: "default" },
  ),
};

test("the audit asks by each filter, and names who, what and on what", async () => {
  const search = `actor=ada&action=pausePartner&subject=p-1&from=${at(1)}&to=${at(2)}`;
  const { asked, lines, typed } = await show(createElement(AuditPage), admin, answers, search);
  expect(typed).toMatchObject({
    ...{ Who: "ada", Did: "pause partner", "On what (id)": "p-1", From: localInput(at(1)), Before: localInput(at(2)) },
  });
  expect(asked.map(decodeURIComponent)).toContain(`GET ${api}/audit?${search}&limit=50`);
  const line = (did: string, on: string) => `${at(1)} | ada admin | ${did} | ${on} | 192.0.2.1 | Details`;
  expect(lines).toEqual([
    "When | Who | Did | On | From | Details",
    line("pause partner", "Shop → /partners/p-1"),
    line("put terminal", "Shop → /partners/p-1?tab=terminals terminal T1").replace("ada", "Shop"),
    line("revoke operator", "operator ben → /operators"),
    line("read notification", "notification n-1 → /notifications/n-1"),
    line("abort settlement", "settlement s-1 → /settlements/s-1"),
    line("retry reversal", "transaction t-1 → /transactions/t-1"),
    line("put acquirer", "acquirer bank → /acquirers"),
    line("resolve clearing exception", "clearing exception e-1 → /clearing"),
  ]);
});

test("an operator's token is revoked once, by its id", async () => {
  const { lines, click, buttons, typed } = await show(createElement(OperatorsPage), admin, answers);
  expect(lines).toEqual([
    "Operator | Role | Token | Last used | Added | Action",
    `ada | admin | until ${never} | ${at(2)} | ${at(1)} | Revoke`,
    `ben | operator | Revoked | never | ${at(1)} |`,
    `eve | viewer | Expired | ${at(2)} | ${at(1)} | Revoke`,
  ]);
  expect(buttons.filter((name) => name === "Revoke")).toHaveLength(4);
  expect(typed).toMatchObject({ Role: "viewer: reads", Days: "90" });
  expect(await click("Revoke")).toMatchObject({ sent: [`POST ${api}/operators/o-3/revoke`], stale: ["operators"] });
});

const confirmations = [
  `POST ${api}/partners/p-1/keys/rotate {"key":"signingKey","overlapHours":3,"proposal":"q-1"}`,
  `POST ${api}/partners/p-1/api-keys {"name":"till","scopes":["read"],"proposal":"q-2"}`,
  `POST ${api}/operators {"name":"eve","role":"admin","proposal":"q-3"}`,
  `PATCH ${api}/partners/p-1 {"callbackPins":[],"proposal":"q-4"}`,
  `PUT ${api}/two-admin-rule {"minutes":5,"proposal":"q-5"}`,
];

test.each([...confirmations.entries()])("proposal %i is confirmed as it was made: %s", async (nth, sent) => {
  const one = { ...answers, [`${api}/proposals`]: of(proposals[nth] ?? {}) };
  const { click } = await show(createElement(ProposalsPage), admin, one);
  expect((await click("Confirm")).sent).toEqual([sent]);
  expect(await click("Withdraw")).toMatchObject({
    sent: [`POST ${api}/proposals/q-${nth + 1}/withdraw`],
    stale: expect.arrayContaining(["proposals"]),
  });
});

test("proposals are told with their values, and nobody confirms their own", async () => {
  const { lines } = await show(createElement(ProposalsPage), admin, answers);
  expect(lines.slice(0, 2)).toEqual([
    "Action | Partner | As proposed | By | Until | Decision",
    `Rotate a key | Shop → /partners/p-1 | key signingKey, overlapHours 3 | ben | ${at(2)} | Confirm Withdraw`,
  ]);
  const own = await show(createElement(ProposalsPage), { ...admin, name: "ben" }, answers);
  expect(own.buttons).toContain("Withdraw");
  expect(own.buttons).not.toContain("Confirm");
});

test("a setting is shown with its unit, and whether it was set", async () => {
  const { lines } = await show(createElement(SettingsPage), admin, answers, "q=ms");
  expect(lines).toEqual([
    "Setting | Value | Default | Meaning",
    "PAYBELL_A_MS | 7 ms | 5 | How long",
    "PAYBELL_B_MS | 5 ms | in use | How long",
  ]);
});

test("the sandbox sends each command with what was typed, and shows what arrived", async () => {
  const ipn = { transaction_type: "SALE", amount: "12.5", currency: "USD" };
  const arrived = { notificationId: "n-1", attempt: "2", body: "sealed", at: at(1) };
  const receiver = {
    ...{ mode: "fail", partnerId: "p-1" },
    arrived: [
      { ...arrived, no: 2, status: 204, ipn },
      { ...arrived, no: 1, status: 503, ipn: null },
    ],
  };
  const page = createElement(TryPage);
  const { lines, tones, click } = await show(page, admin, { ...answers, [`${api}/sandbox/receiver`]: receiver });
  expect(lines).toEqual([
    "Answered | Arrived | Notification | Attempt | What | Show",
    `204 | ${at(1)} | n-1… → /notifications/n-1 | 2 | SALE 12.50 USD | Show`,
    `503 | ${at(1)} | n-1… → /notifications/n-1 | 2 | not opened | Show`,
  ]);
  expect(tones).toEqual(["good", "bad"]);
  const sent = async (button: string) => {
    const [one = ""] = (await click(button)).sent;
    return JSON.parse(one.replace(`POST ${api}/sandbox/commands `, "")) as object;
  };
  const terminal = { reqId: expect.any(String), tid: "T0000001", mid: "M00000001" };
  expect(await sent("Settlement")).toEqual({ command: "SETTLEMENT", ...terminal });
  expect(await sent("PreAuth")).toEqual({
    ...{ command: "PREAUTH", ...terminal, amount: "150000", merchantTransId: "order-1", currency: "VND" },
    card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
  });
});

test("the menu has the pages of administration for an admin alone, and the sandbox's in the sandbox alone", () => {
  const paths = (session: Parameters<typeof pagesOf>[0]) => pagesOf(session).map(({ to }) => to);
  const all = ["/", "/notifications", "/parked", "/partners", "/money", "/clearing", "/acquirers"];
  expect(paths(admin)).toEqual([...all, "/audit", "/operators", "/proposals", "/settings"]);
  for (const one of [operator, viewer]) expect(paths(one)).toEqual([...all, "/settings"]);
  expect(paths({ ...viewer, sandbox: true })).toEqual([...all, "/try", "/settings"]);
  expect(paths(partner)).toEqual(["/", "/notifications"]);
});
