import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import chromium from "@sparticuz/chromium";
import axe from "axe-core";
import { type Browser, type Page, chromium as playwright } from "playwright-core";
import { afterAll, onTestFinished } from "vitest";
import { type SpokenProcess, spawnPaybell } from "../support/instance.ts";
import { freePort } from "../support/ports.ts";
import { serviceOfFile, type WholeService } from "../support/service.ts";

/** A headless browser at the console of a service. */
export interface ConsoleBrowser {
  readonly baseUrl: string;
  /** A page of the console for another user, with separate cookies, until the test ends. */
  open(path: string, options?: OpenOptions): Promise<Page>;
  /** The same, and nothing is loaded yet. */
  newPage(options?: OpenOptions): Promise<Page>;
  /** One that stays until the browser is closed, for tests that only look. */
  pageOfFile(options?: OpenOptions): Promise<Page>;
  /** Shows a page as a link does: the first one loads the console's code, which takes longer than all else. */
  show(page: Page, path: string): Promise<void>;
  close(): Promise<void>;
}

export interface ConsoleBench extends ConsoleBrowser {
  readonly credentials: Readonly<Record<string, string>>;
  /** Calls the API as the sandbox partner, or with another key. */
  call(method: string, path: string, json?: unknown, key?: string): Promise<Record<string, unknown>>;
}

export interface OpenOptions {
  readonly width?: number;
  readonly scheme?: "light" | "dark";
  /** Signs in with it; left out: the sandbox signs in by itself. */
  readonly token?: string;
  readonly timeZone?: string;
  /** Dialogs slide into their place, and out of it; left out: the system asks for less motion, and they do not. */
  readonly moves?: boolean;
}

const startMs = 60_000;
const builtPages = join(import.meta.dirname, "../../packages/console/dist/index.html");

/** A sandbox in a separate process, and a headless browser. */
export async function startConsole(): Promise<ConsoleBench> {
  const home = await mkdtemp(join(tmpdir(), "paybell-console-"));
  await chmod(home, 0o711);
  const sandbox: SpokenProcess = spawnPaybell(["sandbox"], {
    PAYBELL_HOME: home,
    PAYBELL_PORT: String(await freePort()),
  });
  await sandbox.said((line) => line.match(/ready in/));
  const credentials = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Record<string, string>;
  const baseUrl = credentials["baseUrl"] ?? "";
  const browser = await openBrowser(baseUrl);
  return {
    ...browser,
    credentials,
    async call(method, path, json, key = credentials["apiKey"] ?? "") {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      });
      return (await response.json()) as Record<string, unknown>;
    },
    async close() {
      await browser.close();
      sandbox.signal("SIGKILL");
      await sandbox.exited;
      await rm(home, { recursive: true, force: true });
    },
  };
}

interface ConsoleOfFile {
  readonly service: WholeService;
  readonly browser: ConsoleBrowser;
}

/** A service, and a browser at its console, for the tests of a file. */
export async function consoleOfFile(env: NodeJS.ProcessEnv = {}): Promise<ConsoleOfFile> {
  const service = await serviceOfFile({ env });
  const browser = await openBrowser(service.baseUrl);
  afterAll(() => browser.close());
  return { service, browser };
}

export async function openBrowser(baseUrl: string): Promise<ConsoleBrowser> {
  if (!existsSync(builtPages)) throw new Error("the console's pages are not built: `npm run console` builds them");
  const browser: Browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: ["--no-sandbox", "--disable-gpu"],
    timeout: startMs,
  });
  const pageOfFile = async (options: OpenOptions = {}) => {
    const { width = 1280, scheme = "light", token, timeZone = "UTC", moves = false } = options;
    const viewport = { width, height: width < 500 ? 844 : 800 };
    const here = { locale: "en-GB", timezoneId: timeZone };
    // A button that moves between the pointer's down and up is not clicked.
    const reducedMotion = moves ? "no-preference" : "reduce";
    const context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion, ...here });
    if (token !== undefined) await context.request.post(`${baseUrl}/console/session`, { data: { token } });
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    return page;
  };
  const newPage = async (options?: OpenOptions) => {
    const page = await pageOfFile(options);
    // An open page continues to ask the service.
    onTestFinished(() => page.context().close());
    return page;
  };
  return {
    baseUrl,
    newPage,
    pageOfFile,
    async open(path, options) {
      const page = await newPage(options);
      await page.goto(`${baseUrl}/console${path}`);
      return page;
    },
    async show(page, path) {
      if (!page.url().startsWith(baseUrl)) return void (await page.goto(`${baseUrl}/console${path}`));
      // By a page that does not exist: whatever was filled in or opened is gone. The search box is on all of them.
      for (const to of ["/nowhere", path])
        await page.evaluate(`history.pushState(null, "", "/console${to}"); document.activeElement.blur()`);
    },
    close: () => browser.close(),
  };
}

/** The tables of the page that have to be scrolled sideways, by their columns. */
export const cutTables = `[...document.querySelectorAll(".table-scroll")]
  .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
  .map((table) => table.querySelector("thead").innerText.replaceAll(/\\s+/g, " "))`;

/** The rules of axe for which the scheme matters: the others judge the same elements again. */
const rulesOfColours = ["color-contrast", "link-in-text-block"];

/** The violations that axe finds on the page: WCAG 2 A and AA. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  return await runAxe(page, { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
}

/** The same in light and, where only colours differ, in dark. The page is loaded once. */
export async function violationsInBothSchemes(page: Page): Promise<readonly string[]> {
  await showScheme(page, "light");
  const inLight = await violationsOf(page);
  await showScheme(page, "dark");
  const inDark = await runAxe(page, { type: "rule", values: rulesOfColours });
  return [...inLight, ...inDark.map((violation) => `dark: ${violation}`)];
}

async function showScheme(page: Page, scheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme: scheme });
  await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor();
  // Colours of an open page change gradually.
  await page.evaluate(
    "document.getAnimations().filter((one) => one instanceof CSSTransition).forEach((one) => one.finish())",
  );
}

async function runAxe(page: Page, runOnly: axe.RunOnly): Promise<readonly string[]> {
  // The page's policy allows no foreign script, so this one is injected through the debugger's protocol.
  if (await page.evaluate<boolean>("globalThis.axe === undefined")) await page.evaluate(axe.source);
  return await page.evaluate(async (rules) => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    // Elements that pass are not described.
    const { violations } = await loaded.run({ runOnly: rules, resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
    );
  }, runOnly);
}
