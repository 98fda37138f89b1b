import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { apiKey, HttpTestService, operatorToken } from "./service.fixture.ts";

let service: HttpTestService;
afterEach(() => service.close());

const forPartners = ["/v1/self", "/v1/notifications"];
const forOperators = ["/operator/v1/partners", "/operator/v1/notifications", "/metrics", "/readyz"];

describe("a listener", () => {
  test("of partners has nothing that is the operators'", async () => {
    service = await new HttpTestService({ listener: "partners" }).listen();
    for (const path of forOperators) {
      expect(await service.call("GET", path, { key: operatorToken })).toMatchObject({ status: 404 });
    }
    for (const path of [...forPartners, "/healthz"]) expect((await service.call("GET", path)).status).toBe(200);
    expect(Object.keys((await service.call("GET", "/openapi.json")).body["paths"] as object).join()).not.toMatch(
      /operator|metrics|readyz/,
    );
  });

  test("of operators has nothing that is the partners'", async () => {
    service = await new HttpTestService({ listener: "operators" }).listen();
    for (const path of forPartners) {
      expect(await service.call("GET", path, { key: apiKey })).toMatchObject({ status: 404 });
    }
    for (const path of forOperators) {
      expect((await service.call("GET", path, { key: operatorToken })).status).toBe(200);
    }
  });

  test("of operators answers listed addresses alone, whatever they ask", async () => {
    const env = { PAYBELL_OPERATOR_ADDRESSES: "192.0.2.0/24" };
    service = await new HttpTestService({ listener: "operators", env }).listen();
    for (const path of [...forOperators, "/healthz", "/docs/", "/nowhere"]) {
      expect(await service.call("GET", path, { key: operatorToken })).toMatchObject({
        status: 403,
        body: { code: "address_not_allowed", detail: "127.0.0.1 is not among PAYBELL_OPERATOR_ADDRESSES." },
      });
    }
  });

  test("of operators trusts only a trusted proxy", async () => {
    const env = { PAYBELL_OPERATOR_ADDRESSES: "192.0.2.7", PAYBELL_TRUSTED_PROXIES: "127.0.0.1" };
    service = await new HttpTestService({ listener: "operators", env }).listen();
    const from = (address: string) => service.call("GET", "/readyz", { headers: { "x-forwarded-for": address } });
    expect((await from("192.0.2.7")).status).toBe(200);
    expect((await from("192.0.2.7, 192.0.2.8")).status).toBe(403);
    // Some proxies append the caller's port.
    for (const named of [
      "192.0.2.7:51234",
      "198.51.100.1:80, 192.0.2.7:1",
      "192.0.2.7, 127.0.0.1:9",
      "[::ffff:192.0.2.7]:4",
    ]) {
      expect((await from(named)).status, named).toBe(200);
    }
    for (const named of ["192.0.2.7:51234, 192.0.2.8:1", "192.0.2.7:x", "[192.0.2.7", "::ffff:192.0.2.7:5"]) {
      expect((await from(named)).status, named).toBe(403);
    }
  });

  test("of operators answers programs of the proxy's own machine, which no proxy names", async () => {
    service = await new HttpTestService({
      listener: "operators",
      env: { PAYBELL_TRUSTED_PROXIES: "127.0.0.1" },
    }).listen();
    for (const path of forOperators) {
      expect((await service.call("GET", path, { key: operatorToken })).status, path).toBe(200);
    }
    const from = (address: string) => service.call("GET", "/readyz", { headers: { "x-forwarded-for": address } });
    expect((await from("127.0.0.1")).status).toBe(200);
    expect(await from("192.0.2.8")).toMatchObject({ status: 403, body: { detail: expect.stringMatching(/^192/) } });
    expect(await from("unknown")).toMatchObject({
      status: 403,
      body: { code: "address_not_allowed", detail: expect.stringContaining("X-Forwarded-For") },
    });
  });
});

describe("a request that a proxy may read otherwise", () => {
  async function statusOf(head: string): Promise<string> {
    const socket = connect(service.port, "127.0.0.1");
    socket.on("error", () => undefined).setEncoding("utf8");
    let answer = "";
    socket.on("data", (text: string) => (answer += text));
    socket.write(`${head}Connection: close\r\n\r\n`);
    await once(socket, "close");
    return answer;
  }

  test.each(["/%6detrics", "/%6Fperator/v1/partners", "/v1/%73elf", "/%2fv1/%2e%2e/metrics", "/v1/transactions/%41"])(
    "is refused: the path %s",
    async (path) => {
      service = await new HttpTestService().listen();
      const answer = await statusOf(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${operatorToken}\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 400 /);
      expect(answer).toContain("ambiguous_request");
    },
  );

  test.each([
    ["two Hosts", "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n"],
    ["two Hosts in other letters", "GET /healthz HTTP/1.1\r\nhost: x\r\nHOST: x\r\n"],
    ["two keys", "GET /v1/self HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n"],
    ["a target that is no path", "GET http://x/metrics HTTP/1.1\r\nHost: x\r\n"],
  ])("is refused: %s", async (_, head) => {
    service = await new HttpTestService().listen();
    const answer = await statusOf(head);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain("ambiguous_request");
  });

  test("has one spelling: only characters that need encoding are encoded", async () => {
    service = await new HttpTestService().listen();
    expect((await service.call("GET", "/v1/transactions/a%20b%3A%C3%A9")).status).toBe(404);
    expect((await service.call("GET", "/v1/transactions?reqId=%41")).status).not.toBe(400);
  });
});

/** fetch writes Host and Origin itself. */
function statusWith(headers: Record<string, string>, path = "/healthz"): Promise<number | undefined> {
  const withPort = Object.entries(headers).map(([name, value]) => [name, value.replace("PORT", String(service.port))]);
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: service.port, path, headers: Object.fromEntries(withPort) };
    request(options, (response) => {
      response.resume().on("end", () => resolve(response.statusCode));
    })
      .on("error", reject)
      .end();
  });
}

describe("the sandbox", () => {
  beforeEach(async () => {
    service = await new HttpTestService({ sandbox: true }).listen();
  });

  test.each(["localhost:PORT", "127.0.0.1:PORT", "[::1]:PORT", "LOCALHOST:PORT"])("answers %s", async (host) => {
    expect(await statusWith({ host })).toBe(200);
    expect(await statusWith({ host, origin: `http://${host}` })).toBe(200);
  });

  test.each([
    "evil.example:PORT",
    "localhost",
    "localhost:1",
    "localhost.evil.example:PORT",
    "127.0.0.1.nip.io:PORT",
    "127.1:PORT",
    "user@localhost:PORT",
    "0.0.0.0:PORT",
  ])("refuses Host %s on every path", async (host) => {
    for (const path of ["/healthz", "/docs/", "/v1/self", "/nowhere"])
      expect(await statusWith({ host }, path)).toBe(403);
  });

  test.each(["http://evil.example", "null", "https://localhost:PORT", "http://localhost:1", "http://localhost"])(
    "refuses Origin %s",
    async (origin) => {
      expect(await statusWith({ host: "localhost:PORT", origin })).toBe(403);
    },
  );

  test("says which hosts it answers", async () => {
    const answer = await service.call("GET", "/healthz", { headers: { origin: "http://evil.example" } });
    expect(answer.body).toMatchObject({ code: "host_not_allowed" });
    expect(answer.body["detail"]).toContain(`localhost:${service.port}`);
  });
});

test("production answers any Host", async () => {
  service = await new HttpTestService().listen();
  expect(await statusWith({ host: "ops.example", origin: "https://ops.example" })).toBe(200);
});
