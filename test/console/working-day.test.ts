import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { violationsInBothSchemes, violationsOf } from "./browser.ts";
import { type Scenario, startScenario } from "./scenario.ts";

/** Set: the pictures of docs/operator/console.md are taken anew. */
const takesPictures = process.env["PAYBELL_PICTURES"] !== undefined;
const pictures = join(import.meta.dirname, "../../docs/operator/console");
const limitMs = 300_000;

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

/** As high as the page's content: a picture has no empty end. A phone's is as high as a phone. */
async function takePicture(page: Page, name: string): Promise<void> {
  const { width, height } = page.viewportSize() ?? { width: 1_280, height: 800 };
  const ends = await page.evaluate<number>(
    `Math.max(...[...document.querySelectorAll("main > *, nav > *")].map((one) => one.getBoundingClientRect().bottom))`,
  );
  const endsAt = Math.ceil(ends) + 16;
  await page.setViewportSize({ width, height: width < 500 ? Math.min(height, endsAt) : endsAt });
  await page.screenshot({ path: join(pictures, `${name}.png`), animations: "disabled" });
}

async function newest(kind: "batches" | "transactions"): Promise<string> {
  const { body } = await scenario.service.operator("GET", `/operator/v1/${kind}?limit=1`);
  return `/${kind}/${(body["items"] as { id: string }[])[0]?.id}`;
}

const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  "the notifications": () => "/notifications",
  "what a search found": () => "/search?q=order-",
  "the parked ones": () => "/parked",
  "the partners": () => "/partners",
  "the endpoints that failed": () => "/partners?tab=endpoints",
  "a partner's figures": () => `/partners/${scenario.cafe.id}`,
  "a partner's settings": () => `/partners/${scenario.cafe.id}?tab=settings`,
  "a partner's keys": () => `/partners/${scenario.cafe.id}?tab=keys`,
  "the money in doubt": () => "/money",
  "the transactions": () => "/money?tab=transactions",
  "the batches": () => "/money?tab=batches",
  "a batch": () => newest("batches"),
  "a transaction": () => newest("transactions"),
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
  test.each(Object.entries(pages))(
    "the page of %s shows all columns on a desktop, a tablet and a phone, and passes axe in light and in dark",
    async (_, path) => {
      const page = await scenario.browser.open(await path());
      await page.locator("h1").first().waitFor();
      for (const [width, height] of [
        [390, 844],
        [1_024, 768],
        [1_280, 800],
      ] as const) {
        await page.setViewportSize({ width, height });
        await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
        expect(await page.evaluate(cutTables), String(width)).toEqual([]);
        // A chart takes the new width a moment later.
        await page.waitForFunction(`!(${isPageCut})`, undefined, { timeout: limitMs / 6 });
      }
      expect(await violationsInBothSchemes(page)).toEqual([]);
    },
    limitMs,
  );

  test(
    "a partner's catch-up passes axe in light and in dark",
    async () => {
      const page = await scenario.browser.open("/?tab=catch-up", { token: scenario.bakery.secrets.apiKey });
      await page.getByRole("heading", { name: "Parked", exact: true }).waitFor();
      expect(await violationsInBothSchemes(page)).toEqual([]);
    },
    limitMs,
  );

  test(
    "the keyboard alone leads from the batches to a transaction, and from an acquirer to what went to it",
    async () => {
      const page = await scenario.browser.open("/money?tab=batches");
      const rows = page.locator("tr[data-opens]");
      await rows.first().waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: /^Batch 0/ }).waitFor();
      await rows.first().waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Chain" }).waitFor();
      await page.goto(`${scenario.browser.baseUrl}/console/acquirers`);
      const link = page.getByRole("link", { name: "Its transactions" }).last();
      await link.waitFor();
      const isFocused = () =>
        page.evaluate<boolean>(
          `document.activeElement === [...document.links].filter((one) => one.innerText === "Its transactions").at(-1)`,
        );
      // A page that is still loading begins the way through it anew.
      for (let nth = 0; nth < 400 && !(await isFocused()); nth += 1) await page.keyboard.press("Tab");
      expect(await isFocused()).toBe(true);
      await page.keyboard.press("Enter");
      await page.getByRole("cell", { name: "75,000 VND" }).waitFor();
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
      if (takesPictures) await takePicture(page, name);
      expect(await violationsOf(page)).toEqual([]);
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
    },
    limitMs,
  );
});
