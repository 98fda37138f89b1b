import { afterEach, expect, test, vi } from "vitest";
import { api, CallError, rememberCsrf } from "./call.ts";
import { csrfHeader, operations } from "./operations.ts";

afterEach(() => vi.unstubAllGlobals());

test("a call that got no answer promises no retry: a change may have been made", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("fetch failed")));
  const problemOf = async (call: Promise<unknown>) => {
    const error = await call.catch((problem: unknown) => problem);
    if (!(error instanceof CallError)) throw new Error("the call did not fail as expected");
    return [error.message, error.remedy];
  };
  expect(await problemOf(api.pausePartner("p"))).toEqual([
    "The service cannot be reached.",
    "It is not known whether the change was made: check before you try again.",
  ]);
  expect(await problemOf(api.getSession())).toEqual([
    "The service cannot be reached.",
    "Check your connection, then try again.",
  ]);
});

test("a call has its ids in the path, its input in query or body, and the session's token if it changes something", async () => {
  const sent: unknown[] = [];
  const answer = async (url: string, { method, headers, body }: RequestInit) => {
    sent.push([method, url, headers, body]);
    return Response.json({});
  };
  vi.stubGlobal("fetch", answer);
  rememberCsrf("t");
  await api.searchNotifications({ partner: "a&b", q: "", state: undefined, limit: 50 });
  await api.pausePartner("p/1");
  await api.revokeApiKey("p", "k");
  await api.rotateKey("p", { key: "signingKey", overlapHours: 0 });
  const json = { "content-type": "application/json" };
  expect(sent).toEqual([
    ["GET", "/operator/v1/notifications?partner=a%26b&limit=50", {}, undefined],
    ["POST", "/operator/v1/partners/p%2F1/pause", { [csrfHeader]: "t" }, undefined],
    ["POST", "/operator/v1/partners/p/api-keys/k/revoke", { [csrfHeader]: "t" }, undefined],
    [
      ...["POST", "/operator/v1/partners/p/keys/rotate", { [csrfHeader]: "t", ...json }],
      JSON.stringify({ key: "signingKey", overlapHours: 0 }),
    ],
  ]);
});

test("a problem is told in the service's words, each at its field; a 401 says that the session has ended", async () => {
  const errors = [{ field: "retry[2]", code: "invalid_value", message: "It is too long." }];
  const problem = {
    code: "invalid_request",
    detail: "D",
    remedy: "R",
    documentation: "/docs",
    instance: "urn:1",
    errors,
  };
  vi.stubGlobal("fetch", async () => Response.json(problem, { status: 400 }));
  await expect(api.pausePartner("p")).rejects.toMatchObject({
    ...{ message: "D", status: 400, code: "invalid_request", remedy: "R", documentation: "/docs", instance: "urn:1" },
    ...{ fields: { "retry[2]": "It is too long." }, isSignedOut: false },
  });
  vi.stubGlobal("fetch", async () => new Response("<html>", { status: 401 }));
  await expect(api.getSession()).rejects.toMatchObject({ status: 401, code: "unreachable", isSignedOut: true });
});

test("operations that the audit records are marked: neither those that only read, nor those of the ledger", () => {
  const marked = (name: string) => operations[name]?.[3] === "audited";
  expect(["rotateKey", "readNotification", "sendTestNotification", "inspectEvent"].map(marked)).toEqual(
    Array(4).fill(true),
  );
  expect(["searchNotifications", "runSandboxCommand", "searchAudit"].map(marked)).toEqual(Array(3).fill(false));
});
