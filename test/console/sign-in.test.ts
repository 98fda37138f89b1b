import { afterAll, beforeAll, expect, test } from "vitest";
import { oidcClientId, oidcClientSecret, startOidcProvider, type TestProvider } from "../support/oidc-provider.ts";
import { freePort } from "../support/ports.ts";
import { type ConsoleBench, startConsole, violationsOf } from "./browser.ts";

let provider: TestProvider;
let bench: ConsoleBench;
beforeAll(async () => {
  const port = await freePort();
  const consoleUrl = `http://127.0.0.1:${port}`;
  provider = await startOidcProvider(`${consoleUrl}/console/sign-in/callback`);
  bench = await startConsole({
    PAYBELL_PORT: String(port),
    PAYBELL_OIDC_ISSUER: provider.issuer,
    PAYBELL_OIDC_CLIENT_ID: oidcClientId,
    PAYBELL_OIDC_CLIENT_SECRET: oidcClientSecret,
    PAYBELL_CONSOLE_URL: consoleUrl,
  });
});
afterAll(async () => {
  await bench.close();
  await provider.close();
});

test("a person signs in at the provider's site, and the page that they wanted knows them", async () => {
  const page = await bench.open("/sign-in?page=/console/audit");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(`${bench.baseUrl}/console/audit`);
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  // The sandbox would have signed in its own operator if the session's cookie had not arrived.
  const answer = await page.context().request.get(`${bench.baseUrl}/console/session`);
  expect(await answer.json()).toMatchObject({ kind: "operator", name: "Ada (OIDC)", role: "admin" });
  await page.getByText("sign in", { exact: true }).first().waitFor();
});

test("the sign-in page says when a person has no role", async () => {
  provider.person = { sub: "eve", name: "Eve", roles: [] };
  const page = await bench.open("/sign-in");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(/sign-in=no_role/);
  // The sandbox has signed in its own operator meanwhile.
  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByText("You have no role here.").waitFor();
  await page.getByRole("link", { name: "Sign in with your organisation" }).waitFor();
  expect(await violationsOf(page)).toEqual([]);
});
