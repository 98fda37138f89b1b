import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { fetchHandler } from "./fetch.ts";
import { closeServers, type OnIpn, starts } from "./frameworks.fixture.ts";
import { bodyBytesMax, IpnRefused, Misused, type ReceivedIpn, type ReceiverOptions, receiver } from "./index.ts";
import { type TestDelivery, testDelivery, testEnvelope } from "./testing.ts";

const key = () => randomBytes(32).toString("base64");
const keys = (): ReceiverOptions => ({ encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` });

afterEach(closeServers);

function post(url: string, { body, headers }: TestDelivery): Promise<Response> {
  return fetch(url, { method: "POST", body, headers });
}

const problem = async (response: Response) => [response.status, await response.text()];
const notAuthentic = [400, '{"error":"not_authentic"}'];

for (const [name, start] of Object.entries(starts)) {
  describe(name, () => {
    const options = keys();
    const good = () => testDelivery(options, { kind: "card" });

    async function running(onIpn: OnIpn = () => undefined) {
      const received: ReceivedIpn[] = [];
      const told: { message: string; error: unknown }[] = [];
      const keep = (ipn: ReceivedIpn) => {
        received.push(ipn);
        return onIpn(ipn);
      };
      const partner = await start(options, keep, (message, error) => told.push({ message, error }));
      return { ...partner, received, told };
    }

    it("passes on a card IPN and a settlement IPN, under both sets of names, and answers 204", async () => {
      const { url, received, told } = await running();
      for (const wireNames of ["table", "sample"] as const) {
        const card = testDelivery(options, { kind: "card", ipn: { deviceId: "D1" } }, { wireNames });
        const settlement = testDelivery(options, { kind: "settlement" }, { wireNames });
        expect(await problem(await post(url, card))).toEqual([204, ""]);
        expect(await problem(await post(url, settlement))).toEqual([204, ""]);
      }
      expect(received.map(({ kind }) => kind)).toEqual(["card", "settlement", "card", "settlement"]);
      expect(received.map(({ ipn }) => ipn.deviceId)).toEqual(["D1", "", "D1", ""]);
      expect(told).toEqual([]);
    });

    it("answers only after your function has finished", async () => {
      const started = Promise.withResolvers<void>();
      const finish = Promise.withResolvers<void>();
      const { url } = await running(() => {
        started.resolve();
        return finish.promise;
      });
      let isAnswered = false;
      const answered = post(url, good()).then(({ status }) => {
        isAnswered = true;
        return status;
      });
      await started.promise;
      // A second request completes in the meantime, so the first one had every chance to be answered early.
      expect((await fetch(url)).status).toBe(405);
      expect(isAnswered).toBe(false);
      finish.resolve();
      expect(await answered).toBe(204);
    });

    it("answers 500 if your function throws or rejects, and logs the error", async () => {
      const { url, told } = await running((ipn) => {
        if (ipn.attempt === 1) throw new Error("the ledger is closed");
        return Promise.reject(new Error("the ledger is closed"));
      });
      for (const attempt of [1, 2]) {
        const delivery = testDelivery(options, { kind: "card" }, { attempt });
        expect(await problem(await post(url, delivery))).toEqual([500, '{"error":"not_processed"}']);
      }
      expect(told).toHaveLength(2);
      for (const { message, error } of told) {
        expect(message).toContain("delivered again");
        expect(error).toEqual(new Error("the ledger is closed"));
      }
    });

    it("answers 500 if your function returns a function: nothing was processed", async () => {
      const { url, told } = await running(() => () => undefined);
      expect(await problem(await post(url, good()))).toEqual([500, '{"error":"not_processed"}']);
      expect(told).toEqual([{ message: expect.stringContaining("threw"), error: expect.any(Misused) }]);
    });

    it("answers the same 400 to everything that is not authentic, and logs the reason", async () => {
      const other = keys();
      const old = { ...options, clock: { nowMs: () => Date.now() - 3_600_000 } };
      const { body, headers } = good();
      const twice = JSON.stringify({ deviceId: "1", device_id: "1", transaction_type: "SALE" });
      const cases: [reason: string, delivery: TestDelivery][] = [
        ["webhook_signature", { headers, body: body.replace(/.(?=.{9}$)/, (byte) => (byte === "A" ? "B" : "A")) }],
        ["webhook_signature", testDelivery(other, { kind: "card" })],
        ["decryption", testDelivery({ ...options, encryptionKey: other.encryptionKey }, { kind: "card" })],
        ["signature", testDelivery({ ...options, signingKey: other.signingKey }, { kind: "card" })],
        ["not_fresh", testDelivery(old, { kind: "card" })],
        ["missing_headers", { body, headers: { "content-type": "application/json" } }],
        ["missing_headers", { body: "", headers: {} }],
        ["two_names", testEnvelope(options, twice)],
        ["webhook_signature", { headers, body: "not even JSON" }],
      ];
      const { url, received, told } = await running();
      for (const [, delivery] of cases) expect(await problem(await post(url, delivery))).toEqual(notAuthentic);
      expect(told.map(({ error }) => (error as IpnRefused).reason)).toEqual(cases.map(([reason]) => reason));
      for (const { message, error } of told) expect(message).toContain((error as IpnRefused).hint);
      expect(received).toEqual([]);
    });

    it("reads a settlement of 5 MB", async () => {
      const settlementList = Array.from({ length: 55_000 }, (_, at) => ({
        reqId: "0f3d1a52-6a52-4d36-9d26-6d2e1c8b7a90",
        refNo: String(at).padStart(12, "0"),
      }));
      const huge = testDelivery(options, { kind: "settlement", ipn: { settlementList } });
      expect(huge.body.length).toBeGreaterThan(5_000_000);
      const { url, received } = await running();
      expect((await post(url, huge)).status).toBe(204);
      expect(received.map((ipn) => ipn.kind === "settlement" && ipn.ipn.settlementList.length)).toEqual([55_000]);
    });

    it("answers 413 over the limit, announced or not, and continues to serve", async () => {
      const { url, received, told } = await running();
      const body = "x".repeat(bodyBytesMax + 1);
      expect(await problem(await post(url, { body, headers: good().headers }))).toEqual([413, '{"error":"too_large"}']);
      expect(await chunked(url, body)).toBe(413);
      expect((await post(url, good())).status).toBe(204);
      expect(received).toHaveLength(1);
      expect(told.map(({ error }) => error instanceof IpnRefused && error.reason)).toEqual(["too_large", "too_large"]);
    });

    it("answers 405 to other methods, with the allowed one", async () => {
      const { url } = await running();
      for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
        const response = await fetch(url, { method });
        expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
        await response.text();
      }
      expect((await fetch(url, { method: "HEAD" })).status).toBe(405);
    });

    it("answers 500 if something has read the body first, with the remedy in the log", async () => {
      const { eatenUrl, received, told } = await running();
      expect(await problem(await post(eatenUrl, good()))).toEqual([500, '{"error":"body_already_read"}']);
      expect(told.map(({ message }) => message)).toEqual([expect.stringMatching(/before the handler did\. .{20}/)]);
      expect(received).toEqual([]);
    });

    it.each([
      [
        "throws",
        () => {
          throw new Error("disk full");
        },
      ],
      ["returns a promise that is rejected", () => Promise.reject(new Error("disk full"))],
    ])("answers, and goes on, although the log %s", async (_, log) => {
      const { url } = await start(options, () => undefined, log);
      expect(await problem(await post(url, { body: "{}", headers: {} }))).toEqual(notAuthentic);
    });
  });
}

/** A body sent in chunks, without Content-Length. */
async function chunked(url: string, body: string): Promise<number | undefined> {
  const request = httpRequest(url, { method: "POST", agent: false });
  request.on("error", () => undefined);
  for (let at = 0; at < body.length; at += 1 << 20) request.write(body.slice(at, at + (1 << 20)));
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode;
}

describe("without a log", () => {
  it("warns of your function's error, with its stack", async () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    const handle = fetchHandler(receiver(options), () => {
      throw new Error("no stock");
    });
    const warned = once(process, "warning");
    const { status } = await handle(new Request("http://localhost/ipn", { method: "POST", body, headers }));
    expect(status).toBe(500);
    expect(await warned).toMatchObject([
      {
        name: "PaybellWarning",
        message: expect.stringContaining("your function threw"),
        detail: expect.stringMatching(/^Error: no stock\n\s+at /),
      },
    ]);
  });
});
