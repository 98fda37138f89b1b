import type { Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HttpTestService } from "../packages/server/src/http/service.fixture.ts";
import { type ConsoleBrowser, type OpenOptions, openBrowser, violationsOf } from "./console/browser.ts";

const firstLoadBytesMax = 150_000;
const pages = ["/docs/", "/docs/partner/what-to-book", "/docs/operator/runbook", "/docs/reference/errors"];

let service: HttpTestService;
let browser: ConsoleBrowser;
beforeAll(async () => {
  service = await new HttpTestService().listen();
  browser = await openBrowser(`http://127.0.0.1:${service.port}`);
});
afterAll(async () => {
  await browser.close();
  await service.close();
});

interface Opened {
  readonly page: Page;
  /** The browser's errors, such as a script that the policy refuses. */
  readonly complaints: readonly string[];
  readonly requests: readonly Request[];
}

async function open(path: string, options: OpenOptions = {}): Promise<Opened> {
  const { page, complaints, requests } = {
    page: await browser.newPage(options),
    complaints: [] as string[],
    requests: [] as Request[],
  };
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("requestfinished", (request) => requests.push(request));
  await page.goto(`${browser.baseUrl}${path}`, { waitUntil: "networkidle" });
  return { page, complaints, requests };
}

describe("the guides in a browser", () => {
  test.each(pages)(
    "%s loads at most 150 kB, all of it from the service, and the policy refuses nothing",
    async (path) => {
      const { complaints, requests } = await open(path);
      const sizes = await Promise.all(requests.map((request) => request.sizes()));
      const bytes = sizes.reduce(
        (sum, { responseBodySize, responseHeadersSize }) => sum + responseBodySize + responseHeadersSize,
        0,
      );
      expect(bytes).toBeGreaterThan(50_000);
      expect(bytes).toBeLessThan(firstLoadBytesMax);
      for (const request of requests) expect(request.url()).toMatch(new RegExp(`^(?:${browser.baseUrl}/docs/|data:)`));
      expect(complaints).toEqual([]);
    },
  );

  test("a search finds the section of an error code, without another server", async () => {
    const { page, complaints, requests } = await open("/docs/");
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("Search").fill("invalid_cursor");
    await page.locator(".result").filter({ hasText: "invalid_cursor" }).first().click();
    await page.waitForURL(/\/docs\/reference\/errors#invalid_cursor$/);
    expect(requests.filter((request) => !request.url().startsWith(browser.baseUrl))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test("the API reference shows the operations", async () => {
    const { page, complaints } = await open("/docs/api");
    await page.getByText("/v1/commands").first().waitFor();
    expect(complaints).toEqual([]);
  });

  test.each([
    { width: 390, scheme: "light" },
    { width: 390, scheme: "dark" },
    { width: 1440, scheme: "dark" },
  ] as const)(
    "a page of $width pixels in $scheme breaks no rule of accessibility, and is not wider",
    async (options) => {
      const { page } = await open("/docs/partner/what-to-book", options);
      expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(options.width);
      expect(await page.locator("html.dark").count()).toBe(options.scheme === "dark" ? 1 : 0);
      expect(await violationsOf(page)).toEqual([]);
    },
  );
});
