import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { apiKey, databaseAway, HttpTestService } from "../service.fixture.ts";
import { auditPageSchema } from "./audit.ts";
import { newOperatorSchema, operatorListSchema, operatorSchema } from "./operators.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

async function added(role: string, name = "Ada"): Promise<{ readonly id: string; readonly token: string }> {
  const { status, body } = await service.call("POST", "/operator/v1/operators", { json: { name, role } });
  expect(status).toBe(201);
  expect(newOperatorSchema.safeParse(body).error).toBeUndefined();
  return body as { id: string; token: string };
}

type Operations = Readonly<Record<string, { readonly operationId: string }>>;

/** What shows the content of IPNs. */
const ofContent = ["exportHistory", "proveDelivery", "readNotification"];
/** What shows or creates keys, or grants that right. */
const ofAdmins = {
  reads: ["exportPartner", "listOperators", "listProposals", "searchAudit"],
  actions: [
    ...["addApiKey", "addOperator", "changeTwoAdminRule", "proposeApiKey", "proposeOperator", "proposePartnerChange"],
    ...["proposeRotateKey", "proposeTwoAdminRule", "putAcquirer", "putCallbackCertificate", "registerPartner"],
    ...["releaseRestore", "removeAcquirer", "removeCallbackCertificate", "removePartner", "revokeOperator"],
    ...["rotateKey", "withdrawProposal"],
  ],
};

const terminal = (key: string) =>
  service.call("PUT", `/operator/v1/partners/${service.partner.id}/terminals/T1`, { key, json: { mid: "M1" } });

describe("an operator", () => {
  test("is added with a token that is shown once, listed without it, and revoked", async () => {
    const { id, token } = await added("admin");
    expect(token).toMatch(/^pbo_[\w-]{43}$/);
    const list = await service.call("GET", "/operator/v1/operators", { key: token });
    expect(operatorListSchema.safeParse(list.body).error).toBeUndefined();
    expect(list.body["items"]).toMatchObject([{ id, name: "Ada", role: "admin", revokedAt: null }]);
    expect(list.text).not.toContain(token);
    const revoked = await service.call("POST", `/operator/v1/operators/${id}/revoke`);
    expect(revoked.status).toBe(200);
    expect(operatorSchema.safeParse(revoked.body).error).toBeUndefined();
    expect((await service.call("GET", "/operator/v1/partners", { key: token })).status).toBe(401);
    expect(service.logged).not.toContain(token);
  });

  test.each([
    ["viewer", [...ofContent, ...ofAdmins.reads].sort(), "every"],
    ["operator", ofAdmins.reads, ofAdmins.actions],
    ["admin", [], []],
  ])("may not, as %s, read %j, nor do %j", async (role, reads, actions) => {
    const { token: key } = await added(role);
    const { paths } = (await service.call("GET", "/openapi.json")).body as { paths: Record<string, Operations> };
    const ofOperators = Object.entries(paths).filter(([path]) => path.startsWith("/operator/"));
    const all = ofOperators.flatMap(([path, of]) => Object.entries(of).map((one) => [path, ...one] as const));
    const refused: { reads: string[]; actions: string[] } = { reads: [], actions: [] };
    for (const [path, method, { operationId }] of all) {
      // The head of a read has its rights, and ends, also of a stream.
      const verb = method === "get" ? "HEAD" : method.toUpperCase();
      const { status } = await service.call(verb, path.replaceAll(/\{\w+\}/g, service.partner.id), { key });
      if (status === 403) refused[method === "get" ? "reads" : "actions"].push(operationId);
    }
    const every = all.flatMap(([, method, { operationId }]) => (method === "get" ? [] : [operationId]));
    expect(refused.reads.sort()).toEqual(reads);
    expect(refused.actions.sort()).toEqual(actions === "every" ? every.sort() : actions);
    expect(every.length).toBeGreaterThan(ofAdmins.actions.length);
    const { body } = await service.call("POST", "/operator/v1/operators", { key, json: {} });
    expect(body).toMatchObject({ code: role === "admin" ? "missing_field" : "role_not_allowed" });
  });

  test.each([
    [{ name: "", role: "viewer" }, "name"],
    [{ name: "x", role: "root" }, "role"],
    [{ name: "x", role: "viewer", expiresInDays: 0 }, "expiresInDays"],
    [{ name: "x", role: "viewer", expiresInDays: 1_000 }, "expiresInDays"],
    [{ name: "x", role: "viewer", token: "mine" }, "token"],
    [{ name: "4111 1111 1111 1111", role: "viewer" }, "name"],
    [{ name: "Bootstrap ", role: "viewer" }, "name"],
    [{ name: "boot\u200bstrap", role: "viewer" }, "name"],
    [{ name: "partner 01a201e6-1bf7-73ed-8aa6-cf91ed000000", role: "viewer" }, "name"],
    [{ name: "Ada (oidc)", role: "viewer" }, "name"],
    [{ name: "Ada \uff08OIDC)", role: "viewer" }, "name"],
    [{ name: "\u202eada", role: "viewer" }, "name"],
  ])("is not added as %j", async (json, field) => {
    const answer = await service.call("POST", "/operator/v1/operators", { json });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ field }] } });
  });

  test("that does not exist is 404", async () => {
    for (const id of ["x", "01a201e6-1bf7-73ed-8aa6-cf91ed000000"]) {
      expect((await service.call("POST", `/operator/v1/operators/${id}/revoke`)).status).toBe(404);
    }
  });
});

describe("the audit", () => {
  const entries = async (query = "") => {
    const { status, body } = await service.call("GET", `/operator/v1/audit${query}`);
    expect(status).toBe(200);
    expect(auditPageSchema.safeParse(body).error).toBeUndefined();
    return body["items"] as Record<string, unknown>[];
  };

  test("has every action of operators and partners, with actor, address and subject, and no reads", async () => {
    const { id, token } = await added("operator");
    await terminal(token);
    await service.call("GET", "/operator/v1/partners", { key: token });
    await service.call("POST", "/v1/test-notification", { key: apiKey });
    await service.call("POST", "/v1/commands", {
      key: apiKey,
      json: { command: "LOGON", reqId: "11111111-1111-4111-8111-111111111111", tid: "T1", mid: "M1" },
    });
    const address = "127.0.0.1";
    const partner = service.partner.id;
    expect(await entries()).toMatchObject([
      { actor: `partner ${partner}`, role: "partner", address, action: "sendTestNotification" },
      { actor: `partner ${partner}`, role: "partner", address, action: "begin sendTestNotification" },
      { actor: "Ada", role: "operator", tokenId: id, address, action: "putTerminal", subject: `${partner}/T1` },
      { actor: "bootstrap", role: "admin", address, action: "addOperator", after: { name: "Ada" } },
    ]);
    expect(await entries("?actor=Ada")).toHaveLength(1);
    for (const [from, to, found] of [
      [-1, 1, 4],
      [-2, -1, 0],
      [1, 2, 0],
    ] as const) {
      const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
      expect(await entries(`?from=${at(from)}&to=${at(to)}`)).toHaveLength(found);
    }
  });

  test("has a partner's settings before and after, and no key that was made", async () => {
    const { id } = service.partner;
    await service.call("PATCH", `/operator/v1/partners/${id}`, { json: { name: "Another name" } });
    await service.call("POST", `/operator/v1/partners/${id}/keys/rotate`, {
      json: { key: "signingKey", overlapHours: 1 },
    });
    const [rotated, changed] = await entries();
    expect(changed).toMatchObject({ action: "changePartner", before: { id }, after: { id } });
    expect(rotated).toMatchObject({ action: "rotateKey", subject: id });
    expect(JSON.stringify([rotated, changed])).not.toContain("new-secret");
  });

  test("has a terminal and an operator before and after", async () => {
    const { id, token } = await added("operator");
    await terminal(token);
    await service.call("POST", `/operator/v1/operators/${id}/revoke`);
    const [revoked, registered] = await entries();
    expect(registered).toMatchObject({ action: "putTerminal", before: null, after: { tid: "T1" } });
    expect(revoked).toMatchObject({ action: "revokeOperator", before: { revokedAt: null } });
    expect(revoked).toMatchObject({ after: { name: "Ada", revokedAt: expect.any(String) } });
    expect(await entries("?action=putTerminal")).toHaveLength(1);
    expect(await entries("?tokenId=nobody")).toHaveLength(0);
  });

  test("has nothing of what was refused", async () => {
    await service.call("POST", "/operator/v1/operators", { json: { name: "", role: "viewer" } });
    await service.call("POST", "/operator/v1/operators", { key: "wrong", json: { name: "x", role: "viewer" } });
    expect(await entries()).toEqual([]);
  });

  test("gives pages, the newest first", async () => {
    for (const name of ["a", "b", "c"]) await added("viewer", name);
    const first = await service.call("GET", "/operator/v1/audit?limit=2");
    expect(first.body["items"]).toMatchObject([{ seq: 3 }, { seq: 2 }]);
    const second = await service.call("GET", `/operator/v1/audit?limit=2&after=${String(first.body["next"])}`);
    expect(second.body).toMatchObject({ items: [{ seq: 1 }], next: null });
  });

  test("of an outcome that cannot be written is in the log, and the answer is sent", async () => {
    service.audit.recordsMax = 1;
    const path = `/operator/v1/notifications/${service.notificationId}/redeliver`;
    expect((await service.call("POST", path, { json: {} })).status).toBe(202);
    const line = service.logged.split("\n").find((one) => one.includes("could not be audited"));
    expect(line).toContain("redeliverAnyNotification");
    expect(service.auditFailures).toHaveLength(1);
  });

  test("whose state after the action cannot be read has its entry all the same, and the answer is sent", async () => {
    service.fails("findPartner", new Error(databaseAway), 1);
    const json = { name: "A till", scopes: ["read"] };
    const path = `/operator/v1/partners/${service.partner.id}/api-keys`;
    const made = await service.call("POST", path, { json });
    expect(made).toMatchObject({ status: 201, body: { apiKey: "pb_new-key" } });
    expect(await entries()).toMatchObject([{ action: "addApiKey", before: { id: service.partner.id }, after: null }]);
  });

  test("never has the body of a request whose object somebody else has removed: it may hold a key", async () => {
    const json = { macKey: "00112233445566778899aabbccddeeff" };
    expect((await service.call("PUT", "/operator/v1/acquirers/gone", { json })).status).toBe(200);
    expect(await entries()).toMatchObject([{ action: "putAcquirer", subject: "gone", before: null, after: null }]);
    expect(JSON.stringify(service.audit.records)).not.toContain(json.macKey);
  });

  test("has nothing of a command of the sandbox: it is in the ledger, without its card", async () => {
    const sandbox = await new HttpTestService({ sandbox: true }).listen();
    const json = { command: "LOGON", reqId: "11111111-1111-4111-8111-111111111111", tid: "T1", mid: "M1" };
    expect((await sandbox.call("POST", "/operator/v1/sandbox/commands", { json })).status).toBe(200);
    expect(sandbox.audit.records).toEqual([]);
    await sandbox.close();
  });
});
