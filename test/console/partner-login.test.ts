import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { consoleOfFile, violationsInBothSchemes } from "./browser.ts";

const { service, browser } = await consoleOfFile();

/** Everything that the page sends from now on: addresses, headers and bodies. */
function sentBy(page: Page): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    sent.push(`${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ""}`);
  });
  return sent;
}

describe("a partner's IPN", () => {
  // Of every cipher and encoding: opening.test.ts.
  test("is decrypted in the browser by its own key, which is sent nowhere", async () => {
    const partner = await service.register({ name: "Reader", cipher: "jwe" });
    const { id } = await partner.notify(sale({ merchantTransId: "decrypted-17" }), "accepted");
    const page = await browser.open(`/notifications/${id}`, { token: partner.secrets.apiKey });
    const sent = sentBy(page);
    const field = page.getByRole("textbox", { name: "Your encryption key" });
    const decrypt = page.getByRole("button", { name: "Decrypt here" });
    await field.fill("not a key");
    await decrypt.click();
    await page.getByText("It is not an encryption key").waitFor();
    await field.fill(Buffer.alloc(32, 7).toString("base64"));
    await decrypt.click();
    await page.getByText("This key does not open it").waitFor();
    await field.fill(partner.secrets.encryptionKey);
    await decrypt.click();
    await page.getByRole("row", { name: /^merchantTransId decrypted-17/ }).waitFor();
    expect(sent.length).toBeGreaterThan(0);
    expect(sent.filter((text) => text.includes(partner.secrets.encryptionKey.slice(0, 20)))).toEqual([]);
    expect(await violationsInBothSchemes(page)).toEqual([]);
  });
});

describe("a partner's keys", () => {
  test("are rotated by the partner itself, and its API keys added and revoked, with what is wrong at its field", async () => {
    const partner = await service.register({ name: "Own keys" });
    const page = await browser.open("/?tab=keys", { token: partner.secrets.apiKey });
    await page
      .getByRole("row", { name: /^Encryption key/ })
      .getByRole("button", { name: "Rotate" })
      .click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await page.getByText("The new encryption key, shown only once").waitFor();
    expect(await page.getByLabel("Key", { exact: true }).getAttribute("type")).toBe("password");
    await page
      .getByRole("row", { name: /^Encryption key/ })
      .nth(1)
      .waitFor();
    const name = page.getByRole("textbox", { name: "Name" });
    await name.fill("till");
    await page.getByRole("checkbox", { name: /^read/ }).uncheck();
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("scopes must name at least one").waitFor();
    await page.getByRole("checkbox", { name: /^pull/ }).check();
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("The API key “till”, shown only once").waitFor();
    const row = page.getByRole("row", { name: /“till” pull/ });
    await row.getByText("In use").waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await row.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await row.getByText("Ended").waitFor();
    const operators = await browser.open(`/partners/${partner.id}?tab=keys`);
    await operators.getByRole("textbox", { name: "Name" }).fill("desk");
    await operators.getByRole("button", { name: "Add", exact: true }).click();
    await operators.getByRole("row", { name: /“desk”/ }).waitFor();
  });
});

test("a partner that replaces its API key without an overlap stays signed in, and so gets the new one", async () => {
  const partner = await service.register({ name: "Leaked" });
  const page = await browser.open("/?tab=keys", { token: partner.secrets.apiKey });
  const keys = page.getByRole("row", { name: /^API key/ });
  await keys.getByRole("button", { name: "Rotate" }).click();
  await page.getByRole("dialog").getByLabel("Overlap in hours").fill("0");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
  await page.getByText("The new API key, shown only once").waitFor();
  // The page reads the keys by the new one.
  await keys.getByText("Ended").waitFor();
  const shown = await page.getByLabel("Key", { exact: true }).inputValue();
  await page.getByRole("button", { name: "Copy Key" }).click();
  expect((await partner.call("GET", "/v1/self")).status).toBe(401);
  expect((await partner.call("GET", "/v1/self", { key: shown })).status).toBe(200);
});

describe("a link to a partner's pages", () => {
  test("opens them to read, says by whom and for how long, and ends when it is revoked", async () => {
    const partner = await service.register({ name: "Shown", callingAddresses: ["203.0.113.0/24"] });
    const operators = await browser.open(`/partners/${partner.id}`);
    await operators.getByRole("button", { name: "Share a view" }).click();
    const dialog = operators.getByRole("dialog");
    await dialog.getByLabel("Minutes").fill("30");
    await dialog.getByRole("button", { name: "Make the link" }).click();
    const link = await dialog.getByLabel("Link", { exact: true }).inputValue();
    const token = link.slice(link.indexOf("#view=") + "#view=".length);

    const page = await browser.open(`/#view=${token}`, { token: "nobody's" });
    await page.getByRole("heading", { name: "Shown" }).waitFor();
    expect(page.url()).not.toContain(token);
    await page.getByText("bootstrap shows you the pages of Shown").waitFor();
    expect(await page.getByRole("button", { name: "Send a test IPN" }).count()).toBe(0);
    await page.getByRole("tab", { name: "Keys" }).click();
    await page.getByRole("row", { name: /^Signing key/ }).waitFor();
    expect(await page.getByRole("button", { name: "Rotate" }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Add", exact: true }).count()).toBe(0);
    expect(await violationsInBothSchemes(page)).toEqual([]);

    await dialog.getByRole("button", { name: "Revoke it" }).click();
    await dialog.getByText("It is revoked").waitFor();
    // The page also asks by itself: its dialog may be over the tab before.
    await page.getByRole("tab", { name: "Catch-up" }).dispatchEvent("click");
    await page.getByText("Your session has ended").waitFor();
    const late = await browser.open(`/#view=${token}`, { token: "nobody's" });
    await late.getByText("The link has expired, or was revoked").waitFor();
  });
});
