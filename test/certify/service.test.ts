import { createServer, type Server } from "node:http";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { caseCodes } from "../../packages/partner/src/certify/certify.ts";
import {
  certificatesSchema,
  certificationSchema,
  keyUseSchema,
} from "../../packages/server/src/http/deliveries/callbacks.ts";
import { sale } from "../support/commands.ts";
import { startPartnerServer } from "../support/receiver.ts";
import { startTestService, type WholeService } from "../support/service.ts";

const servers: Server[] = [];
const service = await startTestService();
const other = await startPartnerServer();
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});
afterAll(async () => {
  await service.stop();
  await other.close();
});

describe("the service certifies an endpoint", () => {
  test("with the partner's own keys, over TLS: one of the library passes every case", async () => {
    const partner = await service.register();
    const { status, body } = await service.operator("POST", `/operator/v1/partners/${partner.id}/certify`, {});
    expect(status).toBe(200);
    const report = certificationSchema.parse(body);
    expect(report).toMatchObject({ passed: true, url: partner.server.url, counts: { failed: 0, notRun: 0 } });
    expect(report.cases.map(({ code }) => code)).toEqual(caseCodes);
    expect(Date.parse(report.certificateEndsAt ?? "")).toBeGreaterThan(Date.now());
    expect(JSON.stringify(report)).not.toContain(partner.secrets.signingKey);
  });

  test("and says what is wrong with one that accepts everything", async () => {
    const partner = await service.register();
    const blind = createServer((request, response) => request.resume().on("end", () => response.writeHead(204).end()));
    servers.push(blind.listen(0, "127.0.0.1"));
    await new Promise((resolve) => blind.once("listening", resolve));
    const url = `http://127.0.0.1:${(blind.address() as { port: number }).port}/ipn`;
    const { body } = await partner.call("POST", "/v1/certify", { json: { url } });
    const report = certificationSchema.parse(body);
    expect(report).toMatchObject({ passed: false, certificateEndsAt: null });
    const failed = report.cases.filter(({ verdict }) => verdict === "failed");
    expect(failed.map(({ finding }) => finding?.code)).toContain("accepted_forgery");
  });

  test("only at addresses that are agreed with the partner, and nothing is sent elsewhere", async () => {
    const partner = await service.register({ callbackAddresses: ["127.0.0.2/32"], callBackUrl: null });
    const path = `/operator/v1/partners/${partner.id}/certify`;
    expect(await service.operator("POST", path, {})).toMatchObject({ status: 409, body: { code: "no_callback_url" } });
    expect(await service.operator("POST", path, { url: other.url })).toMatchObject({
      status: 400,
      body: { errors: [{ field: "url", code: "address_not_whitelisted" }] },
    });
    const byName = other.url.replace("127.0.0.1", "localhost");
    const { body } = await service.operator("POST", path, { url: byName });
    const [first, ...rest] = certificationSchema.parse(body).cases;
    expect(first).toMatchObject({ verdict: "failed", finding: { code: "no_connection" } });
    expect(first?.exchanges[0]?.detail).toBe("its name leads to no address among the partner's callbackAddresses");
    expect(new Set(rest.map(({ verdict }) => verdict))).toEqual(new Set(["not_run"]));
    expect(other.deliveries).toEqual([]);
  });
});

describe("a partner's own change of its callback URL", () => {
  const urlOf = async (id: string) => {
    const { body } = await service.operator("GET", `/operator/v1/partners/${id}`);
    return (body["settings"] as { callBackUrl: string }).callBackUrl;
  };
  const change = (partner: Awaited<ReturnType<WholeService["register"]>>, callBackUrl: string) =>
    partner.call("PUT", "/v1/callback-url", { json: { callBackUrl } });

  test("takes place once the new one has accepted a test IPN, and holds for what follows", async () => {
    const partner = await service.register({ callBackUrlChange: "partner" });
    const next = await startPartnerServer();
    next.opensWith(partner.keys);
    try {
      const answer = await change(partner, next.url);
      expect(answer).toMatchObject({ status: 200, body: { settings: { callBackUrl: next.url } } });
      const [tested] = await next.next(1);
      expect(tested?.received?.ipn).toMatchObject({ merchantId: "TEST" });
      await partner.run(sale());
      await next.next(2);
      expect(partner.server.deliveries).toEqual([]);
    } finally {
      await next.close();
    }
  });

  test.each([503, 400, 302, "reset"] as const)(
    "does not take place where the test IPN is answered by %s",
    async (how) => {
      const partner = await service.register({ callBackUrlChange: "partner" });
      other.answers(how);
      const { status, body } = await change(partner, `${other.url}/${how}`);
      expect([status, body["code"]]).toEqual([409, "callback_url_not_confirmed"]);
      expect(String(body["detail"])).not.toMatch(/\d+\.\d+\.\d+\.\d+/);
      expect(await urlOf(partner.id)).toBe(partner.server.url);
    },
  );

  const rotation = { key: "apiKey", overlapHours: 0 };
  test.each([
    ["has taken the permission back", "PATCH", "", { callBackUrlChange: "operator" }, 409, "callback_url_fixed"],
    ["has ended its API key", "POST", "/keys/rotate", rotation, 401, "unauthorized"],
    ["has disabled the partner", "POST", "/disable", undefined, 403, "partner_disabled"],
  ] as const)(
    "does not take place if the operator %s until its test IPN is accepted",
    async (_, method, path, body, status, code) => {
      const partner = await service.register({ callBackUrlChange: "partner" });
      const before = other.deliveries.length;
      const { promise: when, resolve } = Promise.withResolvers<void>();
      other.answers({ when, status: 204 });
      const changed = change(partner, other.url);
      await other.until((all) => all.length > before);
      const done = await service.operator(method, `/operator/v1/partners/${partner.id}${path}`, body);
      expect(done.status).toBe(200);
      resolve();
      expect(await changed).toMatchObject({ status, body: { code } });
      expect(await urlOf(partner.id)).toBe(partner.server.url);
    },
  );

  test("is refused unless the operator allowed it, and for a URL that cannot be called; nothing is sent", async () => {
    const partner = await service.register();
    const before = other.deliveries.length;
    expect(await change(partner, other.url)).toMatchObject({ status: 409, body: { code: "callback_url_fixed" } });
    const allowed = await service.register({ callBackUrlChange: "partner" });
    expect(await change(allowed, "https://192.0.2.1/ipn")).toMatchObject({
      status: 400,
      body: { errors: [{ field: "callBackUrl", code: "address_not_whitelisted" }] },
    });
    expect(other.deliveries).toHaveLength(before);
    expect(await urlOf(partner.id)).toBe(partner.server.url);
  });
});

describe("the conditions of a delivery", () => {
  test("is the end of its server's certificate, seen without a POST", async () => {
    const partner = await service.register();
    const { body } = await partner.call("GET", "/v1/certificates");
    const { items } = certificatesSchema.parse(body);
    expect(items).toMatchObject([{ whose: "server", target: new URL(partner.server.url).origin, problem: null }]);
    expect(Date.parse(items[0]?.endsAt ?? "")).toBeGreaterThan(Date.now());
    expect(partner.server.deliveries).toEqual([]);
    await partner.server.close();
    const { body: closed } = await service.operator("GET", `/operator/v1/partners/${partner.id}/certificates`);
    expect(certificatesSchema.parse(closed).items).toMatchObject([
      { endsAt: null, problem: "the connection was refused" },
    ]);
  });

  test("is which version of its key its endpoint accepts", async () => {
    const partner = await service.register();
    const used = async () => {
      const { body } = await service.operator("GET", `/operator/v1/partners/${partner.id}/key-use`);
      return keyUseSchema.parse(body).items;
    };
    expect(await used()).toEqual([]);
    const sold = await partner.run(sale());
    await partner.settled((sold.body["notification"] as { id: string }).id, "accepted");
    const [before, ...none] = await used();
    expect(before).toMatchObject({ accepted: 1, failed: 0, lastAcceptedAt: expect.stringMatching(/Z$/) });
    expect(none).toEqual([]);
    const rotation = { key: "encryptionKey", overlapHours: 0 };
    const { body: rotated } = await service.operator(
      "POST",
      `/operator/v1/partners/${partner.id}/keys/rotate`,
      rotation,
    );
    const refused = await partner.run(sale());
    await partner.server.until((all) => all.length === 2);
    await partner.call("GET", `/v1/notifications/${(refused.body["notification"] as { id: string }).id}`);
    await expect.poll(async () => (await used()).find(({ keyId }) => keyId === rotated["id"])?.failed).toBe(1);
    expect((await used()).find(({ keyId }) => keyId === before?.keyId)).toEqual(before);
  });
});
