import type { Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { consoleOfFile, violationsInBothSchemes } from "./browser.ts";

const { service, browser } = await consoleOfFile();
const partner = await service.register({ name: "Corner shop", retry: [1] });
await put("small", { amount: "1000" });
await put("declined", { amount: "250000", card: { ...(sale()["card"] as object), token: "tok_decline_51" } });
partner.server.answersAlways(500);
await put("parked", { amount: "90000" }, "parked");
partner.server.answersAlways(204);

async function put(merchantTransId: string, more: object, state: "accepted" | "parked" = "accepted"): Promise<void> {
  await partner.notify(sale({ merchantTransId, ...more }), state);
}

const orders = (page: Page) => page.locator("tbody tr a[href*='/notifications/']").allInnerTexts();

/** The list shows these orders, in this order. */
async function shows(page: Page, expected: readonly string[]): Promise<void> {
  await expect.poll(() => orders(page)).toEqual(expected);
}

async function choose(page: Page, name: string, option: string): Promise<void> {
  await page.getByRole("combobox", { name, exact: true }).click();
  await page.getByRole("option", { name: option }).click();
}

describe("the notifications", () => {
  test("are found by result, reason, amount and time, and a wrong amount is marked at its field", async () => {
    const page = await browser.open("/notifications");
    await shows(page, ["parked", "declined", "small"]);
    await page
      .getByRole("row", { name: /declined/ })
      .getByText("declined (51)")
      .waitFor();
    await choose(page, "Result", "Declined");
    await shows(page, ["declined"]);
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await choose(page, "Reason", "its answer was not 2xx");
    await shows(page, ["parked"]);
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await page.getByRole("button", { name: "More filters" }).click();
    const amount = page.getByRole("textbox", { name: "Amount from" });
    await amount.fill("a lot");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("must be a decimal number").waitFor();
    expect(await amount.getAttribute("aria-invalid")).toBe("true");
    await amount.fill("90000");
    await page.getByRole("textbox", { name: "Amount to" }).fill("250000");
    await page.getByRole("button", { name: "Apply" }).click();
    await shows(page, ["parked", "declined"]);
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await choose(page, "Time", "Between…");
    await page.getByLabel("Created before").fill("2026-01-31T10:00");
    await page.getByText("Nothing matches").waitFor();
    expect(new URL(page.url()).searchParams.get("to")).toBe("2026-01-31T10:00:00.000Z");
    expect(await violationsInBothSchemes(page)).toEqual([]);
  });

  test("are sorted by a column, up, down, and as they were", async () => {
    const page = await browser.open("/notifications");
    await shows(page, ["parked", "declined", "small"]);
    const heading = page.getByRole("columnheader", { name: "Amount" });
    await heading.getByRole("button").click();
    await shows(page, ["small", "parked", "declined"]);
    expect(await heading.getAttribute("aria-sort")).toBe("ascending");
    await heading.getByRole("button").click();
    await shows(page, ["declined", "parked", "small"]);
    await heading.getByRole("button").click();
    await shows(page, ["parked", "declined", "small"]);
    expect(await heading.getAttribute("aria-sort")).toBeNull();
  });

  test("of a filter are a view under a name, which the browser keeps, and forgets", async () => {
    const page = await browser.open("/notifications?result=declined");
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByLabel("Name of this view").fill("No money");
    await page.getByRole("button", { name: "Save" }).click();
    await page.goto(`${browser.baseUrl}/console/notifications`);
    await shows(page, ["parked", "declined", "small"]);
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByRole("menuitem", { name: "No money" }).click();
    await shows(page, ["declined"]);
    await page.getByRole("button", { name: "Views" }).click();
    await page.getByRole("button", { name: "Forget No money" }).click();
    await page.getByRole("menuitem", { name: "No money" }).waitFor({ state: "detached" });
  });

  test("that come are shown by themselves while the list follows, and wait behind a button otherwise", async () => {
    const page = await browser.open("/notifications?contains=followed");
    await page.getByText("Nothing matches").waitFor();
    await put("followed-1", {});
    await page.getByRole("button", { name: "1 new" }).click();
    await shows(page, ["followed-1"]);
    await page.getByRole("switch", { name: "Follow" }).click();
    await put("followed-2", {});
    await shows(page, ["followed-2", "followed-1"]);
    expect(await page.getByRole("button", { name: /new$/ }).count()).toBe(0);
  });

  test("show how long ago they came, also while the page stays open", async () => {
    const page = await browser.open("/notifications?contains=declined");
    await shows(page, ["declined"]);
    // Ages that are no longer shown do not stop the others.
    await browser.show(page, "/notifications?contains=small");
    await shows(page, ["small"]);
    const age = page.getByRole("row", { name: /small/ }).locator("time").first();
    await expect.poll(() => age.innerText()).toMatch(/ ago$/);
    const first = await age.innerText();
    await expect.poll(() => age.innerText()).not.toBe(first);
  });

  test("that are selected are sent together, and none beside them", async () => {
    partner.server.answersAlways(500);
    for (const order of ["chosen-1", "chosen-2", "chosen-3"]) await put(order, {}, "parked");
    partner.server.answersAlways(204);
    const page = await browser.open("/notifications?contains=chosen");
    await shows(page, ["chosen-3", "chosen-2", "chosen-1"]);
    for (const order of ["chosen-1", "chosen-3"]) {
      await page
        .getByRole("row", { name: new RegExp(order) })
        .getByRole("checkbox")
        .check();
    }
    const panel = page.getByRole("region", { name: "2 selected" });
    await panel.getByRole("button", { name: "Count them first" }).click();
    await panel.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 of 2 delivered").waitFor();
    const parked = await service.operator("GET", "/operator/v1/notifications?state=parked&contains=chosen");
    expect((parked.body["items"] as { subject: object }[]).map(({ subject }) => subject)).toMatchObject([
      { merchantTransId: "chosen-2" },
    ]);
  });

  test("that leave the filter's state, or come to be in it, are shown by themselves while the list follows", async () => {
    partner.server.answersAlways(500);
    const { id } = await partner.notify(sale({ merchantTransId: "moved-1" }), "parked");
    await put("moved-2", {}, "parked");
    const page = await browser.open("/notifications?state=parked&contains=moved");
    await shows(page, ["moved-2", "moved-1"]);
    await page.getByRole("switch", { name: "Follow" }).click();
    const again = async (answer: number, state: string) => {
      partner.server.answersAlways(answer);
      await partner.call("POST", `/v1/notifications/${id}/redeliver`);
      await partner.settled(id, state);
    };
    await again(204, "accepted");
    await shows(page, ["moved-2"]);
    await again(500, "parked");
    await shows(page, ["moved-2", "moved-1"]);
    // A partner that has accepted nothing since is in trouble.
    await again(204, "accepted");
    await shows(page, ["moved-2"]);
  });

  test("that wait show their retry schedule, from what was tried to the parking", async () => {
    const patient = await service.register({ name: "Patient", retry: [1, 3_600, 7_200] });
    patient.server.answersAlways(503);
    await patient.run(sale({ merchantTransId: "scheduled" }));
    const page = await browser.open("/search?q=scheduled");
    const steps = page.getByRole("list", { name: "Retry schedule" }).getByRole("listitem");
    await expect
      .poll(async () => (await steps.allInnerTexts()).map((text) => text.split("\n")[0]?.replace(/ h.*/, " h")))
      // Jitter moves the next try, and the last one is at the schedule's end.
      .toEqual(["503", "503", "Next try", expect.stringMatching(/^\+ [12] h$/), "Parked"]);
  });
});

describe("terminals", () => {
  test("are registered, changed, found by the search box, and released", async () => {
    const page = await browser.open(`/partners/${partner.id}?tab=terminals`);
    await page.getByRole("textbox", { name: "Terminal (tid)" }).fill("T0000077");
    await page.getByRole("textbox", { name: "Merchant (mid)" }).fill("M0000077");
    await page.getByRole("textbox", { name: "Merchant's name" }).fill("Harbour kiosk");
    await page.getByRole("button", { name: "Register", exact: true }).click();
    const row = page.getByRole("row", { name: /T0000077/ });
    await row.waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await row.getByRole("button", { name: "Change" }).click();
    await page.getByRole("textbox", { name: "Merchant's name" }).fill("Harbour cafe");
    await page.getByRole("button", { name: "Save" }).click();
    await row.getByText("Harbour cafe").waitFor();
    await page.keyboard.press("Escape");
    await page.goto(`${browser.baseUrl}/console/search?q=harbour`);
    await page.waitForURL(/tab=terminals/);
    await row.getByRole("button", { name: "Release" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Release" }).click();
    await row.waitFor({ state: "detached" });
  });
});

describe("the search box", () => {
  test("finds partners, operators, settings and pages by name", async () => {
    await service.operator("POST", "/operator/v1/operators", { name: "corneria", role: "viewer" });
    const page = await browser.open("/search?q=corner");
    await page.getByRole("row", { name: /^Operator/ }).waitFor();
    await page
      .getByRole("row", { name: /^Partner/ })
      .getByRole("link")
      .click();
    await page.getByRole("heading", { name: "Corner shop" }).waitFor();
    await page.goto(`${browser.baseUrl}/console/search?q=drain_timeout`);
    await page.waitForURL(/\/settings\?q=/);
    await page.getByText("PAYBELL_DRAIN_TIMEOUT_MS").waitFor();
    await page.goto(`${browser.baseUrl}/console/search?q=acquirers`);
    await page.getByRole("heading", { name: "Acquirers" }).waitFor();
  });
});

test("a partner that receives nothing is not green, and the audit names what an action was about", async () => {
  const away = await service.register({ name: "Away", retry: [3_600] });
  away.server.answersAlways(500);
  await away.run(sale());
  const page = await browser.open("/partners");
  await page.getByRole("row", { name: /Away/ }).getByText("Not receiving").waitFor();
  await page
    .getByRole("row", { name: /Corner shop/ })
    .getByText("Active")
    .waitFor();
  await service.operator("PATCH", `/operator/v1/partners/${away.id}`, { maxInFlight: 7 });
  await page.goto(`${browser.baseUrl}/console/audit`);
  const row = page.getByRole("row", { name: /change partner Away/ });
  await row.getByRole("button", { name: "Details" }).click();
  await page.getByText("settings.maxInFlight: 32 → 7").waitFor();
  expect(await violationsInBothSchemes(page)).toEqual([]);
});

test("a certificate that ends within two weeks is not green", async () => {
  const page = await browser.newPage();
  const ending = { whose: "server", target: "shop.example", problem: null };
  const items = [13, 15].map((days) => ({ ...ending, endsAt: new Date(Date.now() + days * 86_400_000) }));
  await page.route("**/certificates", (route) => route.fulfill({ json: { items } }));
  await browser.show(page, `/partners/${partner.id}?tab=endpoints`);
  const states = page.getByRole("row", { name: /The endpoint's server/ }).locator(".state");
  await expect.poll(() => states.allInnerTexts()).toEqual(["Ends in 13 days", "Valid"]);
});

test.each([
  ["nothing", (route: Route) => route.abort()],
  ["a proxy's 502", (route: Route) => route.fulfill({ status: 502, body: "<html>Bad gateway</html>" })],
] as const)("at %s the page says that the service does not answer, until it does", async (_, answers) => {
  const page = await browser.open("/notifications");
  await page.getByRole("link", { name: "small" }).waitFor();
  const away = page.getByText("The service does not answer.");
  let isAway = true;
  await page.route("**/operator/v1/**", (route) => (isAway ? answers(route) : route.continue()));
  await page.getByRole("link", { name: "Partners" }).click();
  await away.waitFor();
  await page.getByRole("link", { name: "Money" }).click();
  isAway = false;
  await page.getByRole("tab", { name: "Transactions" }).waitFor();
  await away.waitFor({ state: "detached" });
});
