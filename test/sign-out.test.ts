import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "./support/database.ts";
import {
  callHttp,
  eventually,
  operatorToken,
  startTestService,
  type TestPartner,
  type WholeService,
} from "./support/service.ts";

let database: TestDatabase;
let one: WholeService;
let two: WholeService;
let partner: TestPartner;
const masterKey = randomBytes(32);
beforeAll(async () => {
  database = await createDatabase();
  one = await startTestService({ database, masterKey });
  two = await startTestService({ database, masterKey });
  partner = await one.register();
});
afterAll(async () => {
  await one.stop();
  await two.stop();
  await database.drop();
});

async function signIn(token: string) {
  const { headers, body } = await callHttp(one.baseUrl, "POST", "/console/session", { json: { token } });
  return { cookie: headers.get("set-cookie")?.split(";")[0] ?? "", "paybell-csrf": String(body["csrf"]) };
}

test.each([
  ["an operator's", () => operatorToken, "/operator/v1/partners"],
  ["a partner's", () => partner.secrets.apiKey, "/v1/self"],
])("a sign-out ends %s session on every instance, and no other session of the token", async (_, token, path) => {
  const [ended, other] = [await signIn(token()), await signIn(token())];
  const read = async ({ baseUrl }: WholeService, headers = ended) =>
    (await callHttp(baseUrl, "GET", path, { headers })).status;
  expect([await read(one), await read(two)]).toEqual([200, 200]);
  expect((await callHttp(one.baseUrl, "DELETE", "/console/session", { headers: ended })).status).toBe(204);
  expect(await read(one)).toBe(401);
  await eventually("the other instance to refuse it", async () => ((await read(two)) === 401 ? true : undefined));
  expect((await callHttp(two.baseUrl, "GET", "/console/session", { headers: ended })).status).toBe(401);
  expect([await read(one, other), await read(two, other)]).toEqual([200, 200]);
  const three = await startTestService({ database, masterKey });
  const later = [await read(three), await read(three, other)];
  await three.stop();
  expect(later).toEqual([401, 200]);
});
