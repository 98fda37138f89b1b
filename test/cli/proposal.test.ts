import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { operatorToken, serviceOfFile } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const service = await serviceOfFile({ env: { PAYBELL_KEY_PROPOSAL_MINUTES: "60" } });
const partner = await service.register();
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
for (const name of ["ada", "grace"]) await line.ok("operator", "add", name, "--role", "admin", "--out", `${name}.json`);
afterAll(() => line.remove());

const written = (name: string) =>
  JSON.parse(readFileSync(join(line.folder, `${name}.json`), "utf8")) as Readonly<Record<string, string>>;
const secretIn = (name: string) => {
  const { secret, apiKey = secret, operatorToken = apiKey } = written(name);
  return operatorToken ?? expect.fail(`${name} has no secret`);
};
const as = (name: string, ...args: string[]) =>
  line.run([...args, "--credentials", `${name}.json`], { env: { PAYBELL_OPERATOR_TOKEN: "" } });

test("a key is rotated once a second admin confirms; one alone gets instructions", async () => {
  const rotate = ["partner", "rotate", "signingKey", "--partner", partner.id];
  const alone = await as("ada", ...rotate);
  expect(alone.code).toBe(3);
  expect(alone.stderr).toContain("two admins");
  expect(alone.stderr).toContain("--propose");

  expect((await as("grace", "proposal", "list")).stdout).toBe("None.\n");
  const proposed = (await as("ada", ...rotate, "--propose", "--json")).json<{ id: string }>();
  expect((await as("grace", "proposal", "list")).stdout).toMatch(/PROPOSED BY.*\n.*ada +20\S+ +rotateKey .*signingKey/);
  const self = await as("ada", "proposal", "confirm", proposed.id, "--yes");
  expect([self.code, self.stderr]).toEqual([3, expect.stringContaining("You proposed this yourself")]);
  const confirmed = await as("grace", "proposal", "confirm", proposed.id, "--yes", "--out", "new-key.json");
  expect(confirmed.code, confirmed.stderr).toBe(0);
  expect(confirmed.stdout).not.toContain(secretIn("new-key"));
  const shown = (await line.ok("partner", "show", partner.id, "--json")).json<{ keys: { kind: string }[] }>();
  expect(shown.keys.filter(({ kind }) => kind === "signingKey")).toHaveLength(2);
  const again = await as("grace", "proposal", "confirm", proposed.id, "--yes");
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("no such proposal")]);
});

test("another admin and an API key take two as well, and a proposal can be withdrawn", async () => {
  const admin = await as("ada", "operator", "add", "Mallory", "--role", "admin", "--propose", "--json");
  const key = await as("ada", "api-key", "add", "till", "--scopes", "read", "--partner", partner.id, "--propose");
  expect(key.stdout).toContain("paybell proposal confirm");
  const { id } = admin.json<{ id: string }>();
  expect((await as("grace", "proposal", "withdraw", id)).stdout).toContain("addOperator");
  const { items } = (await as("grace", "proposal", "list", "--json")).json<{ items: { id: string }[] }>();
  expect(items).toMatchObject([{ action: "addApiKey", partnerId: partner.id }]);
  const confirmed = await as("grace", "proposal", "confirm", items[0]?.id ?? "", "--yes");
  expect(confirmed.stdout).toMatch(/pb_/);
});

test("a confirmed token or key is written as credentials", async () => {
  const propose = ["--propose", "--json"];
  const key = await as("ada", "api-key", "add", "desk", "--scopes", "read", "--partner", partner.id, ...propose);
  const person = await as("ada", "operator", "add", "Eve", "--role", "admin", ...propose);
  for (const [name, proposed] of [
    ["desk", key],
    ["eve", person],
  ] as const) {
    const confirm = ["proposal", "confirm", proposed.json<{ id: string }>().id, "--yes", "--out", `${name}.json`];
    const confirmed = await as("grace", ...confirm);
    expect(confirmed.code, confirmed.stderr).toBe(0);
    expect(confirmed.stdout).not.toContain(secretIn(name));
  }
  expect(written("desk")).toMatchObject({ partnerId: partner.id, apiKeyId: expect.any(String) });
  expect(written("eve")).toMatchObject({ baseUrl: service.baseUrl, operatorId: expect.any(String) });
  expect(written("eve")).not.toHaveProperty("id");
  expect((await as("eve", "partner", "list")).code).toBe(0);
});

test("lower protection of a partner, and the rule itself, take two as well", async () => {
  writeFileSync(join(line.folder, "cbc.json"), '{"cipher": "aes-256-cbc"}');
  const set = ["partner", "set", partner.id, "--settings", "cbc.json"];
  expect((await as("ada", ...set)).stderr).toContain("takes two admins");
  const proposed = (await as("ada", ...set, "--propose", "--json")).json<{ id: string }>();
  const confirmed = await as("grace", "proposal", "confirm", proposed.id, "--yes");
  expect([confirmed.code, confirmed.stdout]).toEqual([0, expect.stringContaining("changePartner")]);
  const shown = await line.ok("partner", "show", partner.id, "--json");
  expect(shown.json()).toMatchObject({ settings: { cipher: "aes-256-cbc" } });

  const rule = ["proposal", "rule", "--minutes", "0"];
  expect((await as("ada", ...rule)).stderr).toContain("two admins");
  const off = (await as("ada", ...rule, "--propose", "--json")).json<{ id: string }>();
  expect((await as("grace", "proposal", "confirm", off.id, "--yes")).code).toBe(0);
  expect((await as("grace", "proposal", "rule")).stdout).toBe("One admin is enough.\n");
});

test("a partner has nothing to propose", async () => {
  const own = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_API_KEY: partner.secrets.apiKey });
  const { code, stderr } = await own.run(["api-key", "add", "till", "--scopes", "read", "--propose"]);
  own.remove();
  expect([code, stderr]).toEqual([2, expect.stringContaining("Leave --propose out")]);
});
