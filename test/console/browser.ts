import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import chromium from "@sparticuz/chromium";
import axe from "axe-core";
import { type Browser, type BrowserContext, type Page, chromium as playwright } from "playwright-core";
import { freePort, type SpokenProcess, spawnPaybell } from "../support/instance.ts";

export interface ConsoleBench {
  readonly baseUrl: string;
  readonly credentials: Readonly<Record<string, string>>;
  /** A page of somebody's own: with cookies of its own. */
  open(path: string, options?: OpenOptions): Promise<Page>;
  /** Calls the API as the sandbox partner, or with another key. */
  call(method: string, path: string, json?: unknown, key?: string): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

interface OpenOptions {
  readonly width?: number;
  readonly scheme?: "light" | "dark";
  /** Signs in with it; left out: the sandbox signs in by itself. */
  readonly token?: string;
}

const startMs = 60_000;

/** A sandbox in a process of its own, and a browser that is looked at by nobody. */
export async function startConsole(env: NodeJS.ProcessEnv = {}): Promise<ConsoleBench> {
  const home = await mkdtemp(join(tmpdir(), "paybell-console-"));
  await chmod(home, 0o711);
  const sandbox: SpokenProcess = spawnPaybell(["sandbox"], {
    PAYBELL_HOME: home,
    PAYBELL_PORT: String(await freePort()),
    ...env,
  });
  await sandbox.said((line) => line.match(/ready in/));
  const credentials = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Record<string, string>;
  const baseUrl = credentials["baseUrl"] ?? "";
  const browser: Browser = await playwright.launch({
    executablePath: await chromium.executablePath(),
    args: ["--no-sandbox", "--disable-gpu"],
    timeout: startMs,
  });
  const contexts: BrowserContext[] = [];
  return {
    baseUrl,
    credentials,
    async open(path, { width = 1280, scheme = "light", token } = {}) {
      const viewport = { width, height: width < 500 ? 844 : 800 };
      const context = await browser.newContext({ viewport, colorScheme: scheme, locale: "en-GB", timezoneId: "UTC" });
      contexts.push(context);
      if (token !== undefined) await context.request.post(`${baseUrl}/console/session`, { data: { token } });
      const page = await context.newPage();
      page.setDefaultTimeout(20_000);
      await page.goto(`${baseUrl}/console${path}`);
      return page;
    },
    async call(method, path, json, key = credentials["apiKey"] ?? "") {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      });
      return (await response.json()) as Record<string, unknown>;
    },
    async close() {
      for (const context of contexts) await context.close();
      await browser.close();
      sandbox.signal("SIGKILL");
      await sandbox.exited;
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The violations that axe finds on the page: WCAG 2 A and AA. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  // The page's own policy allows no script from elsewhere: this one is put in by the debugger's protocol.
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    const { violations } = await loaded.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
    );
  });
  return found;
}
