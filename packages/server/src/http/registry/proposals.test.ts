import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpTestService } from "../service.fixture.ts";
import { proposalListSchema, proposalSchema } from "./proposals.ts";

let service: HttpTestService;
let ada: string;
let grace: string;
beforeEach(async () => {
  service = await new HttpTestService({ env: { PAYBELL_KEY_PROPOSAL_MINUTES: "60" } }).listen();
  ada = (await added("Ada")).token;
  grace = (await added("Grace")).token;
});
afterEach(() => service.close());

async function added(name: string, key?: string): Promise<{ readonly token: string }> {
  const json = { name, role: "admin" };
  const { status, body } = await service.call("POST", "/operator/v1/operators", { json, ...(key && { key }) });
  expect(status).toBe(201);
  return body as { token: string };
}

const rotation = { key: "encryptionKey", overlapHours: 0 };
const path = () => `/operator/v1/partners/${service.partner.id}/keys/rotate`;
const rotate = (key: string, json: object) => service.call("POST", path(), { key, json });

const rotations = () => service.asked.filter(([what]) => what === "rotate");

async function proposed(key: string): Promise<string> {
  const { status, body } = await service.call("POST", `${path()}/propose`, { key, json: rotation });
  expect(status).toBe(201);
  expect(proposalSchema.safeParse(body).error).toBeUndefined();
  return String(body["id"]);
}

/** Adds an operator whom Ada proposes and Grace confirms. @returns the new one's token */
async function confirmed(json: { readonly name: string; readonly role: "admin" }): Promise<string> {
  const { body } = await service.call("POST", "/operator/v1/operators/propose", { key: ada, json });
  const answer = await service.call("POST", "/operator/v1/operators", {
    key: grace,
    json: { ...json, proposal: body["id"] },
  });
  expect(answer.status).toBe(201);
  return String(answer.body["token"]);
}

/** The next requests overlap: each has found its proposal before one of them takes it. */
function allFindBeforeAnyTakes(requests: number): void {
  const found = Promise.withResolvers<void>();
  let left = requests;
  service.onProposalFound = () => {
    left -= 1;
    if (left === 0) found.resolve();
    return found.promise;
  };
}

const refused = { status: 403, body: { code: "second_admin_required" } };

describe("a partner's key", () => {
  test("is not rotated by one admin: the answer says how two do it", async () => {
    const answer = await rotate(ada, rotation);
    expect(answer).toMatchObject(refused);
    expect(answer.body).toMatchObject({
      detail: expect.stringContaining("another must confirm it within 60 minutes"),
      remedy: expect.stringContaining("/propose"),
    });
    expect(rotations()).toEqual([]);
  });

  test("is rotated by what one admin proposed and another confirmed, once; the audit has both", async () => {
    const proposal = await proposed(ada);
    const list = await service.call("GET", "/operator/v1/proposals", { key: grace });
    expect(proposalListSchema.safeParse(list.body).error).toBeUndefined();
    expect(list.body).toMatchObject({ items: [{ id: proposal, proposedBy: "Ada", input: rotation }] });
    expect(await rotate(grace, { ...rotation, proposal })).toMatchObject({
      status: 200,
      body: { secret: "new-secret" },
    });
    expect(rotations()).toEqual([["rotate", "encryptionKey", 0]]);
    // The answer with the new key may have been lost.
    expect(await rotate(grace, { ...rotation, proposal })).toMatchObject({
      status: 404,
      body: { detail: expect.stringContaining("was confirmed") },
    });
    const audit = await service.call("GET", "/operator/v1/audit", { key: ada });
    expect(audit.body["items"]).toMatchObject([
      { action: "rotateKey", actor: "Grace", subject: service.partner.id },
      { action: "proposeRotateKey", actor: "Ada", subject: service.partner.id },
      { action: "addOperator" },
      { action: "addOperator" },
    ]);
  });

  test("is not rotated by the proposer, also not with another token of the same name", async () => {
    const proposal = await proposed(ada);
    expect(await rotate(ada, { ...rotation, proposal })).toMatchObject(refused);
    const again = await confirmed({ name: " a\u200bDA ", role: "admin" });
    expect(await rotate(again, { ...rotation, proposal })).toMatchObject(refused);
    expect(rotations()).toEqual([]);
  });

  test("is not rotated by a confirmation of something else", async () => {
    const proposal = await proposed(ada);
    for (const json of [
      { ...rotation, key: "apiKey", proposal },
      { ...rotation, overlapHours: 1, proposal },
      { ...rotation, proposal: "01a201e6-1bf7-73ed-8aa6-cf91ed000000" },
    ]) {
      expect([403, 404]).toContain((await rotate(grace, json)).status);
    }
    const other = `/operator/v1/partners/${service.other.id}/keys/rotate`;
    expect(await service.call("POST", other, { key: grace, json: { ...rotation, proposal } })).toMatchObject(refused);
    expect(rotations()).toEqual([]);
  });

  test("is rotated once, though admins confirm at the same time", async () => {
    const hedy = await confirmed({ name: "Hedy", role: "admin" });
    const proposal = await proposed(ada);
    allFindBeforeAnyTakes(3);
    const answers = await Promise.all([grace, hedy, grace].map((key) => rotate(key, { ...rotation, proposal })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404]);
    expect(rotations()).toHaveLength(1);
  });

  test("is rotated or its proposal is withdrawn, and not both, at the same time", async () => {
    const proposal = await proposed(ada);
    allFindBeforeAnyTakes(2);
    const [rotated, withdrawn] = await Promise.all([
      rotate(grace, { ...rotation, proposal }),
      service.call("POST", `/operator/v1/proposals/${proposal}/withdraw`, { key: ada }),
    ]);
    expect([rotated.status, withdrawn.status].sort()).toEqual([200, 404]);
    expect(rotations()).toHaveLength(rotated.status === 200 ? 1 : 0);
  });

  test("is not rotated once the proposal is withdrawn", async () => {
    const proposal = await proposed(ada);
    expect(await service.call("POST", `/operator/v1/proposals/${proposal}/withdraw`, { key: grace })).toMatchObject({
      status: 200,
      body: { id: proposal },
    });
    expect(await rotate(grace, { ...rotation, proposal })).toMatchObject({ status: 404 });
    const withdraw = await service.call("POST", "/operator/v1/proposals/x/withdraw", { key: grace });
    expect(withdraw.status).toBe(404);
  });
});

test("another API key of a partner takes two admins", async () => {
  const keys = `/operator/v1/partners/${service.partner.id}/api-keys`;
  const json = { name: "till", scopes: ["read"] };
  expect(await service.call("POST", keys, { key: ada, json })).toMatchObject(refused);
  const { body } = await service.call("POST", `${keys}/propose`, { key: ada, json });
  const confirmed = { key: grace, json: { ...json, proposal: body["id"] } };
  expect(await service.call("POST", keys, confirmed)).toMatchObject({ status: 201, body: { apiKey: "pb_new-key" } });
});

describe("lower protection of a partner", () => {
  const lower = { cipher: "aes-256-cbc" };
  const at = () => `/operator/v1/partners/${service.partner.id}`;
  const changes = () => service.asked.filter(([what]) => what === "change");

  test("takes an admin, and the second one where the rule asks for two", async () => {
    const operator = await service.call("POST", "/operator/v1/operators", {
      key: ada,
      json: { name: "Oscar", role: "operator" },
    });
    const byOperator = (json: object) => service.call("PATCH", at(), { key: String(operator.body["token"]), json });
    expect(await byOperator(lower)).toMatchObject({
      status: 403,
      body: { code: "role_not_allowed", detail: expect.stringContaining("cipher") },
    });
    expect(await service.call("PATCH", at(), { key: ada, json: lower })).toMatchObject(refused);
    expect(changes()).toEqual([]);
    expect((await byOperator({ maxInFlight: 7 })).status).toBe(200);
    service.ruleMinutes = 0;
    expect((await service.call("PATCH", at(), { key: ada, json: lower })).status).toBe(200);
    expect((await byOperator(lower)).status).toBe(403);
    expect(changes()).toEqual([
      ["change", { maxInFlight: 7 }],
      ["change", lower],
    ]);
  });

  test("is proposed by one admin and confirmed by another, exactly as it was proposed", async () => {
    const propose = (json: object) => service.call("POST", `${at()}/propose`, { key: ada, json });
    expect((await propose({ maxInFlight: 7 })).status).toBe(404);
    expect((await propose({ cipher: "rot13" })).status).toBe(400);
    const { body } = await propose(lower);
    const confirm = (json: object) =>
      service.call("PATCH", at(), { key: grace, json: { ...json, proposal: body["id"] } });
    expect(await confirm({ ...lower, callingAddresses: ["0.0.0.0/0"] })).toMatchObject(refused);
    expect((await confirm(lower)).status).toBe(200);
    expect(changes()).toEqual([["change", lower]]);
    expect((await confirm(lower)).status).toBe(404);
  });
});

test("the rule is changed by two admins", async () => {
  const at = "/operator/v1/two-admin-rule";
  const put = (key: string, json: object) => service.call("PUT", at, { key, json });
  expect(await put(ada, { minutes: 0 })).toMatchObject(refused);
  expect(await service.call("PUT", at, { json: { minutes: 0 } })).toMatchObject(refused);
  const { body } = await service.call("POST", `${at}/propose`, { key: ada, json: { minutes: 0 } });
  expect(await put(ada, { minutes: 0, proposal: body["id"] })).toMatchObject(refused);
  expect((await service.call("GET", at, { key: ada })).body).toEqual({ minutes: 60 });
  expect(await put(grace, { minutes: 0, proposal: body["id"] })).toMatchObject({ status: 200, body: { minutes: 0 } });
  expect(await put(ada, { minutes: 5 })).toMatchObject({ status: 200 });
  expect(await rotate(ada, rotation)).toMatchObject(refused);
});

test("one admin cannot make a second self, nor can the token of the settings", async () => {
  const json = { name: "Mallory", role: "admin" };
  expect(await service.call("POST", "/operator/v1/operators", { key: ada, json })).toMatchObject(refused);
  expect(await service.call("POST", "/operator/v1/operators", { json })).toMatchObject(refused);
  expect(await service.call("POST", "/operator/v1/operators/propose", { json })).toMatchObject(refused);
  expect(await service.call("POST", `${path()}/propose`, { json: rotation })).toMatchObject(refused);
  // A viewer has no keys: one admin is enough.
  const viewer = { key: ada, json: { name: "Vera", role: "viewer" } };
  expect((await service.call("POST", "/operator/v1/operators", viewer)).status).toBe(201);
  expect((await service.call("POST", "/operator/v1/operators/propose", viewer)).status).toBe(404);
});

test("the token of the settings adds no admin after the first two, also when they are revoked", async () => {
  const list = await service.call("GET", "/operator/v1/operators");
  for (const { id } of list.body["items"] as { id: string }[]) {
    expect((await service.call("POST", `/operator/v1/operators/${id}/revoke`)).status).toBe(200);
  }
  const json = { name: "Mallory", role: "admin" };
  expect(await service.call("POST", "/operator/v1/operators", { json })).toMatchObject(refused);
});

test("nobody but an admin proposes or confirms", async () => {
  const { body } = await service.call("POST", "/operator/v1/operators", {
    key: ada,
    json: { name: "Oscar", role: "operator" },
  });
  const key = String(body["token"]);
  const refusal = { status: 403, body: { code: "role_not_allowed" } };
  expect(await service.call("POST", `${path()}/propose`, { key, json: rotation })).toMatchObject(refusal);
  expect(await rotate(key, { ...rotation, proposal: await proposed(ada) })).toMatchObject(refusal);
  expect(await service.call("GET", "/operator/v1/proposals", { key })).toMatchObject(refusal);
  // Another operator may change a partner: the proposal stays for an admin.
  const [at, lower] = [`/operator/v1/partners/${service.partner.id}`, { cipher: "aes-256-cbc" }];
  const { body: made } = await service.call("POST", `${at}/propose`, { key: ada, json: lower });
  const json = { ...lower, proposal: made["id"] };
  expect(await service.call("PATCH", at, { key, json })).toMatchObject(refusal);
  expect(await service.call("PATCH", at, { key: grace, json })).toMatchObject({ status: 200 });
});

test("a proposal is refused if one admin is enough", async () => {
  const alone = await new HttpTestService().listen();
  const at = `/operator/v1/partners/${alone.partner.id}/keys/rotate`;
  try {
    expect((await alone.call("POST", at, { json: rotation })).status).toBe(200);
    expect(await alone.call("POST", `${at}/propose`, { json: rotation })).toMatchObject({
      status: 404,
      body: { detail: expect.stringContaining("One admin is enough") },
    });
  } finally {
    await alone.close();
  }
});
