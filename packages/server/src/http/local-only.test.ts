import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpTestService } from "./service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService({ sandbox: true }).listen();
});
afterEach(() => service.close());

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
  const production = await new HttpTestService().listen();
  const answer = await fetch(`http://127.0.0.1:${production.port}/healthz`, {
    headers: { origin: "https://ops.example" },
  });
  expect(answer.status).toBe(200);
  await production.close();
});
