import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import type { TestPartner } from "../support/service.ts";
import { consoleOfFile } from "./browser.ts";

const { service, browser } = await consoleOfFile();

/** The requests at addresses that end so, from now on. */
function requestsOf(page: Page, end: string): unknown[] {
  const requests: unknown[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith(end)) requests.push(request);
  });
  return requests;
}

const delivered = async (partner: TestPartner) => (await partner.notify(sale(), "accepted")).id;

const settingsOf = async ({ id }: TestPartner) =>
  (await service.operator("GET", `/operator/v1/partners/${id}`)).body["settings"] as Record<string, unknown>;

describe("an action", () => {
  test("that was confirmed is not run again by more clicks while its dialog closes, but can be confirmed anew", async () => {
    // Its button stays when it has succeeded; that of a key's rotation is replaced by the new key's.
    const partner = await service.register({ name: "Clicked", callBackUrlChange: "partner" });
    const page = await browser.open("/?tab=endpoints", { token: partner.secrets.apiKey, moves: true });
    const changes = requestsOf(page, "/v1/callback-url");
    for (const times of [1, 2]) {
      await page.getByLabel("New URL").fill(partner.server.url);
      await page.getByRole("button", { name: "Test and change" }).click();
      const confirm = page.getByRole("dialog").getByRole("button", { name: "Test and change" });
      await confirm.waitFor();
      await confirm.evaluate(
        (button: { isConnected: boolean; click(): void }) =>
          new Promise<void>((done) => {
            const timer = setInterval(() => {
              button.click();
              if (button.isConnected) return;
              clearInterval(timer);
              done();
            }, 10);
          }),
      );
      expect(changes).toHaveLength(times);
    }
  });

  test("is asked for in one place from the first moment, where the system asks for less motion", async () => {
    const { id } = await service.register({ name: "Still" });
    const page = await browser.open(`/partners/${id}`);
    await page.getByRole("button", { name: "Pause deliveries" }).waitFor();
    const tops = await page.evaluate<number[]>(`new Promise((done) => {
      const tops = [];
      const look = () => {
        const dialog = document.querySelector("[role=dialog]");
        if (dialog !== null) tops.push(Math.round(dialog.getBoundingClientRect().top));
        if (tops.length < 10) requestAnimationFrame(look);
        else done(tops);
      };
      look();
      [...document.querySelectorAll("button")].find((one) => one.innerText === "Pause deliveries").click();
    })`);
    expect([...new Set(tops)]).toHaveLength(1);
  });

  test("by the key r runs once, however long the key is held, and not while it is under way", async () => {
    const id = await delivered(await service.register({ name: "Held" }));
    const page = await browser.open(`/notifications/${id}`);
    const redeliveries = requestsOf(page, "/redeliver");
    await page.getByText(/Delivered at the first attempt/).waitFor();
    await page.keyboard.down("r");
    await page.getByText(/Delivered at the second attempt/).waitFor();
    await page.keyboard.down("r");
    await page.keyboard.up("r");
    // Keys are handled in their order.
    await page.keyboard.press("Shift+?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    expect(redeliveries).toHaveLength(1);

    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const held = Promise.withResolvers<void>();
    await page.route("**/redeliver", async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.keyboard.press("r");
    await page.locator("button[data-loading]").waitFor();
    await page.keyboard.press("r");
    await page.keyboard.press("Shift+?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    held.resolve();
    await page.getByText(/Delivered at the third attempt/).waitFor();
    expect(redeliveries).toHaveLength(2);
  });
});

describe("an emptied field", () => {
  test("of a rotation's overlap ends no key at once", async () => {
    const partner = await service.register({ name: "Rotating" });
    const page = await browser.open(`/partners/${partner.id}?tab=keys`);
    await page.getByRole("button", { name: "Rotate" }).last().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Overlap in hours").fill("");
    expect(await dialog.getByRole("button", { name: "Rotate" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Overlap in hours").fill("0");
    expect(await dialog.getByRole("button", { name: "Rotate" }).isDisabled()).toBe(false);
  });

  test("of a partner's settings is sent as it is, and the API says at the field what it needs", async () => {
    const partner = await service.register({ name: "Emptied" });
    const page = await browser.open(`/partners/${partner.id}?tab=settings`);
    const names = ["Retry schedule", "POSTs in flight, at most", "Time zone"];
    for (const name of names) await page.getByRole("textbox", { name }).fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Nothing was done").waitFor();
    for (const name of names) {
      expect(await page.getByRole("textbox", { name }).getAttribute("aria-invalid"), name).toBe("true");
    }
    expect(await settingsOf(partner)).toMatchObject({ maxInFlight: 32, timeZone: "UTC" });
  });

  test.each(["?tab=merchants", "?tab=merchants&day=yesterday"])(
    "of the merchants' day shows today, and so does an address with an invalid day: %s",
    async (query) => {
      const page = await browser.open(`/money${query}`);
      await page.getByLabel("Day").fill("2026-01-31");
      await page.waitForURL(/day=2026-01-31/);
      await page.getByLabel("Day").fill("");
      await page.waitForURL((url) => url.searchParams.get("day") === null);
      expect(await page.getByLabel("Day").inputValue()).toBe(new Date().toISOString().slice(0, 10));
      await page.goto(`${browser.baseUrl}/console/money${query}`);
      await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
      expect(await page.getByRole("alert").count()).toBe(0);
    },
  );
});

test("a merchant's day is the viewer's, also when its clocks change", async () => {
  const page = await browser.newPage({ timeZone: "Europe/Berlin" });
  const asked = page.waitForRequest("**/operator/v1/merchants?*");
  await page.goto(`${browser.baseUrl}/console/money?tab=merchants&day=2026-03-29`);
  const { searchParams } = new URL((await asked).url());
  expect([searchParams.get("from"), searchParams.get("to")]).toEqual([
    "2026-03-28T23:00:00.000Z",
    "2026-03-29T22:00:00.000Z",
  ]);
});

test("two people who change different settings of a partner do not undo each other's change", async () => {
  const partner = await service.register({ name: "Shared", maxInFlight: 32 });
  const page = await browser.open(`/partners/${partner.id}?tab=settings`);
  await page.getByRole("textbox", { name: "Name" }).fill("Shared by two");
  await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, { maxInFlight: 4, retry: [5, 60] });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("It holds for what is queued, too").waitFor();
  expect(await settingsOf(partner)).toMatchObject({ name: "Shared by two", maxInFlight: 4, retry: [5, 60] });
  // The answer's settings replace those that the form was filled with.
  expect(await page.getByRole("textbox", { name: "POSTs in flight, at most" }).inputValue()).toBe("4");
  await page.getByRole("textbox", { name: "POSTs a second, at most" }).fill("7");
  const saved = page.waitForRequest((request) => request.method() === "PATCH");
  await page.getByRole("button", { name: "Save" }).click();
  expect((await saved).postDataJSON()).toEqual({ maxPerSecond: 7 });
});

test("two people who change different fields of a terminal do not undo each other's change", async () => {
  const partner = await service.register({ name: "Shared terminal" });
  const path = `/operator/v1/partners/${partner.id}/terminals`;
  await service.operator("PUT", `${path}/T9000077`, { mid: "M1", merchantName: "Corner", appName: "Till 1" });
  const page = await browser.open(`/partners/${partner.id}?tab=terminals`);
  await page
    .getByRole("row", { name: /T9000077/ })
    .getByRole("button", { name: "Change" })
    .click();
  await page.getByLabel("Merchant's name").fill("Corner shop");
  await service.operator("PUT", `${path}/T9000077`, { mid: "M2", merchantName: "Corner", appName: "" });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("T9000077 is saved").waitFor();
  expect((await service.operator("GET", path)).body["items"]).toMatchObject([
    { mid: "M2", merchantName: "Corner shop", appName: "" },
  ]);
});

describe("the proof of a delivery", () => {
  test("is saved as a file, and a refusal is shown instead of saved", async () => {
    const id = await delivered(await service.register({ name: "Disputed" }));
    const page = await browser.open(`/notifications/${id}`);
    const button = page.getByRole("button", { name: "Proof of delivery" });
    const saved = page.waitForEvent("download");
    await button.click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe(`proof-${id}.json`);
    const chunks: Buffer[] = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer);
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ proof: { id } });

    const files: unknown[] = [];
    page.on("download", (one) => void files.push(one));
    await page.route("**/proof", (route) =>
      route.fulfill({ status: 404, json: { status: 404, code: "not_found", detail: "There is no such proof." } }),
    );
    await button.click();
    await page.getByRole("alert").getByText("There is no such proof.").waitFor();
    expect(files).toEqual([]);
  });

  test("is not offered to a viewer, who may not have it", async () => {
    const id = await delivered(await service.register({ name: "Viewed" }));
    const { body } = await service.operator("POST", "/operator/v1/operators", { name: "vera", role: "viewer" });
    const page = await browser.open(`/notifications/${id}`, { token: String(body["token"]) });
    await page.getByText(/Delivered at the first attempt/).waitFor();
    expect(await page.getByText("Proof of delivery").count()).toBe(0);
  });
});

describe("a page beyond the role of an operator", () => {
  const viewer = async (path: string) => {
    const { body } = await service.operator("POST", "/operator/v1/operators", { name: `v${path}`, role: "viewer" });
    return await browser.open(path, { token: String(body["token"]) });
  };

  test("has no form to fill in", async () => {
    const page = await viewer("/partners/new");
    await page.getByText("Ask an admin to register the partner").waitFor();
    expect(await page.getByRole("textbox", { name: "Name" }).count()).toBe(0);
  });

  test("offers no other try", async () => {
    const page = await viewer("/audit");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
  });
});
