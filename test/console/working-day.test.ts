import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestPartner } from "../support/service.ts";
import { cutTables, type OpenOptions, violationsInBothSchemes, violationsOf } from "./browser.ts";
import { type Scenario, startScenario } from "./scenario.ts";

/** Set: the pictures of docs/operator/console.md are taken anew. */
const takesPictures = process.env["PAYBELL_PICTURES"] !== undefined;
const pictures = join(import.meta.dirname, "../../docs/operator/console");
let scenario: Scenario;
/** One for each who looks: nothing changes what they see but what they do themselves. */
const pagesOf = new Map<TestPartner | undefined, Page>();
beforeAll(async () => {
  scenario = await startScenario();
});
afterAll(() => scenario.close());

async function show(path: string, partner?: TestPartner): Promise<Page> {
  const token = partner?.secrets.apiKey;
  const page = pagesOf.get(partner) ?? (await scenario.browser.pageOfFile(token === undefined ? {} : { token }));
  pagesOf.set(partner, page);
  await scenario.browser.show(page, path);
  return page;
}

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

  async fill(what: Locator, text: string): Promise<void> {
    await what.fill(text);
    this.keys += 1;
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

interface Question {
  readonly asked: string;
  /** Who asks; left out: the operator. */
  readonly partner?: () => TestPartner;
  readonly answer: (user: User) => Promise<string>;
}

const gotIt = async (user: User) => {
  await user.search("order-17");
  const answer = await user.sees(/Delivered at the first attempt/);
  expect(user.page.url()).toMatch(/\/console\/notifications\/[0-9a-f-]{36}$/);
  return answer;
};
const whyNot = async (user: User) => {
  await user.search("order-18");
  return await user.sees(/it answered 503; next try in/);
};
const moved = async (user: User) => {
  await user.search(scenario.settledOrder);
  await user.sees(/Delivered at/);
  return await user.sees(/^Approved by the acquirer, and settled in batch \d+/);
};
/** The figures of the partner, what its endpoint answered, and when its certificate ends. */
const figures = async (user: User, whose: RegExp) => {
  const row = user.page.getByRole("row", { name: whose });
  await user.page.getByText("The endpoint's server").waitFor();
  await user.page.getByRole("cell", { name: "it answered 500" }).first().waitFor();
  return (await row.innerText()).replaceAll(/\s+/g, " ");
};
const sendAgain = async (user: User) => {
  await user.fill(user.page.getByLabel("Created from"), scenario.beganAt.slice(0, 16));
  const replay = user.page.getByRole("region", { name: "Send what is parked again" });
  await user.click(replay.getByRole("button", { name: "Count them first" }));
  await user.click(replay.getByRole("button", { name: /Send \d+ again/ }));
  return await user.sees(/due again: done/);
};

const questions: readonly Question[] = [
  {
    asked: "who rotated the key?",
    answer: async (user) => {
      await user.go("Audit");
      const row = user.page.getByRole("row", { name: /rotate key/ }).first();
      await row.waitFor();
      return (await row.innerText()).replaceAll(/\s+/g, " ");
    },
  },
  { asked: "order-17: did they get it?", answer: gotIt },
  { asked: "order-17: did we get it?", partner: () => scenario.cafe, answer: gotIt },
  { asked: "order-18: why not?", answer: whyNot },
  { asked: "order-18: why not, as the partner?", partner: () => scenario.cafe, answer: whyNot },
  {
    asked: "Bakery & Sons: is it us or them?",
    answer: async (user) => {
      const failing = user.page.getByRole("region", { name: "Failed attempts of the last hour" });
      await user.click(failing.getByRole("link", { name: "Bakery & Sons" }));
      await user.page.getByRole("row", { name: /All partners/ }).waitFor();
      await user.sees(/^It is (?:at this partner|not this partner alone): of the attempts at all others \d/);
      return await figures(user, /This partner/);
    },
  },
  {
    asked: "is it us or them, as the partner?",
    partner: () => scenario.bakery,
    answer: (user) => figures(user, /You/),
  },
  {
    asked: "Bakery & Sons: send again what failed since then",
    answer: async (user) => {
      const failing = user.page.getByRole("region", { name: "Failed attempts of the last hour" });
      await user.click(failing.getByRole("row", { name: /Bakery & Sons/ }).locator('a[href*="/parked"]'));
      return await sendAgain(user);
    },
  },
  {
    asked: "send again what failed since then, as the partner",
    partner: () => scenario.bakery,
    answer: async (user) => {
      await user.click(user.page.getByRole("tab", { name: "Catch-up" }));
      return await sendAgain(user);
    },
  },
  { asked: "did the money of this Sale move?", answer: moved },
  { asked: "did the money of this Sale move, as the partner?", partner: () => scenario.cafe, answer: moved },
];

interface Look {
  readonly path: () => string | Promise<string>;
  /** Who looks; left out: the operator. */
  readonly partner?: () => TestPartner;
  /** What comes last. */
  readonly shows?: RegExp;
  /** Its pictures. Where one is of a phone, axe looks at the page on a phone, too. */
  readonly pictures?: Readonly<Record<string, OpenOptions>>;
}

const [phone, dark] = [{ width: 390 }, { scheme: "dark" }] as const;
const pages: Readonly<Record<string, Look>> = {
  "the overview": { path: () => "/", pictures: { overview: {}, "overview-dark": dark } },
  "the notifications": { path: () => "/notifications" },
  "what a search found": { path: () => "/search?q=order-" },
  "a notification": {
    path: () => "/search?q=order-18",
    shows: /^Approved by the acquirer; not settled yet/,
    pictures: { notification: {}, phone: { ...phone, ...dark } },
  },
  "the parked ones": { path: () => "/parked", pictures: { "phone-parked": phone } },
  "a partner's catch-up": {
    path: () => "/?tab=catch-up",
    partner: () => scenario.bakery,
    shows: /^Parked$/,
    pictures: { "catch-up": {} },
  },
  "the partners": { path: () => "/partners" },
  "the endpoints that failed": { path: () => "/partners?tab=endpoints" },
  "a partner's figures": { path: () => `/partners/${scenario.cafe.id}` },
  "a partner's settings": { path: () => `/partners/${scenario.cafe.id}?tab=settings` },
  "a partner's keys": { path: () => `/partners/${scenario.cafe.id}?tab=keys` },
  "the money in doubt": { path: () => "/money", pictures: { money: {} } },
  "the transactions": { path: () => "/money?tab=transactions" },
  "the batches": { path: () => "/money?tab=batches" },
  "a batch": { path: () => newest("batches") },
  "a transaction": { path: () => newest("transactions") },
  "the merchants": { path: () => "/money?tab=merchants" },
  "a settlement's transactions": {
    path: () => `/settlements/${scenario.settlementId}`,
    pictures: { settlement: {}, "phone-settlement": phone },
  },
  "the acquirers' terminals": { path: () => "/acquirers", pictures: { acquirers: dark, "phone-acquirers": phone } },
  "the audit": { path: () => "/audit" },
  "the operators": { path: () => "/operators" },
  "the settings": { path: () => "/settings" },
};

/** The page once it shows everything. */
async function arrived(page: Page, { shows }: Look): Promise<Page> {
  await page.locator("h1").first().waitFor();
  await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
  if (shows !== undefined) await page.getByText(shows).first().waitFor();
  return page;
}

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

const isPageCut = "document.documentElement.scrollWidth > document.documentElement.clientWidth";

describe("in the middle of a working day", () => {
  test.each(Object.entries(pages))(
    "the page of %s shows all columns on a desktop, a tablet and a phone, and passes axe in light and in dark",
    async (_, look) => {
      const { partner, pictures = {} } = look;
      const as = partner && { token: partner().secrets.apiKey };
      const path = await look.path();
      const page = await arrived(await show(path, partner?.()), look);
      const isOnPhone = Object.values(pictures).some(({ width }) => width === phone.width);
      for (const [width, height] of [
        [phone.width, 844],
        [1_024, 768],
        [1_280, 800],
      ] as const) {
        await page.setViewportSize({ width, height });
        await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
        expect(await page.evaluate(cutTables), String(width)).toEqual([]);
        // A chart takes the new width a moment later.
        await expect.poll(() => page.evaluate(isPageCut), { message: String(width) }).toBe(false);
        if (width === 1_280 || (width === phone.width && isOnPhone))
          expect(await violationsInBothSchemes(page), String(width)).toEqual([]);
      }
      if (!takesPictures) return;
      for (const [name, how] of Object.entries(pictures))
        await takePicture(await arrived(await scenario.browser.open(path, { ...how, ...as }), look), name);
    },
  );

  test("the keyboard alone leads from the batches to a transaction, and from an acquirer to what went to it", async () => {
    const page = await show("/money?tab=batches");
    const rows = page.locator("tr[data-opens]");
    await rows.first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Batch 0/ }).waitFor();
    await rows.first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Chain" }).waitFor();
    await show("/acquirers");
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
  });

  test("an acquirer's transactions are one click from its page", async () => {
    const page = await show("/acquirers");
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
  });

  test.each(questions)("“$asked” is answered with nothing but the console", async ({ asked, partner, answer }) => {
    // The endpoint of what is sent again by one question fails for the next one, too.
    await scenario.parkAgain();
    const page = await show("/", partner?.());
    await page
      .getByText(/Delivered/)
      .first()
      .waitFor();
    const user = new User(page);
    const beganMs = performance.now();
    const found = await answer(user);
    const s = ((performance.now() - beganMs) / 1_000).toFixed(1);
    process.stdout.write(`| ${asked} | ${found} | ${user.clicks} | ${user.keys} | ${s} |\n`);
    expect(user.clicks + user.keys).toBeLessThanOrEqual(4);
  });
});
