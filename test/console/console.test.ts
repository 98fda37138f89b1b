import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { steadyTimeZone } from "../support/days.ts";
import { type ConsoleBench, startConsole, violationsInBothSchemes, violationsOf } from "./browser.ts";

let bench: ConsoleBench;
/** The operator's page, and the partner's: whoever needs a state of the browser opens another. */
let looking: Page;
let own: Page;
let otherKey: string;
let receiverUrl: string;

const saleOf = (merchantTransId: string, more: object = {}) =>
  sale({ tid: "T1", mid: "M1", merchantTransId, card: { number: "411111******1007" }, ...more });

/** By WCAG 2, of two colours such as rgb(92, 99, 107). */
function contrastOf(...colours: readonly [string, string]): number {
  const [light = 0, dark = 0] = colours
    .map((colour) => {
      const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
        const share = Number(part) / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/** Elements that do not fit: the page itself, and tables that have to be scrolled sideways. */
function tooWide(page: Page): Promise<readonly string[]> {
  return page.evaluate<string[]>(
    `[document.documentElement, ...document.querySelectorAll(".table-scroll")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map(({ tagName, scrollWidth, clientWidth }) => tagName + " " + scrollWidth + " > " + clientWidth)`,
  );
}

beforeAll(async () => {
  bench = await startConsole();
  looking = await bench.pageOfFile();
  own = await bench.pageOfFile({ token: bench.credentials["apiKey"] ?? "" });
  receiverUrl = bench.credentials["receiverUrl"] ?? "";
  const { partnerId, operatorToken } = bench.credentials;
  await bench.call("PATCH", `/operator/v1/partners/${partnerId}`, { timeZone: steadyTimeZone }, operatorToken);
  await bench.call("POST", "/v1/commands", saleOf("order-17"));
  await bench.call(
    "POST",
    "/v1/commands",
    saleOf("order-18", { callBackUrl: receiverUrl.replace("/ipn", "/ipn/down") }),
  );
  const other = await bench.call(
    "POST",
    "/operator/v1/partners",
    {
      name: "Another partner",
      callBackUrl: receiverUrl,
      callbackAddresses: ["127.0.0.0/8"],
      callingAddresses: ["127.0.0.0/8"],
    },
    operatorToken,
  );
  otherKey = String(other["apiKey"]);
});
afterAll(() => bench.close());

async function look(path: string): Promise<Page> {
  await bench.show(looking, path);
  return looking;
}

describe("the console", () => {
  test("shows the IPN's fields and its signature to an operator, and the audit records the look", async () => {
    const page = await look("/search?q=order-17");
    await page.getByRole("button", { name: "Show the IPN and its signature" }).click();
    await page.getByRole("cell", { name: "411111******1007" }).waitFor();
    await page.getByRole("tab", { name: "Signature explained" }).click();
    await page.getByText("HMAC-SHA-256 over key=value").waitFor();
    await look("/audit");
    await page.getByRole("cell", { name: "read notification" }).first().waitFor();
    await page.getByLabel("Did").fill("read notification");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.waitForURL(/action=readNotification/);
    await page.getByRole("cell", { name: "read notification" }).first().waitFor();
    expect(await page.getByRole("cell", { name: "sign in" }).count()).toBe(0);
    await page.getByLabel("Did").fill("dance");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Nothing matches").waitFor();
  });

  test("makes a Sale in the sandbox, and shows its IPN encrypted and decrypted", async () => {
    const page = await look("/try");
    await page.getByRole("textbox", { name: "Order" }).fill("tried-1");
    await page.getByRole("button", { name: "Sale", exact: true }).click();
    await page.getByText('"merchantTransId": "tried-1"').waitFor();
    await page.getByText('{"data":"').waitFor();
  });

  test("says at its field why a command of the sandbox is refused", async () => {
    const page = await look("/try");
    const amount = page.getByRole("textbox", { name: "Amount in VND" });
    await amount.fill("much");
    await page.getByRole("button", { name: "Sale", exact: true }).click();
    await page.getByText(/^amount /).waitFor();
    expect(await amount.getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator('[aria-invalid="true"]').count()).toBe(1);
  });

  test("makes the sandbox's receiver fail, hang, cut and reject, and the notification says so", async () => {
    const page = await look("/try");
    const modes = [
      ["Fail (503)", /it answered 503/],
      ["Cut", /connection/],
      ["Reject (401)", /it answered 401/],
    ] as const;
    const found = await bench.newPage();
    for (const [nth, [mode, words]] of modes.entries()) {
      await page.getByText(mode, { exact: true }).click();
      await page.getByRole("radio", { name: mode }).and(page.locator(":checked")).waitFor({ state: "attached" });
      await page.getByRole("textbox", { name: "Order" }).fill(`broken-${nth}`);
      await page.getByRole("button", { name: "Sale", exact: true }).click();
      await bench.show(found, `/search?q=broken-${nth}`);
      await found.getByText(words).first().waitFor();
    }
    await page.getByText("Hang", { exact: true }).click();
    await page.getByRole("radio", { name: "Hang" }).and(page.locator(":checked")).waitFor({ state: "attached" });
    const { operatorToken } = bench.credentials;
    expect(await bench.call("GET", "/operator/v1/sandbox/receiver", undefined, operatorToken)).toMatchObject({
      mode: "hang",
    });
    await page.getByText("Accept", { exact: true }).click();
    await page.getByRole("radio", { name: "Accept" }).and(page.locator(":checked")).waitFor({ state: "attached" });
  });

  test("shows a partner its own notifications alone", async () => {
    await bench.show(own, "/notifications");
    await own.getByRole("link", { name: "order-17" }).waitFor();
    const address = (await own.getByRole("link", { name: "order-17" }).getAttribute("href")) ?? "";
    const other = await bench.open("/notifications", { token: otherKey });
    await other.getByText("No notification yet").waitFor();
    await other.goto(`${bench.baseUrl}${address}`);
    await other.getByText("There is no such notification").waitFor();
    await other.goto(`${bench.baseUrl}/console/partners`);
    await other.getByText("There is no such page").waitFor();
  });

  test("begins with who receives nothing now, and why, for the operator and for the partner", async () => {
    const page = await look("/");
    const panel = page.getByRole("region", { name: "Trouble now" });
    await panel.getByRole("link", { name: /it answered 503/ }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await panel.locator('a[href*="/partners/"]').click();
    await page.getByText(/because its server has answered 503 since/).waitFor();
    await bench.show(own, "/");
    await own.getByText(/because your server has answered 503 since .* Next try .*; parking begins/).waitFor();
    await own.getByRole("rowheader", { name: "You" }).waitFor();
    expect(await violationsOf(own)).toEqual([]);
    await own.getByRole("link", { name: "Send them now" }).click();
    await own.getByRole("region", { name: "Send what waits now" }).getByRole("button").click();
    await own.getByRole("button", { name: /^Send \d+ now$/ }).click();
    await own.getByText(/due now: done/).waitFor();
  });

  test("shows a partner the statement of a day, and downloads it", async () => {
    await bench.show(own, "/?tab=statements");
    await own.getByRole("cell", { name: "order-17" }).waitFor();
    await own.getByText("The day is not over").waitFor();
    const downloaded = own.waitForEvent("download");
    await own.getByRole("button", { name: "Download CSV" }).click();
    expect((await downloaded).suggestedFilename()).toMatch(/^statement-\d{4}-\d\d-\d\d\.csv$/);
    expect(await violationsOf(own)).toEqual([]);
  });

  test("certifies a partner's endpoint, and shows when its certificate ends", async () => {
    await bench.show(own, "/?tab=certify");
    await own.getByRole("button", { name: "Certify" }).click();
    await own.getByRole("dialog").getByRole("button", { name: "Certify" }).click();
    await own.getByText(/All \d+ cases passed/).waitFor();
    await own.getByRole("tab", { name: "Endpoints" }).click();
    await own.getByText("The endpoint's server").waitFor();
    expect(await violationsOf(own)).toEqual([]);
  });

  test("counts what merchants sold, and opens a settled batch with its transactions", async () => {
    const { operatorToken } = bench.credentials;
    const sold = await bench.call("POST", "/v1/commands", saleOf("batch-1", { tid: "T7", mid: "M7" }));
    await bench.call("POST", "/v1/commands", { command: "SETTLEMENT", reqId: randomUUID(), tid: "T7", mid: "M7" });
    const page = await bench.open("/money?tab=merchants", { token: operatorToken ?? "", timeZone: steadyTimeZone });
    await page.getByText("M7").waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as CSV" }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toMatch(/^merchants-\d{4}-\d\d-\d\d\.csv$/);
    // Sales, Voids and Refunds with their totals, then what was reversed and declined.
    expect(await readFile(await file.path(), "utf8")).toMatch(/,M7,[^,]*,VND,1,150000,0,0,0,0,0,0\r\n/);
    await page.getByRole("tab", { name: "Batches" }).click();
    await page.getByRole("row", { name: /T7/ }).getByRole("link").first().click();
    await page.getByText("the acquirer agreed with the totals").waitFor();
    await page.locator(`a[href$="/transactions/${String(sold["id"])}"]`).waitFor();
    expect(await violationsOf(page)).toEqual([]);
  });

  test("redelivers a notification", async () => {
    const page = await look("/search?q=order-17");
    await page.getByRole("button", { name: "Redeliver", exact: true }).click();
    await page.getByText(/Delivered at the second attempt/).waitFor();
  });
});

describe("a page", () => {
  // Pages with data are in working-day.test.ts. These have none here, or are not part of a working day.
  test.each([
    "/parked",
    "/partners/new",
    "/money",
    "/money?tab=settlements",
    "/clearing",
    "/clearing?tab=files",
    "/acquirers",
    "/try",
    "/operators",
    "/nowhere",
  ])("%s passes axe in light and in dark", async (path) => {
    await look(path);
    await looking.locator("h1").first().waitFor();
    await looking.getByLabel("Loading").first().waitFor({ state: "hidden" });
    expect(await violationsInBothSchemes(looking)).toEqual([]);
  });

  test.each(["light", "dark"] as const)("has placeholders that can be read, in %s", async (scheme) => {
    const page = await bench.open("/partners/new", { scheme });
    const field = page.getByPlaceholder("Order, id, refId, last four, partner, terminal, setting");
    await field.waitFor();
    const [text, ground] = await field.evaluate((input) => {
      const { getComputedStyle } = globalThis as unknown as {
        getComputedStyle(of: unknown, part?: string): { readonly color: string; readonly backgroundColor: string };
      };
      return [getComputedStyle(input, "::placeholder").color, getComputedStyle(input).backgroundColor];
    });
    expect(contrastOf(String(text), String(ground))).toBeGreaterThanOrEqual(4.5);
  });

  test("that makes commands fits a phone, with what it made and what arrived", async () => {
    const page = await bench.open("/try", { width: 390 });
    await page.getByRole("button", { name: "PreAuth", exact: true }).click();
    await page.getByRole("button", { name: "Complete", exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Sale", exact: true }).click();
    await page.getByRole("button", { name: "Show" }).first().waitFor();
    expect(await tooWide(page)).toEqual([]);
  });

  test("whose session has ended asks for a sign-in that fits a phone, and says why a token is refused", async () => {
    const page = await bench.open("/partners/new", { width: 390, token: bench.credentials["operatorToken"] ?? "" });
    await page.getByRole("textbox", { name: "Name" }).fill("A shop");
    await page.getByLabel("Callback addresses").fill("203.0.113.0/24");
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Register" }).click();
    const dialog = page.getByRole("dialog", { name: "Your session has ended" });
    const button = dialog.getByRole("button", { name: "Sign in" });
    const [inner, outer] = [await button.boundingBox(), await dialog.boundingBox()];
    expect((inner?.x ?? 0) + (inner?.width ?? 0)).toBeLessThan((outer?.x ?? 0) + (outer?.width ?? 0));
    await dialog.getByLabel("Token").fill("nonsense");
    await button.click();
    await dialog.getByText("Nobody has this token: it is mistyped, revoked or expired.").waitFor();
    expect(await dialog.getByText("Authorization").count()).toBe(0);
  });

  test("takes at most 300 kB when it is first opened", async () => {
    const page = await bench.open("/");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.waitForLoadState("networkidle");
    const bytes = await page.evaluate<number>(
      `performance.getEntries().filter(({ name }) => name.includes("/console")).reduce((all, { encodedBodySize = 0 }) =>
        all + encodedBodySize, 0)`,
    );
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThanOrEqual(300_000);
  });
});
