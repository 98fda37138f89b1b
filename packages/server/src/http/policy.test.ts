import type { FastifyInstance } from "fastify";
import { describe, expect, test } from "vitest";
import { admin, anybody, type Policy, partnerReads } from "./policy.ts";
import { HttpTestService } from "./service.fixture.ts";

/** Starts a service with a route of a test, in no scope whose callers are authenticated. */
async function starts(addRoutes: (app: FastifyInstance) => void): Promise<void> {
  const service = new HttpTestService({ addRoutes });
  try {
    await service.listen();
  } finally {
    await service.close();
  }
}

describe("a route", () => {
  test.each<[what: string, path: string, policy: Policy | undefined]>([
    ["without a policy", "/operator/v1/every-key", undefined],
    ["without a policy, of partners,", "/v1/every-key", undefined],
    ["for anybody, behind a key,", "/operator/v1/every-key", anybody],
    ["of operators that is for partners", "/operator/v1/every-key", partnerReads],
    ["of operators at a path without a key", "/every-key", admin.reads],
  ])("%s does not start", async (_, path, policy) => {
    const config = policy && { policy };
    await expect(starts((app) => app.get(path, { ...(config && { config }) }, async () => ({})))).rejects.toThrow(
      `GET ${path} has no policy for its callers`,
    );
  });

  test("with a policy does not start where nobody is authenticated", async () => {
    const started = starts((app) => app.get("/v1/keys", { config: { policy: partnerReads } }, async () => ({})));
    await expect(started).rejects.toThrow("GET /v1/keys is not behind the gate of its callers");
  });

  test("that changes something is audited, and so is each look at what was bought", async () => {
    const audited = { nothing: [], ledger: [], look: [], change: [], action: [] } as Record<string, string[]>;
    await starts((app) => {
      app.addHook("onRoute", ({ method, config, schema }) => {
        const { policy } = config ?? {};
        if (method === "HEAD" || policy === undefined || !("audit" in policy)) return;
        const { kind } = policy.audit;
        const isUsual = method === "GET" ? kind === "nothing" : kind === "change" || kind === "action";
        if (!isUsual) audited[kind]?.push(String((schema as { operationId?: string }).operationId));
      });
    });
    for (const operations of Object.values(audited)) operations.sort();
    expect(audited).toMatchObject({
      ...{ nothing: [], change: [], action: [] },
      // The ledger has these.
      ledger: ["reportCompletions", "runCommand", "runSandboxCommand"],
      look: [
        ...["exportHistory", "exportPartner", "inspectClearingException", "inspectEvent", "proveDelivery"],
        "readNotification",
      ],
    });
  });

  test("for anybody starts", async () => {
    await starts((app) => app.get("/weather", async () => ({})));
  });
});
