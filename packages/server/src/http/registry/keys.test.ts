import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newId } from "../../ids.ts";
import type { ApiKeyScope } from "../../partners/partner.ts";
import { HttpTestService } from "../service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

const logon = { command: "LOGON", reqId: "11111111-1111-4111-8111-111111111111", tid: "T1", mid: "M1" };
const calls: readonly (readonly [needed: ApiKeyScope, method: string, path: string, json: object | undefined])[] = [
  ["commands", "POST", "/v1/commands", logon],
  ["pull", "GET", "/v1/notifications", undefined],
  ["read", "GET", "/v1/endpoints", undefined],
  ["pull", "GET", `/v1/notifications/${newId()}/sealed`, undefined],
  ["manage", "POST", "/v1/test-notification", undefined],
  ["manage", "POST", "/v1/api-keys", { name: "till", scopes: ["manage"] }],
];

describe("a key with scopes", () => {
  test.each(calls)("needs %s for %s %s", async (needed, method, path, json) => {
    const all: readonly ApiKeyScope[] = ["read", "pull", "commands", "manage"];
    service.scopes = all.filter((scope) => scope !== needed);
    const refused = await service.call(method, path, { json });
    expect(refused).toMatchObject({ status: 403, body: { code: "scope_not_allowed" } });
    expect(refused.body["detail"]).toContain(needed);
    expect(service.ran).toEqual([]);
    service.scopes = [needed];
    expect((await service.call(method, path, { json })).status).toBeLessThan(300);
  });

  test("needs this scope for each operation", async () => {
    const { paths } = (await service.call("GET", "/openapi.json")).body as {
      paths: Record<string, Record<string, { readonly operationId: string }>>;
    };
    const needed: string[] = [];
    service.scopes = [];
    for (const [path, of] of Object.entries(paths).filter(([path]) => path.startsWith("/v1/"))) {
      for (const [method, { operationId }] of Object.entries(of)) {
        const { body } = await service.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "x"));
        const [, scope = "none"] = /the scope (\w+)/.exec(String(body["detail"])) ?? [];
        needed.push(`${operationId} ${scope}`);
      }
    }
    const ofScope = (scope: string, ...operations: readonly string[]) => operations.map((one) => `${one} ${scope}`);
    expect(needed.sort()).toEqual(
      [
        "getSelf none",
        ...ofScope("read", "findTransaction", "getBacklog", "getCertificates", "getFigures", "getNotification"),
        ...ofScope("read", "getOwnKeyUse", "getOwnRedelivery", "getStatement", "getTransaction", "listBatches"),
        ...ofScope("read", "listEndpoints", "listSettlements", "searchOwnNotifications"),
        ...ofScope("pull", "getSealedNotification", "pullNotifications"),
        "runCommand commands",
        ...ofScope("manage", "addOwnApiKey", "certifyEndpoint", "changeCallbackUrl", "closeEndpoint"),
        ...ofScope("manage", "redeliverNotification", "redeliverOwn", "revokeOwnApiKey", "rotateOwnKey"),
        "sendTestNotification manage",
      ].sort(),
    );
  });

  test("may ask who it is, whatever its scopes", async () => {
    service.scopes = ["commands"];
    expect((await service.call("GET", "/v1/self")).status).toBe(200);
  });

  test("makes none that allows more, or lasts longer, than it does itself", async () => {
    service.scopes = ["manage", "read"];
    const json = { name: "till", scopes: ["read"], expiresInDays: 30 };
    expect((await service.call("POST", "/v1/api-keys", { json })).status).toBe(201);
    expect(service.asked).toContainEqual(["addApiKey", service.partner.id, json, ["manage", "read"], service.keyId]);
  });
});

test("a key without limits makes one that outlives it", async () => {
  const json = { name: "till", scopes: ["read"] };
  expect((await service.call("POST", "/v1/api-keys", { json })).status).toBe(201);
  expect(service.asked).toContainEqual(["addApiKey", service.partner.id, json, null, null]);
});

test("a partner revokes its own keys, and gets 404 for an unknown one", async () => {
  const path = `/v1/api-keys/${service.keyId}/revoke`;
  expect(await service.call("POST", path)).toMatchObject({ status: 200, body: { id: service.keyId } });
  expect(service.asked).toContainEqual(["revokeApiKey", service.partner.id, service.keyId, null]);
  service.scopes = ["manage", "read"];
  expect((await service.call("POST", path)).status).toBe(200);
  expect(service.asked).toContainEqual(["revokeApiKey", service.partner.id, service.keyId, ["manage", "read"]]);
  for (const id of [newId(), "x"]) expect((await service.call("POST", `/v1/api-keys/${id}/revoke`)).status).toBe(404);
});

test("a partner replaces its own keys by a key without limits, and the audit has which, without it", async () => {
  const json = { key: "encryptionKey", overlapHours: 72 };
  const rotated = await service.call("POST", "/v1/keys/rotate", { json });
  expect(rotated).toMatchObject({ status: 200, body: { kind: "encryptionKey", secret: "new-secret" } });
  expect(service.asked).toContainEqual(["rotate", "encryptionKey", 72]);
  expect(service.audit.records).toMatchObject([{ action: "rotateOwnKey", actor: `partner ${service.partner.id}` }]);
  expect(JSON.stringify(service.audit.records)).not.toContain("new-secret");
  const wrong = await service.call("POST", "/v1/keys/rotate", { json: { key: "callbackKey", overlapHours: 721 } });
  expect((wrong.body["errors"] as { field: string }[]).map(({ field }) => field)).toEqual(["key", "overlapHours"]);
  service.scopes = ["read", "pull", "commands", "manage"];
  const refused = await service.call("POST", "/v1/keys/rotate", { json });
  expect(refused).toMatchObject({ status: 403, body: { code: "scope_not_allowed" } });
});

test("an operator makes and revokes them for any partner, and needs to be admin to make one", async () => {
  const partner = `/operator/v1/partners/${service.partner.id}/api-keys`;
  const json = { name: "till", scopes: ["commands"] };
  const made = await service.call("POST", partner, { json });
  expect(made).toMatchObject({ status: 201, body: { apiKey: "pb_new-key" } });
  expect(service.asked).toContainEqual(["addApiKey", service.partner.id, json, null, null]);
  expect((await service.call("POST", `${partner}/${service.keyId}/revoke`)).status).toBe(200);
  expect(service.asked).toContainEqual(["revokeApiKey", service.partner.id, service.keyId, "operator"]);
  const added = await service.call("POST", "/operator/v1/operators", { json: { name: "Ada", role: "operator" } });
  const key = String(added.body["token"]);
  expect((await service.call("POST", partner, { key, json })).status).toBe(403);
  expect((await service.call("POST", `${partner}/${service.keyId}/revoke`, { key })).status).toBe(200);
});

test.each([
  [{ name: "x", scopes: ["all"] }, "scopes[0]"],
  [{ name: "x" }, "scopes"],
  [{ name: "x", scopes: ["read"], expiresInDays: 1.5 }, "expiresInDays"],
  [{ name: "x", scopes: ["read"], key: "mine" }, "key"],
])("is not made of %j", async (json, field) => {
  expect(await service.call("POST", "/v1/api-keys", { json })).toMatchObject({
    status: 400,
    body: { errors: [{ field }] },
  });
});

test("the audit names the key that was used, and what was made and revoked, without it", async () => {
  await service.call("POST", "/v1/api-keys", { json: { name: "till", scopes: ["read"] } });
  await service.call("POST", `/v1/api-keys/${service.keyId}/revoke`);
  const [made, revoked] = service.audit.records;
  expect(made).toMatchObject({ action: "addOwnApiKey", tokenId: service.keyId });
  expect(revoked).toMatchObject({ action: "revokeOwnApiKey", subject: service.keyId });
  expect(JSON.parse(made?.after ?? "")).toMatchObject({ id: service.partner.id, keys: [] });
  expect(JSON.stringify(service.audit.records)).not.toContain("pb_new-key");
  expect(service.used).toContainEqual([service.partner.id, service.keyId]);
});
