import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { databaseAway, HttpTestService } from "./service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

const logon = { command: "LOGON", reqId: "11111111-1111-4111-8111-111111111111", tid: "T1", mid: "M1" };

/** Sends bytes as they are, and resolves to all that comes back until the server closes. */
async function raw(...chunks: (string | Buffer)[]): Promise<string> {
  const socket = connect(service.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  let answer = "";
  socket.on("data", (data) => (answer += data));
  for (const chunk of chunks) socket.write(chunk);
  await once(socket, "close");
  return answer;
}

function problemIn(answer: string): Record<string, unknown> {
  return JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as Record<string, unknown>;
}

describe("a body", () => {
  test.each([
    ["no JSON", "{", "The body is not well-formed JSON."],
    ["nothing", "", "The body must be one JSON object."],
    ["a list", "[]", "The body must be one JSON object."],
    ["null", "null", "The body must be one JSON object."],
    ["a key twice", '{"command":"LOGON","command":"SALE"}', 'The key "command" appears twice in one object.'],
  ])("that is %s is invalid_json", async (_, body, detail) => {
    const answer = await service.call("POST", "/v1/commands", {
      body,
      headers: { "content-type": "application/json; charset=utf-8" },
    });
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid_json", detail } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  test.each(["text/plain", "application/xml", "application/json-patch+json", "", "json"])(
    "announced as %j is 415",
    async (type) => {
      const answer = await service.call("POST", "/v1/commands", {
        body: new TextEncoder().encode(JSON.stringify(logon)),
        headers: type === "" ? {} : { "content-type": type },
      });
      expect(answer).toMatchObject({ status: 415, body: { code: "unsupported_media_type" } });
    },
  );

  test("over 64 KiB is 413, announced by its length or sent in chunks", async () => {
    const body = JSON.stringify({ ...logon, padding: "x".repeat(64 * 1024) });
    const headers = { "content-type": "application/json" };
    const announced = await service.call("POST", "/v1/commands", { body, headers });
    expect(announced).toMatchObject({ status: 413, body: { code: "body_too_large" } });
    const chunked = await service.call("POST", "/v1/commands", { body: new Blob([body]).stream(), headers });
    expect(chunked).toMatchObject({ status: 413, body: { code: "body_too_large" } });
    expect(service.ran).toEqual([]);
  });

  test("of exactly 64 KiB is read", async () => {
    const empty = JSON.stringify({ ...logon, padding: "" }).length;
    const body = JSON.stringify({ ...logon, padding: "x".repeat(64 * 1024 - empty) });
    const answer = await service.call("POST", "/v1/commands", {
      body,
      headers: { "content-type": "application/json" },
    });
    expect(answer).toMatchObject({ status: 400, body: { code: "unknown_field" } });
  });

  test("with a card number as the name of a field is refused without it", async () => {
    const json = { ...logon, "4111111111111111": "" };
    const { text } = await service.call("POST", "/v1/commands", { json });
    expect(text).toContain("unknown_field");
    expect(text).not.toContain("4111111111111111");
  });
});

describe("every answer", () => {
  test("an unknown path is 404, a known one with another method 405 with Allow", async () => {
    expect(await service.call("GET", "/v2/commands")).toMatchObject({ status: 404, body: { code: "not_found" } });
    const wrong = await service.call("PUT", "/v1/transactions/1");
    expect(wrong).toMatchObject({ status: 405, body: { code: "method_not_allowed" } });
    expect(wrong.headers.get("allow")).toBe("GET, HEAD");
  });

  test.each(["/v1/transactions/%ff", `/v1/transactions/${"x".repeat(500)}`, "/v1//commands", "/%"])(
    "the path %s is a problem",
    async (path) => {
      const answer = await service.call("GET", path);
      expect(answer).toMatchObject({ status: 404, body: { code: "not_found", title: "Not found" } });
    },
  );

  test.each(["/v1/self", "/v2/unknown", "/v1/transactions/%ff", "/docs/", "/healthz", "/operator/v1/partners"])(
    "is of the type that it says, and over TLS is for TLS only: %s",
    async (path) => {
      const proxied = await new HttpTestService({ env: { PAYBELL_TRUSTED_PROXIES: "127.0.0.1/32" } }).listen();
      try {
        for (const [from, proto] of [
          [service, "https"],
          [proxied, "http"],
          [proxied, "https"],
        ] as const) {
          const { headers } = await from.call("GET", path, { headers: { "x-forwarded-proto": proto } });
          const isTls = from === proxied && proto === "https";
          expect(headers.get("x-content-type-options")).toBe("nosniff");
          expect(headers.get("strict-transport-security")).toBe(isTls ? "max-age=63072000" : null);
        }
      } finally {
        await proxied.close();
      }
    },
  );

  test("is not cached, and names its request", async () => {
    const { headers } = await service.call("GET", "/v1/self");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("of a database outage is `unavailable`: a repeat is served", async () => {
    service.fails("run", new Error(databaseAway));
    const { status, body, headers } = await service.call("POST", "/v1/commands", { json: logon });
    expect({ status, code: body["code"] }).toEqual({ status: 503, code: "unavailable" });
    expect(headers.get("retry-after")).toBe("5");
    expect(JSON.stringify(body)).not.toContain(databaseAway);
  });

  test("has the caller's address in the log, behind a trusted proxy, too; so has every answer at debug", async () => {
    const lines = ({ logged }: HttpTestService) =>
      logged.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]));
    await service.call("GET", "/v1/self");
    expect(lines(service).find(({ msg }) => msg === "answered")).toMatchObject({ address: "127.0.0.1", status: 200 });
    const proxied = await new HttpTestService({ env: { PAYBELL_TRUSTED_PROXIES: "127.0.0.1/32" } }).listen();
    proxied.fails("run", new Error("no plan"));
    proxied.callingAddresses = ["198.51.100.7/32"];
    const headers = { "x-forwarded-for": "198.51.100.7" };
    await proxied.call("POST", "/v1/commands", { json: logon, headers });
    await proxied.call("GET", "/v1/%zz", { headers });
    await proxied.close();
    for (const msg of ["request failed", "request refused", "answered"]) {
      expect(
        lines(proxied).find((line) => line["msg"] === msg),
        msg,
      ).toMatchObject({ address: "198.51.100.7" });
    }
  });

  test("of a caller that disconnects amid its body is no failure of ours", async () => {
    const head = "POST /console/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    const socket = connect(service.port, "127.0.0.1");
    socket.write(`${head}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
    // The server awaits the body.
    await once(socket, "data");
    socket.destroy();
    await expect.poll(() => service.logged).toContain("request ");
    expect(service.logged).not.toMatch(/"level":"(?:warn|error)"/);
  });

  test("of a bug is `internal`: the caller sees an id, the log has the rest under it", async () => {
    service.fails("run", new Error("the secret plan failed"));
    const { status, body, text } = await service.call("POST", "/v1/commands", { json: logon });
    expect(status).toBe(500);
    expect(body).toMatchObject({ code: "internal", type: "urn:paybell:error:internal" });
    expect(body["documentation"]).toBe("/docs/reference/errors#internal");
    expect(text).not.toContain("secret plan");
    const id = String(body["instance"]).replace("urn:uuid:", "");
    const line = service.logged.split("\n").find((one) => one.includes(id) && one.includes('"level":"error"'));
    expect(line).toContain("the secret plan failed");
  });

  test.each([undefined, null, "text", { code: "FST_ERR_VALIDATION", statusCode: 400, message: "leak" }])(
    "of a thrown %j is `internal` too",
    async (thrown) => {
      service.fails("run", thrown);
      const { status, text } = await service.call("POST", "/v1/commands", { json: logon });
      expect(status).toBe(500);
      expect(text).not.toContain("leak");
      expect(text).not.toContain("FST_");
    },
  );
});

describe("bytes that are no HTTP", () => {
  test("are answered by a problem", async () => {
    const answer = await raw("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(problemIn(answer)).toMatchObject({ code: "invalid_http", status: 400 });
  });

  test("too many headers are 431", async () => {
    const answer = await raw(`GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${"x".repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 /);
    expect(problemIn(answer)).toMatchObject({ code: "headers_too_large", status: 431 });
  });

  test("a body longer than announced is never run without a key", async () => {
    const body = JSON.stringify(logon);
    const type = "Content-Type: application/json";
    const head = `POST /v1/commands HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n${type}\r\n`;
    const answer = await raw(`${head}Content-Length: ${body.length - 5}\r\nConnection: close\r\n\r\n`, body);
    expect(answer).toContain("401 Unauthorized");
    expect(service.ran).toEqual([]);
  });
});

describe("health", () => {
  test("/healthz needs no key", async () => {
    expect(await service.call("GET", "/healthz", { key: null })).toMatchObject({ status: 200, body: { ok: true } });
  });

  test("/readyz shows each check", async () => {
    expect(await service.call("GET", "/readyz", { key: null })).toMatchObject({ status: 200, body: service.health });
  });

  test("/readyz is 503 when a check fails", async () => {
    service.health = { ready: false, checks: { database: { ok: false, detail: "connection refused" } } };
    expect(await service.call("GET", "/readyz", { key: null })).toMatchObject({ status: 503, body: service.health });
  });

  test("/readyz is asked anew after a check that failed", async () => {
    service.fails("health", new Error("a bug"));
    expect((await service.call("GET", "/readyz", { key: null })).status).toBe(500);
    expect((await service.call("GET", "/readyz", { key: null })).status).toBe(200);
  });

  test("/metrics counts requests by route, not by path", async () => {
    await service.call("GET", "/v1/transactions/0195f000-0000-7000-8000-000000000000");
    const { text, headers } = await service.call("GET", "/metrics", { key: null });
    expect(headers.get("content-type")).toContain("text/plain");
    expect(text).toContain('paybell_http_requests_total{method="GET",route="/v1/transactions/:id",status="404"} 1');
  });
});
