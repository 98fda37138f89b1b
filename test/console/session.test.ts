import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { oidcClientId, oidcClientSecret, startOidcProvider } from "../support/oidc-provider.ts";
import { freePort } from "../support/ports.ts";
import { consoleOfFile, violationsOf } from "./browser.ts";

const port = String(await freePort());
const consoleUrl = `http://127.0.0.1:${port}`;
const provider = await startOidcProvider(`${consoleUrl}/console/sign-in/callback`);
afterAll(() => provider.close());
const { service, browser } = await consoleOfFile({
  PAYBELL_PORT: port,
  PAYBELL_OIDC_ISSUER: provider.issuer,
  PAYBELL_OIDC_CLIENT_ID: oidcClientId,
  PAYBELL_OIDC_CLIENT_SECRET: oidcClientSecret,
  PAYBELL_CONSOLE_URL: consoleUrl,
});
const [annas, bens] = [await tokenOf("anna"), await tokenOf("ben")];

async function tokenOf(name: string): Promise<string> {
  return String((await service.operator("POST", "/operator/v1/operators", { name, role: "admin" })).body["token"]);
}

const signedInAs = (page: Page, name: string) => page.getByRole("button", { name: `Signed in as ${name}` });

test("a sign-out that failed is said, and the person is still signed in; tried again, it succeeds", async () => {
  const page = await browser.open("/partners", { token: annas });
  await page.route("**/console/session", (route) =>
    route.request().method() === "DELETE" ? route.abort() : route.continue(),
  );
  await signedInAs(page, "anna").click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  const dialog = page.getByRole("dialog", { name: "You may still be signed in" });
  await dialog.getByText("The service cannot be reached.").waitFor();
  await page.unroute("**/console/session");
  await dialog.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("Token").waitFor();
  expect((await page.context().request.get(`${browser.baseUrl}/console/session`)).status()).toBe(401);
});

test("when a session has ended, the same person finds what was typed, and another person does not", async () => {
  const page = await browser.open("/partners/new", { token: annas });
  const name = page.getByRole("textbox", { name: "Name" });
  const endAndSignIn = async (token: string) => {
    await page.getByLabel("Callback addresses").fill("203.0.113.0/24");
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Register" }).click();
    await page.getByText("Your session has ended").waitFor();
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Your session has ended").waitFor({ state: "hidden" });
  };
  await name.fill("Anna's draft");
  await endAndSignIn(annas);
  expect(await name.inputValue()).toBe("Anna's draft");
  expect(page.url()).toMatch(/\/partners\/new$/);
  await endAndSignIn(bens);
  await signedInAs(page, "ben").waitFor();
  expect(await name.inputValue()).toBe("");
});

test("when a session has ended before an action is confirmed, the sign-in opens above it", async () => {
  await service.operator("POST", "/operator/v1/operators", { name: "carla", role: "viewer" });
  const page = await browser.open("/operators", { token: annas });
  const row = page.getByRole("row", { name: /^carla/ });
  await row.getByRole("button", { name: "Revoke" }).click();
  await page.context().clearCookies();
  const confirm = page.getByRole("dialog", { name: /carla/ }).getByRole("button", { name: "Revoke" });
  await confirm.click();
  const signIn = page.getByRole("dialog", { name: "Your session has ended" });
  await signIn.getByLabel("Token").fill(annas);
  await signIn.getByRole("button", { name: "Sign in" }).click();
  await signIn.waitFor({ state: "hidden" });
  await confirm.click();
  await row.getByText("Revoked").waitFor();
});

test("when another partner signs in on the page, nothing of the one before is shown", async () => {
  const [first, second] = [await service.register({ name: "First shop" }), await service.register({ name: "Other" })];
  const page = await browser.open("/", { token: first.secrets.apiKey });
  const shop = page.getByRole("heading", { name: "First shop" });
  await shop.waitFor();
  await page.context().clearCookies();
  await page.getByText("Your session has ended").waitFor();
  const held = Promise.withResolvers<void>();
  await page.route("**/v1/self", (route) => held.promise.then(() => route.continue()));
  await page.getByLabel("Token").fill(second.secrets.apiKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await signedInAs(page, "Other").waitFor();
  expect(await shop.count()).toBe(0);
  held.resolve();
  await page.getByRole("heading", { name: "Other" }).waitFor();
});

test("a page does not act for a person who signed in beside it: it shows that person first", async () => {
  const page = await browser.open("/partners/new", { token: annas });
  await page.clock.install();
  await page.reload();
  const name = page.getByRole("textbox", { name: "Name" });
  await name.fill("Anna's draft");
  // Another tab: the browser's cookie is Ben's now.
  await page.context().request.post(`${browser.baseUrl}/console/session`, { data: { token: bens } });
  await page.clock.fastForward("05:01");
  await signedInAs(page, "ben").waitFor();
  expect(await name.inputValue()).toBe("");
});

test("a person signs in at the provider's site, and the page that they wanted knows them", async () => {
  const page = await browser.open("/sign-in?page=/console/audit");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(`${browser.baseUrl}/console/audit`);
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  // The sandbox would have signed in its own operator if the session's cookie had not arrived.
  const answer = await page.context().request.get(`${browser.baseUrl}/console/session`);
  expect(await answer.json()).toMatchObject({ kind: "operator", name: "Ada (OIDC)", role: "admin" });
  await page.getByText("sign in", { exact: true }).first().waitFor();
});

test("the sign-in page says when a person has no role", async () => {
  provider.person = { sub: "eve", name: "Eve", roles: [] };
  const page = await browser.open("/sign-in");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(/sign-in=no_role/);
  // The sandbox has signed in its own operator meanwhile.
  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByText("You have no role here.").waitFor();
  await page.getByRole("link", { name: "Sign in with your organisation" }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
});
