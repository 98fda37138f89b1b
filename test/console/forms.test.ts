import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { consoleOfFile, violationsInBothSchemes } from "./browser.ts";

const { service, browser } = await consoleOfFile();
const partner = await service.register({ name: "Filled in", callBackUrlChange: "partner" });
// Nothing is changed by wrong input: one loads the console's code once for all forms.
const operators = await browser.pageOfFile();

interface Case {
  readonly form: string;
  readonly path: () => string;
  /** Signs in the partner itself. */
  readonly isOwn?: boolean;
  /** Opens a dialog first. */
  readonly opens?: string;
  readonly wrong: Readonly<Record<string, string>>;
  readonly submit: string;
  /** The dialog that confirms. */
  readonly confirms?: boolean;
  /** The fields that are marked then, with their problems. */
  readonly says: Readonly<Record<string, RegExp>>;
}

const ofPartner = (tab: string) => () => `/partners/${partner.id}?tab=${tab}`;

const cases: readonly Case[] = [
  {
    form: "a registration",
    path: () => "/partners/new",
    wrong: { Name: "A shop", "Callback URL": "ftp://shop.example", "Callback addresses": "203.0.113.0/24" },
    submit: "Register",
    says: { "Callback URL": /callBackUrl is not an absolute https:\/\/ URL/ },
  },
  {
    form: "an operator",
    path: () => "/operators",
    wrong: { Days: "99999" },
    submit: "Add",
    says: { Name: /name must have 1 to 100 characters/, Days: /expiresInDays must be a whole number from 1 to 366/ },
  },
  {
    form: "the rule of two admins",
    path: () => "/proposals",
    wrong: { "Minutes to confirm": "99999" },
    submit: "Change",
    says: { "Minutes to confirm": /minutes must be at most 10080/ },
  },
  {
    form: "the rule of two admins, emptied",
    path: () => "/proposals",
    wrong: { "Minutes to confirm": "" },
    submit: "Change",
    says: { "Minutes to confirm": /minutes must be a number/ },
  },
  {
    form: "a terminal without an id",
    path: ofPartner("terminals"),
    wrong: {},
    submit: "Register",
    says: { "Terminal (tid)": /tid is missing/ },
  },
  {
    form: "a terminal",
    path: ofPartner("terminals"),
    wrong: { "Terminal (tid)": "T".repeat(20), "Merchant's name": "M".repeat(200) },
    submit: "Register",
    says: {
      "Terminal (tid)": /tid has over 16 characters/,
      "Merchant (mid)": /mid must not be empty/,
      "Merchant's name": /merchantName has over 128 characters/,
    },
  },
  {
    form: "a terminal of an unknown acquirer",
    path: ofPartner("terminals"),
    wrong: { "Terminal (tid)": "T1", "Merchant (mid)": "M1", Acquirer: "nobody" },
    submit: "Register",
    says: { Acquirer: /acquirer is not the name of a registered one/ },
  },
  {
    form: "an API key",
    path: ofPartner("keys"),
    wrong: { Name: "4111 1111 1111 1111", Days: "0" },
    submit: "Add",
    says: { Name: /looks like a full card number/, Days: /expiresInDays must be a whole number/ },
  },
  {
    form: "a rotation",
    path: ofPartner("keys"),
    opens: "Rotate",
    wrong: { "Overlap in hours": "9999" },
    submit: "Rotate",
    confirms: true,
    says: { "Overlap in hours": /overlapHours must be at most 720/ },
  },
  {
    form: "a partner's settings",
    path: ofPartner("settings"),
    wrong: { Name: "", "Callback addresses": "300.1.1.1/99", "Retry schedule": "soon" },
    submit: "Save",
    says: { Name: /name must not be empty/, "Callback addresses": /must be a CIDR/, "Retry schedule": /retry/ },
  },
  {
    form: "the messages to a partner",
    path: ofPartner("settings"),
    wrong: { "By mail to": "nobody", "By webhook to": "shop.example" },
    submit: "Save",
    says: {
      "By mail to": /must be a mail address such as .* the service sends no mail/,
      "By webhook to": /contactUrl is not an absolute https:\/\/ URL/,
    },
  },
  {
    form: "a certification",
    path: ofPartner("certify"),
    wrong: { URL: "ftp://shop.example" },
    submit: "Certify",
    confirms: true,
    says: { URL: /url is not an absolute https:\/\/ URL/ },
  },
  {
    form: "a link to the pages of a partner",
    path: () => `/partners/${partner.id}`,
    opens: "Share a view",
    wrong: { Minutes: "9999" },
    submit: "Make the link",
    says: { Minutes: /minutes must be at most 60/ },
  },
  {
    form: "a partner's change of its callback URL",
    path: () => "/?tab=endpoints",
    isOwn: true,
    wrong: { "New URL": "shop.example" },
    submit: "Test and change",
    confirms: true,
    says: { "New URL": /callBackUrl is not an absolute https:\/\/ URL/ },
  },
  {
    form: "the filters of the audit",
    path: () => "/audit",
    wrong: { Who: "x".repeat(200) },
    submit: "Apply",
    says: { Who: /actor has over 128 characters/ },
  },
];

const field = (page: Page, name: string) => page.getByRole("textbox", { name, exact: false }).last();

/** What is said at a field, its description included. */
async function saidAt(page: Page, name: string): Promise<string> {
  const ids = (await field(page, name).getAttribute("aria-describedby"))?.trim().split(/\s+/) ?? [];
  return (await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).innerText()))).join(" ");
}

describe("wrong input", () => {
  test.each(cases)(
    "in the form of $form is refused beside the field it is in",
    async ({ path, isOwn, opens, wrong, submit, confirms, says }) => {
      const page = isOwn === true ? await browser.newPage({ token: partner.secrets.apiKey }) : operators;
      await browser.show(page, path());
      if (opens !== undefined) await page.getByRole("button", { name: opens }).first().click();
      for (const [name, text] of Object.entries(wrong)) await field(page, name).fill(text);
      if (opens === undefined) await page.getByRole("button", { name: submit, exact: true }).click();
      if (opens !== undefined || confirms === true)
        await page.getByRole("dialog").getByRole("button", { name: submit, exact: true }).click();
      await page.locator('[aria-invalid="true"]').first().waitFor();
      for (const [name, problem] of Object.entries(says)) expect(await saidAt(page, name), name).toMatch(problem);
      for (const [name, text] of Object.entries(wrong)) expect(await field(page, name).inputValue(), name).toBe(text);
      expect(await page.locator('[aria-invalid="true"]').count()).toBe(Object.keys(says).length);
    },
  );
});

describe("an action that found nothing to do", () => {
  test("says so: settings that are as they were, and a rule that holds already", async () => {
    const page = await browser.open(`/partners/${partner.id}?tab=settings`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("There is nothing to save").waitFor();
    await page.goto(`${browser.baseUrl}/console/proposals`);
    await page.getByRole("textbox", { name: "Minutes to confirm" }).fill("0");
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByText("There is nothing to change").waitFor();
    await page.goto(`${browser.baseUrl}/console/parked?partner=${partner.id}`);
    await page.getByText("There is none to send").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing to search for").waitFor();
  });
});

test("an operator names who gets a partner's messages, and the partner sees it", async () => {
  const page = await browser.open(`/partners/${partner.id}?tab=settings`);
  await page.getByRole("textbox", { name: "By webhook to" }).fill(`${partner.server.url}/messages`);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("It holds for what is queued, too").waitFor();
  expect(await violationsInBothSchemes(page)).toEqual([]);
  const own = await browser.open("/?tab=settings", { token: partner.secrets.apiKey });
  await own.getByText(`${partner.server.url}/messages`).waitFor();
});
