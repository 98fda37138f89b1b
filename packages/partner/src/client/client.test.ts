import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { Misused, PaybellError } from "../errors/misused.ts";
import { ApiError, type ClientOptions, client } from "./client.ts";

const apiKey = "pb_key-of-a-test";
const sale = {
  command: "SALE",
  reqId: "0b9ee1a5-8a3f-4c54-9a2e-0a4f4c4c0a11",
  amount: "150000",
  currency: "VND",
  tid: "T1",
  mid: "M1",
  merchantTransId: "order-1",
  card: { token: "tok_approve", number: "411111******1111", swipeType: "C" },
} as const;

type Answer = (response: ServerResponse, request: IncomingMessage) => void;
interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

let server: Server;
let answers: Answer[];
let seen: Seen[];
beforeEach(async () => {
  [answers, seen] = [[], []];
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method, url, headers } = request;
    seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    (answers.length > 1 ? answers.shift() : answers[0])?.(response, request);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(status, { type: `urn:paybell:error:${code}`, title: "T", status, code, detail: "D", remedy: "R" }, headers);
const vanish: Answer = (response) => response.destroy();
const origin = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const paybell = (options: Partial<ClientOptions> = {}) => client({ baseUrl: origin(), apiKey, ...options });
const failure = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail("it did not fail"),
    (error: unknown) => error as ApiError,
  );

describe("a call", () => {
  it.each([
    ["getSelf", () => paybell().getSelf(), "GET", "/v1/self", ""],
    ["getTransaction", () => paybell().getTransaction("a/../b?"), "GET", "/v1/transactions/a%2F..%2Fb%3F", ""],
    ["findTransaction", () => paybell().findTransaction({ reqId: "r&" }), "GET", "/v1/transactions?reqId=r%26", ""],
    ["pullNotifications", () => paybell().pullNotifications(), "GET", "/v1/notifications", ""],
    ["redeliverNotification", () => paybell().redeliverNotification("n"), "POST", "/v1/notifications/n/redeliver", ""],
    ["revokeOwnApiKey", () => paybell().revokeOwnApiKey("k"), "POST", "/v1/api-keys/k/revoke", ""],
    ["runCommand", () => paybell().runCommand(sale), "POST", "/v1/commands", JSON.stringify(sale)],
  ])("%s goes where its operation is", async (_, call, method, url, body) => {
    answers = [json(200, { there: true })];
    expect(await call()).toEqual({ there: true });
    expect(seen).toMatchObject([{ method, url, body, headers: { authorization: `Bearer ${apiKey}` } }]);
    expect(seen[0]?.headers["content-type"]).toBe(body === "" ? undefined : "application/json");
    expect(seen[0]?.headers["prefer"]).toBeUndefined();
  });

  it("leaves out undefined values, keeps the path of baseUrl, and does not wait unless asked", async () => {
    answers = [json(202, {})];
    const behindProxy = client({ baseUrl: `${origin()}/paybell/`, apiKey });
    await behindProxy.pullNotifications({ after: undefined, limit: 5 });
    await behindProxy.runCommand(sale, { respondAsync: true });
    expect(seen.map(({ url }) => url)).toEqual(["/paybell/v1/notifications?limit=5", "/paybell/v1/commands"]);
    expect(seen[1]?.headers["prefer"]).toBe("respond-async");
  });

  it("fails with the problem that the service answered", async () => {
    const errors = [{ field: "amount", code: "invalid_amount", message: "no" }];
    const type = "urn:paybell:error:invalid_request";
    answers = [json(400, { type, code: "invalid_request", detail: "D", remedy: "R", errors }, {})];
    const error = await failure(paybell().runCommand(sale));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: "invalid_request", status: 400, remedy: "R", problem: { errors } });
    expect(error.message).toBe("invalid_request: D");
    expect(seen).toHaveLength(1);
  });

  it.each<[string, Answer]>([
    ["HTML", (response) => response.writeHead(404, { "content-type": "text/html" }).end("<html>")],
    ["a redirect", (response) => response.writeHead(302, { location: "https://elsewhere.example" }).end()],
    ["JSON of somebody else's", json(404, { message: "no" })],
    ["a problem of somebody else's", json(403, { type: "about:blank", code: "forbidden", detail: "no" })],
    ["200 without JSON", (response) => response.end("ok")],
  ])("fails clearly for %s", async (_, answer) => {
    answers = [answer];
    expect(await failure(paybell().getSelf())).toMatchObject({ code: "not_paybell" });
    expect(seen).toHaveLength(1);
  });

  it.each(["", ".", ".."])("refuses the id %j, which would request another resource", async (id) => {
    answers = [json(200, {})];
    await expect(paybell().getTransaction(id)).rejects.toThrow(Misused);
    await expect(paybell().redeliverNotification(id)).rejects.toThrow(Misused);
    expect(seen).toEqual([]);
  });

  it.each([Number.NaN, 2 ** 31])("refuses the time %s before anything is sent", async (timeoutMs) => {
    answers = [json(200, {})];
    await expect(paybell().getSelf({ timeoutMs })).rejects.toThrow(Misused);
    expect(seen).toEqual([]);
  });

  it("takes an undefined timeoutMs as the one of the client", async () => {
    answers = [() => undefined];
    const error = await failure(paybell({ timeoutMs: 20, retriesMax: 0 }).getSelf({ timeoutMs: undefined as never }));
    expect(error).toMatchObject({ code: "timeout", message: "No answer within 20 ms." });
  });

  it("refuses fields that JSON cannot hold, and names the call", async () => {
    answers = [json(200, {})];
    const circle: Record<string, unknown> = { ...sale };
    circle["card"] = circle;
    for (const fields of [{ ...sale, amount: 150_000n }, circle]) {
      const error = await failure(paybell().runCommand(fields as never));
      expect(error).toBeInstanceOf(Misused);
      expect(error.message).toMatch(/^What was given to runCommand\(\) is not JSON: .+\. Give text/);
    }
    expect(seen).toEqual([]);
  });

  it("belongs to the one family of errors, with its own code", async () => {
    answers = [(response) => response.end("ok")];
    expect(await failure(paybell().getSelf())).toBeInstanceOf(PaybellError);
  });
});

describe("a repetition", () => {
  it.each([429, 503])("follows %i after Retry-After, also of a call that must not run twice", async (status) => {
    answers = [problem(status, "unavailable", { "retry-after": "0" }), json(202, { id: "n" })];
    expect(await paybell().sendTestNotification()).toEqual({ id: "n" });
    expect(seen).toHaveLength(2);
  });

  it("ends after its maximum, with the last answer", async () => {
    answers = [problem(503, "unavailable", { "retry-after": "0" })];
    expect(await failure(paybell({ retriesMax: 2 }).getSelf())).toMatchObject({ code: "unavailable", status: 503 });
    expect(seen).toHaveLength(3);
  });

  it.each([
    ["no answer", vanish, "no_answer"],
    ["a proxy's", json(502, {}, { "retry-after": "0" }), "not_paybell"],
  ])("that is refused after %s ends with that: the card may be charged", async (_, unclear, code) => {
    answers = [unclear, problem(503, "unavailable", { "retry-after": "0" })];
    expect(await failure(paybell({ retriesMax: 2 }).runCommand(sale))).toMatchObject({ code });
    expect(seen).toHaveLength(3);
    answers = [unclear, problem(429, "too_many_requests", { "retry-after": "31" })];
    expect(await failure(paybell().runCommand(sale))).toMatchObject({ code });
    answers = [unclear, problem(401, "unauthorized")];
    expect(await failure(paybell().runCommand(sale)), "its key was replaced").toMatchObject({ code });
    answers = [unclear, problem(408, "request_timeout")];
    expect(await failure(paybell().runCommand(sale)), "it did not arrive whole").toMatchObject({ code });
    answers = [unclear, problem(409, "terminal_taken")];
    expect(await failure(paybell().runCommand(sale)), "it was looked for").toMatchObject({ code: "terminal_taken" });
  });

  it.each(["31", new Date(Date.now() + 60_000).toUTCString()])("does not wait for Retry-After: %s", async (header) => {
    answers = [problem(429, "unavailable", { "retry-after": header })];
    const error = await failure(paybell().getSelf());
    expect(error.retryAfterMs).toBeGreaterThan(30_000);
    expect(seen).toHaveLength(1);
  });

  it("waits by itself however short the Retry-After is that it accepts", async () => {
    answers = [problem(503, "unavailable"), json(200, { there: true })];
    expect(await paybell({ retryAfterMsMax: 0 }).getSelf()).toEqual({ there: true });
    expect(seen).toHaveLength(2);
  });

  it.each([429, 502, 503, 504])(
    "after a proxy's %i is of calls that may run twice, and of no other",
    async (status) => {
      const proxy = json(status, { code: "upstream_failed", message: "no" }, { "retry-after": "0" });
      answers = [proxy];
      expect(await failure(paybell().addOwnApiKey({ name: "n", scopes: ["read"] }))).toMatchObject({
        code: "not_paybell",
        status,
      });
      expect(seen).toHaveLength(1);
      answers = [proxy, json(200, { status: "SUCCESS" })];
      expect(await paybell().runCommand(sale)).toEqual({ status: "SUCCESS" });
      expect(seen).toHaveLength(3);
    },
  );

  it("comes when Retry-After says, otherwise after twice as long each time; by default three times", async () => {
    const waited: number[] = [];
    const wait = (run: () => void, ms: number) => {
      waited.push(ms);
      queueMicrotask(run);
    };
    const spies = [
      vi.spyOn(globalThis, "setTimeout").mockImplementation(wait as never),
      vi.spyOn(Math, "random").mockReturnValue(0.5),
    ];
    const limit = vi.spyOn(AbortSignal, "timeout");
    onTestFinished(() => [...spies, limit].forEach((spy) => void spy.mockRestore()));
    for (const [headers, expected] of [
      [{ "retry-after": "30" }, [30_000, 30_000, 30_000]],
      [{}, [200, 400, 800]],
    ] as const) {
      waited.length = 0;
      const busy = async () => Response.json({ code: "unavailable", detail: "D" }, { status: 503, headers });
      await failure(paybell({ fetch: busy }).getSelf());
      expect(waited).toEqual(expected);
    }
    expect(limit).toHaveBeenLastCalledWith(45_000);
  });

  it("of a command that had no answer has the same reqId", async () => {
    answers = [vanish, json(200, { status: "SUCCESS" })];
    expect(await paybell().runCommand(sale)).toEqual({ status: "SUCCESS" });
    expect(seen.map(({ body }) => body)).toEqual([JSON.stringify(sale), JSON.stringify(sale)]);
  });

  it("does not happen when the call may have run and must not run twice", async () => {
    answers = [vanish];
    expect(await failure(paybell().redeliverNotification("n"))).toMatchObject({ code: "no_answer", status: 0 });
    expect(seen).toHaveLength(1);
  });

  it("does not happen for a refusal by the state", async () => {
    answers = [problem(409, "settlement_in_progress", { "retry-after": "0" })];
    expect(await failure(paybell().runCommand(sale))).toMatchObject({ code: "settlement_in_progress" });
    expect(seen).toHaveLength(1);
  });
});

describe("invalid arguments of a call", () => {
  const later = <T>(value: T) => Promise.resolve(value) as never;
  it.each<[string, () => Promise<unknown>, string, RegExp]>([
    [
      "a command that is still a Promise",
      () => paybell().runCommand(later(sale)),
      "missing_await",
      /runCommand\(\) is a/,
    ],
    ["an id that is", () => paybell().getTransaction(later("t")), "missing_await", /getTransaction\(\) is a/],
    ["options that are", () => paybell().getSelf(later({})), "missing_await", /getSelf\(\) is a/],
    [
      "no command",
      () => paybell().runCommand(undefined as never),
      "wrong_option",
      /runCommand\(\) cannot be undefined/,
    ],
    ["a word for a command", () => paybell().runCommand("SALE" as never), "wrong_option", /"SALE"\. Give an object/],
    ["a list of commands", () => paybell().runCommand([sale] as never), "wrong_option", /cannot be a list/],
    [
      "an option that is none",
      () => paybell().getSelf({ timeout: 5 } as never),
      "unknown_option",
      /^getSelf\(\)'s option timeout is no.*timeoutMs/,
    ],
    ["a word for a query", () => paybell().findTransaction("r" as never), "wrong_option", /findTransaction\(\) cannot/],
  ])("is reported, and not sent: %s", async (_what, call, reason, says) => {
    answers = [json(200, {})];
    const error = await failure(call());
    expect(error).toBeInstanceOf(Misused);
    expect(error).toMatchObject({ reason, message: expect.stringMatching(says) });
    expect(seen).toEqual([]);
  });
});

describe("the end of a call", () => {
  it("comes after timeoutMs for each try", async () => {
    answers = [() => undefined];
    let tries = 0;
    const counted: typeof fetch = (input, init) => {
      tries += 1;
      return fetch(input, init);
    };
    const error = await failure(paybell({ retriesMax: 1, fetch: counted }).getSelf({ timeoutMs: 20 }));
    expect(error).toMatchObject({ code: "timeout", message: "No answer within 20 ms." });
    // A slow machine may give a try up before it has arrived.
    expect(tries).toBe(2);
  });

  it("comes with the caller's signal and its reason, before, during and between tries", async () => {
    const reason = new Error("shop closed");
    const during = new AbortController();
    answers = [() => during.abort(reason)];
    await expect(paybell().getSelf({ signal: during.signal })).rejects.toBe(reason);
    await expect(paybell().getSelf({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const between = new AbortController();
    answers = [problem(503, "unavailable", { "retry-after": "20" })];
    const waiting = paybell({
      fetch: async (input, init) => {
        const answer = await fetch(input, init);
        setImmediate(() => setImmediate(() => between.abort(reason)));
        return answer;
      },
    }).getSelf({ signal: between.signal });
    await expect(waiting).rejects.toBe(reason);
    expect(seen).toHaveLength(2);
  });
});

describe("the options", () => {
  it.each<[Partial<ClientOptions>, string]>([
    [{ baseUrl: "http://pay.example" }, "https://"],
    [{ baseUrl: "http://localhost.pay.example" }, "https://"],
    [{ baseUrl: "http://notlocalhost" }, "https://"],
    [{ baseUrl: "pay.example" }, "no URL"],
    [{ apiKey: "" }, "pb_"],
    [{ apiKey: "whsec_AQEBAQ==" }, "pb_"],
    [{ apiKey: "pb_a\n" }, "pb_"],
    [{ apiKey: Promise.resolve(apiKey) as never }, "apiKey is a Promise. await it first."],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ timeoutMs: Number.NaN }, "timeoutMs"],
    [{ timeoutMs: 2 ** 31 }, "timeoutMs"],
    [{ retriesMax: -1 }, "retriesMax"],
    [{ retryAfterMsMax: 2 ** 31 }, "retryAfterMsMax"],
    [{ retryAfterMsMax: 0.5 }, "retryAfterMsMax"],
    [{ timeout: 5 } as never, "timeout is not an option. There are baseUrl, apiKey, timeoutMs"],
  ])("%j are refused, without naming the key", (wrong, words) => {
    expect(() => paybell(wrong)).toThrow(Misused);
    expect(() => paybell(wrong)).toThrow(words);
    if (typeof wrong.apiKey === "string" && wrong.apiKey !== "")
      expect(() => paybell(wrong)).not.toThrow(wrong.apiKey.trim());
  });

  it("are required", () => {
    expect(() => client(undefined as never)).toThrow("client() has no options.");
    expect(() => client(Promise.resolve({}) as never)).toThrow("What was given to client() is a Promise.");
  });

  it.each(["https://pay.example", "http://localhost:7420", "http://127.0.0.1:7420", "http://[::1]:7420"])(
    "%s is taken",
    (baseUrl) => {
      expect(client({ baseUrl, apiKey })).toHaveProperty("runCommand");
    },
  );
});
