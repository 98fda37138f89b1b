import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { next } from "../../packages/server/src/acquirer/simulator/behaviour.ts";
import { sale } from "../support/commands.ts";
import { steadyTimeZone } from "../support/days.ts";
import { startPartnerServer } from "../support/receiver.ts";
import { eventually, type TestPartner } from "../support/service.ts";
import { consoleOfFile, violationsInBothSchemes, violationsOf } from "./browser.ts";

const { service, browser } = await consoleOfFile();

/** A partner of whose notifications so many are parked. */
async function withParked(name: string, count: number): Promise<TestPartner> {
  const partner = await service.register({ name, retry: [1] });
  partner.server.answersAlways(500);
  for (let nth = 0; nth < count; nth += 1) {
    await partner.notify(sale({ merchantTransId: `${name}-${nth}` }), "parked");
  }
  partner.server.answersAlways(204);
  return partner;
}

/** Has each step of a replay send one, and holds those after the first until `go` is called. */
async function holdSteps(page: Page, path: string) {
  const held = Promise.withResolvers<void>();
  const limits: unknown[] = [];
  await page.route(`**${path}`, async (route) => {
    const body = route.request().postDataJSON() as { dryRun?: boolean; limit?: number };
    if (body.dryRun === true) return await route.continue();
    if (limits.push(body.limit) > 1) await held.promise;
    return await route.continue({ postData: JSON.stringify({ ...body, limit: 1 }) });
  });
  return { go: () => held.resolve(), limits };
}

describe("a replay", () => {
  test("counts first, shows its progress, and stops when it is told to", async () => {
    const partner = await withParked("replayed", 3);
    // A time of another day would be shown with its date.
    const page = await browser.open(`/parked?partner=${partner.id}`, { timeZone: steadyTimeZone });
    const { go, limits } = await holdSteps(page, "/operator/v1/redeliveries");
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByText(/^3 would be sent again, .* 3 SALE, the oldest of \S+; to the registered URL\.$/).waitFor();
    await page.getByRole("button", { name: "Send 3 again" }).click();
    await page.getByText("1 of 3 due again").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    go();
    await page.getByText("2 of 3 due again: stopped").waitFor();
    expect(limits, "never more than was counted").toEqual([3, 2]);
    const parked = await service.operator("GET", `/operator/v1/notifications?partner=${partner.id}&state=parked`);
    expect(parked.body["items"]).toHaveLength(1);
    await page.getByText("2 of 2 delivered").waitFor();
    await page.getByRole("link", { name: "Link to this" }).click();
    await page.getByRole("heading", { name: "Replay" }).waitFor();
    await page.getByText("2 of 2 delivered").waitFor();
    // The partner is out of trouble. What is still parked is a quiet line.
    await page.goto(`${browser.baseUrl}/console/`);
    const task = page.getByRole("region", { name: "Waits for a person" });
    await task.getByText(/^replayed: 1 is parked at .* answered 500\. Its server accepts others again/).waitFor();
    expect(await page.getByRole("region", { name: "Trouble now" }).count()).toBe(0);
    expect(await violationsOf(page)).toEqual([]);
    await task.getByRole("link", { name: "Send again" }).click();
    expect(await violationsOf(page)).toEqual([]);
  });

  test("whose page is left stops after its step, and says before that it will", async () => {
    const partner = await withParked("left", 3);
    const page = await browser.open(`/parked?partner=${partner.id}`);
    const { go, limits } = await holdSteps(page, "/operator/v1/redeliveries");
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByRole("button", { name: "Send 3 again" }).click();
    await page.getByText("1 of 3 due again").waitFor();
    await page.getByText("It stops when you leave this page.").waitFor();
    await page.getByRole("link", { name: "Overview" }).first().click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const second = page.waitForResponse("**/operator/v1/redeliveries");
    go();
    await (await second).finished();
    // A third step would begin before this question is asked.
    await page.evaluate(() => fetch("/console/session").then((answer) => answer.text()));
    expect(limits).toHaveLength(2);
  });

  test("by a reason counts what the list shows, whatever else is parked", async () => {
    const partner = await withParked("by-reason", 1);
    const nobody = new URL(partner.server.url);
    nobody.port = "1";
    await partner.notify(sale({ merchantTransId: "by-reason-away", callBackUrl: nobody.href }), "parked");
    const page = await browser.open(`/parked?partner=${partner.id}`);
    // A page of one row: the newest is of the other reason.
    await page.route("**/operator/v1/notifications?*", async (route) => {
      const asked = new URL(route.request().url());
      asked.searchParams.set("limit", "1");
      await route.continue({ url: asked.href });
    });
    await page.getByRole("combobox", { name: "Reason" }).click();
    await page.getByRole("option", { name: "its answer was not 2xx" }).click();
    await page.getByRole("link", { name: "by-reason-0" }).waitFor();
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByText("1 would be sent again").waitFor();
    await page.goto(`${browser.baseUrl}/console/parked?partner=${partner.id}&reason=tls`);
    await page.getByText("Nothing that is parked matches").waitFor();
  });

  test("says of those that wait how many have failed again", async () => {
    const partner = await withParked("failing-again", 2);
    partner.server.answersAlways(500);
    const change = await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, { retry: [3_600] });
    expect(change.status).toBe(200);
    const page = await browser.open(`/parked?partner=${partner.id}`);
    await page.getByRole("button", { name: "Count them first" }).click();
    await page.getByRole("button", { name: "Send 2 again" }).click();
    // The page's own words are shown when it says something else.
    const words = async () => (await page.getByRole("status").allTextContents()).join("\n");
    await expect.poll(words).toContain("0 of 2 delivered, 2 pending, 2 of them failed again");
    await page.goto(`${browser.baseUrl}/console/partners/${partner.id}?tab=endpoints`);
    await page.getByRole("button", { name: "Count them first" }).waitFor();
  });

  test("of a partner's own parked notifications is part of its catch-up, unless its key may only read", async () => {
    const partner = await withParked("catching-up", 2);
    const pulled = await eventually("both to be pulled", async () => {
      const { body } = await partner.call("GET", "/v1/notifications?limit=1");
      return (body["items"] as unknown[]).length === 1 ? body : undefined;
    });
    await partner.call("GET", `/v1/notifications?after=${pulled["next"]}&limit=1`);
    const page = await browser.open("/?tab=catch-up", { token: partner.secrets.apiKey });
    await page.getByText("Your catch-up has not reached the end").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    const parked = page.getByRole("region", { name: "Send what is parked again" });
    await parked.getByRole("button", { name: "Count them first" }).click();
    await parked.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 of 2 due again: done").waitFor();
    await page.getByText("2 of 2 delivered").waitFor();
    await page.getByText("Nothing is parked").waitFor();
    // What is not there is not offered.
    await page.reload();
    await page.getByRole("region", { name: "Send what waits now" }).getByText("Nothing waits.").waitFor();
    await parked.getByText("There is none to send.").waitFor();
    expect(await page.getByRole("button", { name: "Count them first" }).count()).toBe(0);
    const { body: made } = await partner.call("POST", "/v1/api-keys", { json: { name: "read", scopes: ["read"] } });
    const reader = await browser.open("/?tab=catch-up", { token: String(made["apiKey"]) });
    await reader.getByText("has the scope manage").waitFor();
    expect(await reader.getByRole("button", { name: "Count them first" }).count()).toBe(0);
  });
});

describe("money in doubt", () => {
  async function parkedReversal(partner: TestPartner, tid: string): Promise<string> {
    const { body } = await partner.run(sale({ tid, merchantTransId: `order-${tid}` }));
    service.acquirer.behave(next("REVERSAL", { declines: "12" }));
    await partner.run({ command: "REVERSAL", reqId: randomUUID(), transactionId: body["id"] });
    return String(body["id"]);
  }
  const stateOf = async (id: string) => (await service.operator("GET", `/operator/v1/reversals/${id}`)).body["state"];

  test("a parked Reversal is retried, or resolved with a reason that the audit keeps", async () => {
    const partner = await service.register({ name: "In doubt" });
    const [retried, resolved] = [await parkedReversal(partner, "T9000001"), await parkedReversal(partner, "T9000002")];
    const page = await browser.open(`/transactions/${retried}`);
    await page.getByText("In doubt: its Reversal was given up").waitFor();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
    await page.getByText("Reversed at the acquirer: no money moved").waitFor();
    expect(await stateOf(retried)).toBe("DONE");

    await page.goto(`${browser.baseUrl}/console/money`);
    await page
      .getByRole("row", { name: /SALE order-T9000002 150,000 VND In doubt T9000002/ })
      .getByRole("button", { name: "Resolve" })
      .click();
    const dialog = page.getByRole("dialog");
    const confirm = dialog.getByRole("button", { name: "Resolve" });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByRole("textbox", { name: "Reason" }).fill("card 4111 1111 1111 1111");
    await confirm.click();
    await dialog.getByText("reason holds what looks like a full card number").waitFor();
    expect(await dialog.getByRole("textbox", { name: "Reason" }).getAttribute("aria-invalid")).toBe("true");
    await dialog.getByRole("textbox", { name: "Reason" }).fill("the acquirer said so");
    await confirm.click();
    await dialog.waitFor({ state: "hidden" });
    expect(await stateOf(resolved)).toBe("DONE");
    await page.goto(`${browser.baseUrl}/console/audit?subject=${resolved}`);
    await page.getByText("resolve reversal").first().waitFor();
    await page.getByRole("button", { name: "Details" }).first().click();
    await page.getByText("reason: the acquirer said so").waitFor();
  });

  test("a Sale is undone by its Void only if that was approved", async () => {
    const partner = await service.register({ name: "Undone" });
    const { body } = await partner.run(sale({ tid: "T9000004" }));
    const page = await browser.open(`/transactions/${String(body["id"])}`);
    service.acquirer.behave(next("VOID", { declines: "05" }));
    for (const shown of [/^Approved by the acquirer; not settled yet/, /^Approved, and undone by a Void since/]) {
      await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: body["id"] });
      await page.reload();
      await page.getByText(shown).waitFor();
    }
  });

  test("a settlement has a page: its step, the totals of both sides, and the decision to end it", async () => {
    const partner = await service.register({ name: "Settling" });
    const { body: sold } = await partner.run(sale({ tid: "T9000003" }));
    const silent = service.acquirer.behave(({ command }) =>
      command === "SETTLEMENT" ? { answers: "lost" } : undefined,
    );
    const settlement = { command: "SETTLEMENT", reqId: randomUUID(), tid: "T9000003", mid: sold["mid"] };
    const { body } = await partner.run(settlement, { prefer: "respond-async" });
    const page = await browser.open(`/settlements/${body["id"]}`);
    await page.getByText("Sent: the acquirer has not answered").waitFor();
    await page.getByRole("button", { name: "Abort" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("not at the bank");
    await page.getByRole("dialog").getByRole("button", { name: "Abort" }).click();
    await page.getByText(/Not settled: 96/).waitFor();
    await page.getByText("settlement aborted").waitFor();
    silent();

    const { body: other } = await partner.run(sale({ tid: "SETTLE_MISMATCH" }));
    const { body: settled } = await partner.run({
      command: "SETTLEMENT",
      reqId: randomUUID(),
      tid: "SETTLE_MISMATCH",
      mid: other["mid"],
    });
    await page.goto(`${browser.baseUrl}/console/settlements/${settled["id"]}`);
    await page.getByText("Settled by the uploaded batch").waitFor();
    const row = page.getByRole("row", { name: /^Sales and Completes/ });
    expect(await row.getByRole("cell").allInnerTexts()).toEqual(["Sales and Completes", "1", "0", "differs"]);
    await page
      .locator(`a[href$="/transactions/${String(other["id"])}"]`)
      .first()
      .waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.goto(`${browser.baseUrl}/console/transactions/${String(other["id"])}`);
    await page.getByRole("link", { name: /in batch/ }).click();
    await page.getByText("differs").first().waitFor();
  });
});

test("a partner changes its callback URL once the new one accepted a test IPN, and sees why not before", async () => {
  const partner = await service.register({ name: "Moving", callBackUrlChange: "partner" });
  const fresh = await startPartnerServer();
  fresh.opensWith(partner.keys);
  fresh.answersAlways(500);
  const page = await browser.open("/?tab=endpoints", { token: partner.secrets.apiKey });
  const change = async () => {
    await page.getByLabel("New URL").fill(fresh.url);
    await page.getByRole("button", { name: "Test and change" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Test and change" }).click();
  };
  await change();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  expect((await partner.call("GET", "/v1/self")).body).toMatchObject({
    settings: { callBackUrl: partner.server.url },
  });
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  fresh.answersAlways(204);
  await change();
  await page.getByText("It accepted the test IPN").waitFor();
  expect((await partner.call("GET", "/v1/self")).body).toMatchObject({ settings: { callBackUrl: fresh.url } });
  await fresh.close();
});

test("an operator gives a command a URL of its own, sees at the field why one is refused, and removes it", async () => {
  const partner = await service.register({ name: "Books" });
  const urlsOf = async () => {
    const { body } = await service.operator("GET", `/operator/v1/partners/${partner.id}`);
    return (body["settings"] as { callBackUrlByCommand: object }).callBackUrlByCommand;
  };
  const page = await browser.open(`/partners/${partner.id}?tab=settings`);
  const field = page.getByRole("textbox", { name: "URLs by command" });
  const save = async (text: string) => {
    await field.fill(text);
    await page.getByRole("button", { name: "Save" }).click();
  };
  const books = `${partner.server.url}/books`;
  await save(`SETTLEMENT ${books}`);
  await page.getByText("It holds for what is queued, too").waitFor();
  expect(await urlsOf()).toEqual({ SETTLEMENT: books });

  await save("SETTLEMENT ftp://books.example/ipn\nLUNCH https://books.example/ipn");
  await page.getByText("Nothing was done").waitFor();
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  const ids = (await field.getAttribute("aria-describedby"))?.trim().split(/\s+/) ?? [];
  const described = (await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).innerText()))).join(" ");
  expect(described).toContain("callBackUrlByCommand.SETTLEMENT is not an absolute https:// URL.");
  expect(described).toContain("callBackUrlByCommand.LUNCH");
  expect(await page.locator('[aria-invalid="true"]').count()).toBe(1);
  expect(await urlsOf()).toEqual({ SETTLEMENT: books });
  expect(await violationsOf(page)).toEqual([]);

  await save("");
  await page.getByText("It holds for what is queued, too").waitFor();
  expect(await field.getAttribute("aria-invalid")).not.toBe("true");
  expect(await urlsOf()).toEqual({});
});

test("an operator pauses and resumes a partner, closes a circuit, and revokes a colleague's token", async () => {
  const partner = await service.register({ name: "Stopping" });
  const read = async (path: string) => (await service.operator("GET", `/operator/v1/${path}`)).body;
  const stateOf = async () => (await read(`partners/${partner.id}`))["state"];
  const page = await browser.open(`/partners/${partner.id}`);
  const press = async (name: string) => {
    await page.getByRole("button", { name }).first().click();
    await page.getByRole("dialog").getByRole("button", { name }).click();
  };
  await press("Pause deliveries");
  await expect.poll(stateOf).toBe("paused");
  await page.getByRole("button", { name: "Resume deliveries" }).click();
  await expect.poll(stateOf).toBe("active");

  partner.server.answersAlways(410);
  await partner.run(sale());
  const circuits = async () => {
    const { items } = await read(`endpoints?partner=${partner.id}`);
    return (items as readonly { state: string }[]).map(({ state }) => state);
  };
  await expect.poll(circuits).toEqual(["gone"]);
  partner.server.answersAlways(204);
  await page.goto(`${browser.baseUrl}/console/partners/${partner.id}?tab=endpoints`);
  await page.getByRole("button", { name: "Close the circuit" }).click();
  await expect.poll(circuits).toEqual(["closed"]);

  await page.goto(`${browser.baseUrl}/console/operators`);
  await page.getByRole("textbox", { name: "Name" }).fill("Cleo");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  const shown = page.getByLabel("Token", { exact: true });
  expect(await shown.getAttribute("type")).toBe("password");
  const token = await shown.inputValue();
  await page.getByRole("row", { name: /Cleo/ }).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  const status = async () => (await service.operator("GET", "/operator/v1/partners", undefined, token)).status;
  await expect.poll(status).toBe(401);
});

test("what strangers write is text on every page: nothing of it runs, and the policy is not broken", async () => {
  const attack = `<img src=x onerror="window.ran='yes'"></script><script>window.ran='yes'</script>`;
  const partner = await service.register({ name: attack.slice(0, 80), retry: [1] });
  partner.server.answersAlways({ status: 500, headers: { "content-type": "text/html" }, body: attack });
  await service.operator("PUT", `/operator/v1/partners/${partner.id}/terminals/T9000009`, {
    mid: "M00000000000001",
    merchantName: attack.slice(0, 60),
    merchantAddress: attack.slice(0, 60),
  });
  const { id, body } = await partner.notify(
    sale({ tid: "T9000009", merchantTransId: `<b>${randomUUID().slice(0, 8)}` }),
    "parked",
  );
  const page = await browser.open("/");
  const complaints: string[] = [];
  page.on("console", (message) => void complaints.push(message.text()));
  page.on("pageerror", (error) => void complaints.push(`Content Security Policy? ${error.message}`));
  page.on("dialog", (dialog) => void dialog.dismiss().then(() => complaints.push("Content Security Policy: dialog")));
  const paths = [
    `/notifications?partner=${partner.id}`,
    `/notifications/${id}`,
    `/transactions/${String(body["id"])}`,
    `/search?q=${encodeURIComponent(attack)}`,
    `/notifications?contains=${encodeURIComponent(attack.slice(0, 64))}`,
    "/partners",
    `/partners/${partner.id}`,
    "/money?tab=merchants",
    "/parked",
    `/audit?subject=${encodeURIComponent(attack)}`,
  ];
  for (const path of paths) {
    await page.goto(`${browser.baseUrl}/console${path}`);
    await page.locator("h1").first().waitFor();
    await page.getByLabel("Loading").first().waitFor({ state: "hidden" });
  }
  await page.goto(`${browser.baseUrl}/console/partners/${partner.id}`);
  await page.getByRole("button", { name: "Share a view" }).click();
  await page.getByRole("dialog").waitFor();
  // The style by which the page behind does not scroll is let in.
  await expect.poll(() => page.evaluate<unknown>("getComputedStyle(document.body).overflowY")).toBe("hidden");
  await page.goto(`${browser.baseUrl}/console/notifications/${id}`);
  await page.getByText("onerror").first().waitFor();
  expect(await page.evaluate<unknown>("window.ran")).toBeUndefined();
  expect(await page.locator('img[src="x"]').count()).toBe(0);
  expect(complaints.filter((text) => /Content Security Policy/i.test(text))).toEqual([]);
});

test("one admin proposes, and another confirms or withdraws it, on a desktop, a tablet and a phone", async () => {
  const addAdmin = async (name: string) => {
    const { body } = await service.operator("POST", "/operator/v1/operators", { name, role: "admin" });
    return String(body["token"]);
  };
  const [ada, ben] = [await addAdmin("Ada"), await addAdmin("Ben")];
  const partner = await service.register({ name: "Two admins" });
  const first = await browser.open("/proposals", { token: ada });
  await first.getByText("Off: one admin is enough").waitFor();
  await first.getByLabel("Minutes to confirm").fill("30");
  await first.getByRole("button", { name: "Change" }).click();
  await first.getByText("take a second admin within 30 minutes").waitFor();
  const path = `/operator/v1/partners/${partner.id}/keys/rotate`;
  await service.operator("POST", `${path}/propose`, { key: "signingKey", overlapHours: 24 }, ada);

  const second = await browser.open("/proposals", { token: ben });
  const row = second.getByRole("row", { name: /Rotate a key/ });
  await row.waitFor();
  for (const width of [390, 1_024, 1_280]) {
    await second.setViewportSize({ width, height: 844 });
    const isCut = `[document.documentElement, ...document.querySelectorAll(".table-scroll")]
        .some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)`;
    expect(await second.evaluate(isCut), String(width)).toBe(false);
  }
  expect(await violationsInBothSchemes(second)).toEqual([]);
  await row.getByRole("button", { name: "Confirm" }).click();
  const dialog = second.getByRole("dialog", { name: "Rotate a key?" });
  await dialog.getByText("Ada proposed it: key signingKey, overlapHours 24.").waitFor();
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await second.getByText("The new key, shown only once").waitFor();
  expect(await second.getByLabel("Secret", { exact: true }).getAttribute("type")).toBe("password");
  await second.getByText("Nothing is proposed").waitFor();

  await second.getByLabel("Minutes to confirm").fill("0");
  await second.getByRole("button", { name: "Propose" }).click();
  const own = second.getByRole("row", { name: /Change the rule of two admins.*yours/ });
  await own.waitFor();
  expect(await own.getByRole("button", { name: "Confirm" }).count()).toBe(0);
  await first.reload();
  const offered = first.getByRole("row", { name: /Change the rule of two admins/ });
  await offered.getByRole("button", { name: "Withdraw" }).click();
  await first.getByRole("dialog").getByRole("button", { name: "Withdraw" }).click();
  await first.getByText("Nothing is proposed").waitFor();
});
