import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answerTo, FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "../support/commands.ts";
import { steadyTimeZone } from "../support/days.ts";
import { lateTerminal, registerBank, settledLate } from "../support/late-settlement.ts";
import {
  callHttp,
  eventually,
  operatorToken,
  startTestService,
  type TestPartner,
  type WholeService,
} from "../support/service.ts";
import { type ConsoleBrowser, cutTables, openBrowser, violationsInBothSchemes } from "./browser.ts";

const today = new Date().toISOString().slice(0, 10).replaceAll("-", "");
const refIdOf = (traceNo: string) => `4170000${traceNo.slice(-5)}`;

let service: WholeService;
let host: FakeHost;
let partner: TestPartner;
let browser: ConsoleBrowser;
let fileId: string;

interface Done {
  readonly id: string;
  readonly refId: string;
  readonly traceNo: string;
  readonly notification: { readonly id: string } | null;
}

async function run(command: object): Promise<Done> {
  const { status, body, text } = await partner.run({ reqId: randomUUID(), ...command });
  if (status !== 200) throw new Error(text);
  return body as unknown as Done;
}

const sell = (amount: string) => run(sale({ ...lateTerminal, amount, merchantTransId: `order-${amount}` }));

/** A file in which every kind of line occurs, and each way to differ from the ledger. */
async function postFile(): Promise<string> {
  const settled = await sell("90000");
  await run({ command: "SETTLEMENT", ...lateTerminal });
  const refund = await run({ command: "REFUND", transactionId: settled.id, amount: "40000" });
  const [agreed, dearer, declined] = [await sell("1000"), await sell("2000"), await sell("5100")];
  await sell("3000");
  if (agreed.notification !== null) await partner.settled(agreed.notification.id, "accepted");
  const line = (kind: string, { traceNo }: Pick<Done, "traceNo">, amount: string, reason = "") =>
    [kind, refIdOf(traceNo), traceNo, lateTerminal.tid, amount, today, reason].join(",");
  const lines = [
    "TYPE,RRN,STAN,TID,AMOUNT,DATE,REASON",
    line("S", settled, "90000"),
    line("R", refund, "40000"),
    line("S", agreed, "1000"),
    line("S", dearer, "2500"),
    line("S", { traceNo: "990099" }, "7000"),
    line("S", declined, "5100"),
    line("F", agreed, "10", "interchange"),
    `F,,,,70,${today},monthly`,
    line("C", agreed, "1000", "4837 no authorisation by the cardholder"),
    "",
  ];
  const path = "/operator/v1/clearing-files?acquirer=bank&name=2026-11-25%20settlement%20of%20the%20bank.csv";
  const { body, status, text } = await callHttp(service.baseUrl, "POST", path, {
    key: operatorToken,
    body: lines.join("\n"),
  });
  if (status !== 202) throw new Error(text);
  const id = String(body["id"]);
  await eventually("the file to be matched", async () => {
    const { body: file } = await service.operator("GET", `/operator/v1/clearing-files/${id}`);
    return file["state"] === "done" ? true : undefined;
  });
  return id;
}

beforeAll(async () => {
  [service, host] = await Promise.all([startTestService(), FakeHost.listen()]);
  host.answer = (request) => {
    const answered = answerTo(request, request.fields.get(4) === "000000510000" ? "51" : "00");
    if (!request.mti.startsWith("02")) return answered;
    const fields = [...answered.fields, [37, refIdOf(request.fields.get(11) ?? "")], [38, "A1B2C3"]] as const;
    return { ...answered, fields: new Map([...fields].sort(([one], [other]) => one - other)) };
  };
  partner = await service.register({ name: "Cafe on the corner", refunds: "silent", timeZone: steadyTimeZone });
  const columns = {
    ...{ kind: "TYPE", refId: "RRN", trace: "STAN", tid: "TID", amount: "AMOUNT", date: "DATE", reason: "REASON" },
  };
  const kinds = { S: "sale", R: "refund", F: "fee", C: "chargeback" };
  const clearing = { format: "csv", header: true, columns, kinds, currency: "VND", daysMax: 0 };
  await registerBank(service, host, partner, clearing);
  fileId = await postFile();
  browser = await openBrowser(service.baseUrl);
});
afterAll(async () => {
  await browser.close();
  await service.stop();
  await host.close();
});

async function fits(page: Page): Promise<void> {
  for (const [width, height] of [
    [390, 844],
    [1_024, 768],
    [1_280, 800],
  ] as const) {
    await page.setViewportSize({ width, height });
    await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
    expect(await page.evaluate(cutTables), String(width)).toEqual([]);
  }
  expect(await violationsInBothSchemes(page)).toEqual([]);
}

const rows = async (page: Page) =>
  (await page.locator("tbody tr").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));

test("the page Clearing lists what differs, with both sides, and one is worked off with a reason", async () => {
  const page = await browser.open("/clearing", { token: operatorToken });
  await page.getByRole("cell", { name: "Chargeback", exact: true }).waitFor();
  const shown = await rows(page);
  expect(shown).toHaveLength(5);
  for (const text of [
    /Missing here .*7,000 VND/,
    /Missing there .*3,000 VND/,
    /Different .*amount: 2,000 VND here, 2,500 VND there/,
    /Different .*ERROR 51/,
    /Chargeback .*1,000 VND 4837 no auth/,
  ]) {
    expect(shown).toContainEqual(expect.stringMatching(text));
  }
  await fits(page);
  const row = page.getByRole("row", { name: /Missing here/ });
  await row.getByRole("button", { name: "Resolve" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("the bank takes the line back");
  await dialog.getByRole("button", { name: "Resolve" }).click();
  await row.waitFor({ state: "detached" });
  expect(await rows(page)).toHaveLength(4);
  await page.getByRole("combobox", { name: "State" }).click();
  await page.getByRole("option", { name: "Resolved" }).click();
  await page.getByText("the bank takes the line back").waitFor();
  expect(await page.getByRole("button", { name: "Resolve" }).count()).toBe(0);
  await fits(page);
});

test("a clearing file's page has its counts, its totals and its exceptions", async () => {
  const page = await browser.open("/clearing?tab=files", { token: operatorToken });
  const link = page.getByRole("link", { name: /settlement of the bank\.csv/ });
  await link.waitFor();
  await fits(page);
  await link.click();
  await page.getByRole("cell", { name: "refund", exact: true }).waitFor();
  await page.getByRole("cell", { name: "Chargeback", exact: true }).waitFor();
  await fits(page);
  expect(new URL(page.url()).pathname).toBe(`/console/clearing/${fileId}`);
});

test("a settlement that the acquirer accepted after its abort is in doubt until the operator resolves it", async () => {
  const id = await settledLate(service, host, partner);
  const page = await browser.open(`/settlements/${id}`, { token: operatorToken });
  await page.getByText("In doubt: the acquirer settled it after it was aborted").waitFor();
  await page.getByText("settlement late").waitFor();
  await fits(page);
  await page.getByRole("button", { name: "Resolve" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("the bank settled the first Sale only");
  await dialog.getByRole("button", { name: "Resolve" }).click();
  await page.getByText("settlement resolved").waitFor();
  await page.getByText("In doubt: the acquirer settled it").waitFor({ state: "detached" });
  expect(await page.getByRole("button", { name: "Resolve" }).count()).toBe(0);
  await run({ command: "SETTLEMENT", ...lateTerminal });
  await page.goto(`${browser.baseUrl}/console/money?tab=batches`);
  await page.getByRole("cell", { name: lateTerminal.tid }).first().waitFor();
  await fits(page);
  await page.getByRole("cell", { name: lateTerminal.tid }).first().click();
  await page.getByRole("heading", { name: /^Batch 0/ }).waitFor();
  await page.locator("tbody tr").nth(4).waitFor();
  await fits(page);
});

test("a partner's statement has a line for each transaction, and its batches and settlements below", async () => {
  const page = await browser.open("/?tab=statements", { token: partner.secrets.apiKey });
  await page.getByRole("cell", { name: "order-1000", exact: true }).waitFor();
  await fits(page);
  const sold = { saleQuantity: 3, saleTotalAmount: "60", voidQuantity: 2, voidTotalAmount: "30" };
  const batch = { ...sold, refundQuantity: 1, refundTotalAmount: "7", netAmount: "23", currency: "VND" };
  const items = [{ id: randomUUID(), closedAt: new Date().toISOString(), tid: "T1", batchNo: "000009", ...batch }];
  await page.route("**/v1/batches?*", (route) => route.fulfill({ json: { items, next: null } }));
  await page.reload();
  await page.getByRole("row", { name: "000009 60 (3) 30 (2) 7 (1) 23 VND" }).waitFor();
});
