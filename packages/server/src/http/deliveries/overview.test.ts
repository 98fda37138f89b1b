import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../../test/support/service.ts";
import { HttpTestService } from "../service.fixture.ts";

const path = "/operator/v1/overview/live";
let service: HttpTestService;
const streams: AbortController[] = [];
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(async () => {
  for (const stream of streams.splice(0)) stream.abort();
  await service.close();
});

async function added(role: string, name: string): Promise<{ readonly id: string; readonly token: string }> {
  const { body } = await service.call("POST", "/operator/v1/operators", { json: { name, role } });
  return body as { id: string; token: string };
}

async function watch(headers: Record<string, string>) {
  const stream = new AbortController();
  streams.push(stream);
  const url = `http://127.0.0.1:${service.port}${path}`;
  const answer = await fetch(url, { headers, signal: stream.signal });
  return { answer, end: () => stream.abort() };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Reads to the stream's own end. @returns everything after its first event */
async function restOf({ body }: Response, then: () => Promise<unknown>): Promise<string> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("data: ")) text += (await reader?.read())?.value ?? "";
  await then();
  let rest = "";
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) rest += part.value;
  return rest;
}

describe("the live overview", () => {
  test("ends once its caller's token is revoked", async () => {
    const { id, token } = await added("viewer", "Ada");
    const { answer } = await watch(bearer(token));
    expect(answer.status).toBe(200);
    const revoke = () => service.call("POST", `/operator/v1/operators/${id}/revoke`);
    expect(await restOf(answer, revoke)).not.toContain("data: ");
  });

  test("takes no place of its caller once it has ended, though the connection is kept", async () => {
    const { token: key } = await added("viewer", "Ada");
    // The head of a stream ends at once, and fetch would not keep its connection.
    const connection = connect(service.port, "127.0.0.1");
    onTestFinished(() => void connection.destroy());
    for (let ended = 0; ended < 9; ended += 1) {
      connection.write(`HEAD ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n\r\n`);
      expect(String(await once(connection, "data"))).toMatch(/^HTTP\/1.1 200 /);
    }
  });

  test("is refused to a caller who watches eight already, until one of them ends", async () => {
    const [ada, eve] = [await added("viewer", "Ada"), await added("viewer", "Eve")];
    const eight = await Promise.all(Array.from({ length: 8 }, () => watch(bearer(eve.token))));
    expect(eight.map(({ answer }) => answer.status)).toEqual(Array.from({ length: 8 }, () => 200));
    const refused = await service.call("GET", path, { key: eve.token });
    expect(refused).toMatchObject({ status: 429, body: { code: "too_many_requests" } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await watch(bearer(ada.token))).answer.status).toBe(200);
    eight[0]?.end();
    await eventually("there is room", async () => (await watch(bearer(eve.token))).answer.status === 200 || undefined);
    expect((await watch(bearer(eve.token))).answer.status).toBe(429);
  });
});
