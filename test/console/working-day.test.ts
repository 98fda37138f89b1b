import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violationsOf } from "./browser.ts";
import { type Scenario, startScenario } from "./scenario.ts";

/** Set: the pictures of docs/operator/console.md are taken anew. */
const takesPictures = process.env["PAYBELL_PICTURES"] !== undefined;
const pictures = join(import.meta.dirname, "../../docs/operator/console");
const limitMs = 120_000;

let scenario: Scenario;
beforeAll(async () => {
  scenario = await startScenario();
}, limitMs);
afterAll(() => scenario.close());

/** A person at the console, whose clicks and keys are counted. A text is typed at once, as a paste is. */
class User {
  readonly page: Page;
  clicks = 0;
  keys = 0;

  constructor(page: Page) {
    this.page = page;
  }

  async click(what: Locator): Promise<void> {
    await what.click();
    this.clicks += 1;
  }

  async search(text: string): Promise<void> {
    await this.page.keyboard.press("/");
    await this.page.keyboard.insertText(text);
    await this.page.keyboard.press("Enter");
    this.keys += 3;
  }

  /** From the menu. */
  async go(name: string): Promise<void> {
    await this.click(this.page.getByRole("navigation").getByRole("link", { name, exact: true }));
  }

  async sees(text: RegExp): Promise<string> {
    const found = this.page.getByText(text).first();
    await found.waitFor();
    return (await found.innerText()).trim();
  }
}

const questions: readonly (readonly [asked: string, answer: (user: User) => Promise<string>])[] = [
  [
    "order-17: did they get it?",
    async (user) => {
      await user.search("order-17");
      return await user.sees(/Delivered at/);
    },
  ],
  [
    "why has Bakery & Sons had nothing since 10:00?",
    async (user) => {
      await user.go("Partners");
      await user.click(user.page.getByRole("link", { name: "Bakery & Sons" }));
      await user.click(user.page.getByRole("link", { name: "Its notifications" }));
      await user.click(user.page.getByRole("link", { name: "loaf-2" }));
      return await user.sees(/it answered 500/);
    },
  ],
  [
    "was this Sale settled?",
    async (user) => {
      await user.search(scenario.settledOrder);
      await user.sees(/Delivered at/);
      await user.click(user.page.locator('.fields a[href*="/transactions/"]').first());
      return await user.sees(/in batch/);
    },
  ],
  [
    "who rotated the key?",
    async (user) => {
      await user.go("Audit");
      const row = user.page.getByRole("row", { name: /rotate key/ }).first();
      await row.waitFor();
      return (await row.innerText()).replaceAll(/\s+/g, " ");
    },
  ],
  [
    "which are parked, and why? Send them again",
    async (user) => {
      await user.go("Parked");
      const row = user.page.getByRole("row", { name: /loaf-1/ });
      await row.waitFor();
      const why = (await row.innerText()).replaceAll(/\s+/g, " ");
      await user.click(user.page.getByRole("button", { name: "Count them first" }));
      await user.click(user.page.getByRole("button", { name: /Send \d+ again/ }));
      return `${why}; ${await user.sees(/due again: done/)}`;
    },
  ],
];

interface View {
  readonly path: () => string;
  readonly scheme?: "light" | "dark";
  readonly width?: number;
  readonly token?: () => string;
}

const views: Readonly<Record<string, View>> = {
  overview: { path: () => "/" },
  "overview-dark": { path: () => "/", scheme: "dark" },
  notification: { path: () => "/search?q=order-18" },
  settlement: { path: () => `/settlements/${scenario.settlementId}` },
  acquirers: { path: () => "/acquirers", scheme: "dark" },
  money: { path: () => "/money" },
  "catch-up": { path: () => "/?tab=catch-up", token: () => scenario.bakery.secrets.apiKey },
  phone: { path: () => "/search?q=order-18", scheme: "dark", width: 390 },
  "phone-settlement": { path: () => `/settlements/${scenario.settlementId}`, width: 390 },
  "phone-acquirers": { path: () => "/acquirers", width: 390 },
  "phone-parked": { path: () => "/parked", width: 390 },
};

const lists: Readonly<Record<string, () => string>> = {
  "the notifications": () => "/notifications",
  "what a search found": () => "/search?q=order-",
  "the parked ones": () => "/parked",
  "the partners": () => "/partners",
  "the endpoints that failed": () => "/partners?tab=endpoints",
  "a partner's figures": () => `/partners/${scenario.cafe.id}`,
  "a partner's keys": () => `/partners/${scenario.cafe.id}?tab=keys`,
  "the money in doubt": () => "/money",
  "the transactions": () => "/money?tab=transactions",
  "the batches": () => "/money?tab=batches",
  "the merchants": () => "/money?tab=merchants",
  "a settlement's transactions": () => `/settlements/${scenario.settlementId}`,
  "the acquirers' terminals": () => "/acquirers",
  "the audit": () => "/audit",
  "the operators": () => "/operators",
  "the settings": () => "/settings",
};

/** The tables of the page that have to be scrolled sideways, by their columns. */
const cutTables = `[...document.querySelectorAll(".table-scroll")]
  .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
  .map((table) => table.querySelector("thead").innerText.replaceAll(/\\s+/g, " "))`;
const isPageCut = "document.documentElement.scrollWidth > document.documentElement.clientWidth";

describe("in the middle of a working day", () => {
  test.each(Object.entries(lists))(
    "all columns of %s are seen on a desktop, a tablet and a phone",
    async (_, path) => {
      const page = await scenario.browser.open(path());
      await page.locator(".dense-table tbody tr").first().waitFor();
      for (const [width, height] of [
        [1_280, 800],
        [1_024, 768],
        [390, 844],
      ] as const) {
        await page.setViewportSize({ width, height });
        await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
        expect(await page.evaluate(cutTables), String(width)).toEqual([]);
        expect(await page.evaluate(isPageCut), String(width)).toBe(false);
      }
      await page.context().close();
    },
    limitMs,
  );

  test.each(Object.entries(views))(
    "the view %s fits its window, and passes axe",
    async (name, { path, token, ...how }) => {
      const page = await scenario.browser.open(path(), { ...how, ...(token && { token: token() }) });
      await page.locator("h1").first().waitFor();
      await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
      const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
        "({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })",
      );
      expect(scrollWidth).toBeLessThanOrEqual(clientWidth);
      if (takesPictures) await page.screenshot({ path: join(pictures, `${name}.png`), animations: "disabled" });
      expect(await violationsOf(page)).toEqual([]);
      await page.context().close();
    },
    limitMs,
  );

  test(
    "an acquirer's transactions are one click from its page",
    async () => {
      const page = await scenario.browser.open("/acquirers");
      await page
        .getByRole("region", { name: "first-bank", exact: true })
        .getByRole("link", { name: "Its transactions" })
        .click();
      await page.getByRole("cell", { name: "75,000 VND" }).waitFor();
      expect(await page.locator("tbody tr").count()).toBe(1);
      await page.goBack();
      await page
        .getByRole("region", { name: "The acquirer of the settings" })
        .getByRole("link", { name: "Its transactions" })
        .click();
      await page.getByRole("cell", { name: "250,000 VND" }).waitFor();
      expect(await page.getByRole("cell", { name: "75,000 VND" }).count()).toBe(0);
      await page.getByRole("combobox", { name: "Acquirer" }).click();
      await page.getByRole("option", { name: "first-bank" }).click();
      await page.getByRole("cell", { name: "75,000 VND" }).waitFor();
      expect(await violationsOf(page)).toEqual([]);
    },
    limitMs,
  );

  test.each(questions)(
    "“%s” is answered with nothing but the console",
    async (asked, answer) => {
      const page = await scenario.browser.open("/");
      await page.getByText("Money in doubt").waitFor();
      const user = new User(page);
      const beganMs = performance.now();
      const found = await answer(user);
      const s = ((performance.now() - beganMs) / 1_000).toFixed(1);
      process.stdout.write(`| ${asked} | ${found} | ${user.clicks} | ${user.keys} | ${s} |\n`);
      expect(user.clicks + user.keys).toBeLessThanOrEqual(4);
      await page.context().close();
    },
    limitMs,
  );
});
