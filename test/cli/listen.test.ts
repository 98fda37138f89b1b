import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { receiver } from "@paybell/partner";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { freePort } from "../support/ports.ts";
import { callHttp, eventually, startTestService, type TestPartner } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

interface Post {
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

/** The partner's server under development, on localhost. */
async function startLocalServer() {
  const posts: Post[] = [];
  const waiting = new Set<() => void>();
  let statuses: number[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    posts.push({ body, headers: request.headers });
    response.writeHead(statuses.shift() ?? 204, { location: "/elsewhere" }).end();
    for (const look of waiting) look();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    posts,
    place: `127.0.0.1:${(server.address() as AddressInfo).port}/ipn`,
    answers: (...next: number[]) => {
      statuses = next;
    },
    received: (count: number) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (posts.length >= count) resolve();
        };
        waiting.add(look);
        look();
      }),
    async close() {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A network that also breaks requests in flight. */
function unreliable(baseUrl: string) {
  let away = new AbortController();
  const refused = () => new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
  const network: typeof fetch = async (input, init) => {
    if (!String(input).startsWith(baseUrl)) return fetch(input, init);
    const { signal } = away;
    if (signal.aborted) throw refused();
    const signals = [signal, ...(init?.signal ? [init.signal] : [])];
    return fetch(input, { ...init, signal: AbortSignal.any(signals) });
  };
  return {
    network,
    goes: () => away.abort(refused()),
    comes: () => {
      away = new AbortController();
    },
  };
}

/** Headers that are the same each time, with their values; the names of the others. */
function named(headers: IncomingHttpHeaders): object {
  const changing = ["host", "connection", "paybell-attempt", "webhook-timestamp", "webhook-signature"];
  return Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, changing.includes(name) ? "" : text]));
}

let partner: TestPartner;
let local: Awaited<ReturnType<typeof startLocalServer>>;
let line: CommandLine;

const service = await startTestService();
afterAll(async () => {
  await service.stop();
});
beforeEach(async () => {
  partner = await service.register({ cipher: "aes-256-cbc", encoding: "hex", signing: { mode: "whole" } });
  local = await startLocalServer();
  line = new CommandLine();
  line.write("partner.json", { baseUrl: service.baseUrl, ...partner.secrets });
});
afterEach(async () => {
  line.remove();
  await local.close();
});

function listen(...args: string[]) {
  return line.start(["listen", "--credentials", "partner.json", "--forward", local.place, ...args]);
}

/** A notification from before the command starts. */
async function notifyBefore() {
  const { body } = await partner.run(sale({ merchantTransId: "before" }));
  await partner.listed((body["notification"] as { id: string }).id);
}

describe("listen", () => {
  test("forwards new notifications encrypted, and shows them decrypted and verified, with the answer", async () => {
    await notifyBefore();
    const listening = listen();
    await listening.said("Forwarding to");
    const { body: transaction } = await partner.run(sale({ merchantTransId: "after" }));
    await listening.said("→ 204");

    const [post] = local.posts;
    expect(local.posts).toHaveLength(1);
    const { ipn } = receiver(partner.keys).open(post?.body ?? "", post?.headers ?? {});
    expect(ipn).toMatchObject({ id: transaction["id"], merchantTransId: "after" });
    expect(listening.stdout()).toMatch(
      /SALE {2}150000 VND {2}SUCCESS 00 {2}refId \d{12} {2}verified {2}→ 204 {2}\d+ ms/,
    );

    listening.interrupt();
    const { code, stderr } = await listening.ended;
    expect(code).toBe(0);
    expect(stderr).toMatch(/paybell listen --after \S+\n$/);
  });

  test("POSTs with the headers of a callback, and no others", async () => {
    const listening = listen();
    await listening.said("Forwarding to");
    const { body: original } = await partner.run(sale());
    await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: original["id"] });
    await listening.said("→ 204", 2);
    listening.interrupt();
    await listening.ended;
    const callbacks = await partner.server.next(2);
    expect(local.posts.map(({ headers }) => named(headers))).toEqual(callbacks.map(({ headers }) => named(headers)));
    expect(local.posts[1]?.headers).toMatchObject({
      "paybell-command": "VOID",
      "paybell-original-transaction": original["id"],
    });
  });

  test("continues from the cursor that the last run printed, or from the beginning on request", async () => {
    await partner.run(sale({ merchantTransId: "first" }));
    const first = listen("--since-start", "--count", "1");
    expect((await first.ended).code).toBe(0);
    const second = listen("--since-start");
    await second.said("→ 204");
    second.interrupt();
    const after = /--after (\S+)/.exec((await second.ended).stderr)?.[1] ?? "";

    await partner.run(sale({ merchantTransId: "second" }));
    await partner.run(sale({ merchantTransId: "third" }));
    const silent = createServer();
    await once(silent.listen(0, "127.0.0.1"), "listening");
    const place = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const third = line.start(["listen", "--credentials", "partner.json", "--forward", place, "--after", after]);
    await once(silent, "request");
    third.interrupt();
    const { stderr } = await third.ended;
    silent.closeAllConnections();
    silent.close();
    expect(stderr).toContain(`--after ${after}\n`);
    const { code, stdout } = await listen("--after", after, "--count", "1", "--print-ipn").ended;
    expect(code).toBe(0);
    expect(stdout).toContain('"merchantTransId": "second"');
    expect(local.posts).toHaveLength(3);
  });

  test("--json prints one line of JSON for each, and the cursor", async () => {
    await partner.run(sale());
    const { stdout } = await listen("--since-start", "--count", "1", "--json", "--print-ipn").ended;
    const [event = "", end = "", ...more] = stdout.trimEnd().split("\n");
    expect(more).toEqual([]);
    expect(JSON.parse(end)).toEqual({ after: expect.any(String) });
    expect(JSON.parse(event)).toMatchObject({
      kind: "card",
      command: "SALE",
      verified: true,
      amount: "150000",
      forwarded: { status: 204, accepted: true },
      ipn: { transaction_type: "SALE" },
    });
  });

  test("a server that fails, redirects or is missing is reported, and with --count the exit code is 1", async () => {
    local.answers(500, 302);
    await partner.run(sale());
    await partner.run(sale());
    const { code, stdout } = await listen("--since-start", "--count", "2").ended;
    expect(code).toBe(1);
    expect(stdout).toContain("→ 500");
    expect(stdout).toContain("redirects to /elsewhere: redirects are not followed");
    expect(local.posts).toHaveLength(2);

    // The system could give a port that was just closed to another server.
    const place = `127.0.0.1:${await freePort()}/ipn`;
    const nobody = ["listen", "--credentials", "partner.json", "--since-start", "--count", "1", "--forward", place];
    expect((await line.run(nobody)).stdout).toContain("connection refused: is your server running");
  });

  test("r and Enter forwards failed ones again, and nothing else, without waiting for new ones", async () => {
    local.answers(204, 500);
    const quiet: typeof fetch = async (input, init) => {
      if (local.posts.length !== 2 || !String(input).includes("wait=")) return fetch(input, init);
      init?.signal?.throwIfAborted();
      return new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("given up"))));
    };
    const args = ["listen", "--credentials", "partner.json", "--forward", local.place];
    const listening = line.start(args, { fetch: quiet });
    await listening.said("Forwarding to");
    await partner.run(sale({ merchantTransId: "good" }));
    await partner.run(sale({ merchantTransId: "bad" }));
    await listening.said("→ 500");
    listening.type("r");
    await listening.said("→ 204", 2);
    expect(local.posts).toHaveLength(3);
    const [, failed, again] = local.posts;
    expect(again?.headers["webhook-id"]).toBe(failed?.headers["webhook-id"]);
    // It was accepted: another r forwards nothing, and the next one follows.
    listening.type("r");
    await partner.run(sale({ merchantTransId: "next" }));
    await listening.said("→ 204", 3);
    expect(new Set(local.posts.map((post) => post.headers["webhook-id"])).size).toBe(3);
    listening.interrupt();
    expect((await listening.ended).code).toBe(0);
  });

  test("has one sealed again that would be stale after those before it: a debugger may have stopped them", async () => {
    await notifyBefore();
    await notifyBefore();
    const sealed: string[] = [];
    const seen: typeof fetch = (input, init) => {
      if (String(input).endsWith("/sealed")) sealed.push(String(input));
      return fetch(input, init);
    };
    // Each POST takes four minutes.
    const nowMs = () => Date.now() + local.posts.length * 240_000;
    const args = ["listen", "--credentials", "partner.json", "--since-start", "--count", "2", "--forward", local.place];
    expect(await line.run(args, { fetch: seen, nowMs })).toMatchObject({ code: 0 });
    const [first, second] = local.posts.map(({ headers }) => headers["webhook-id"]);
    expect([sealed, second === first]).toEqual([[expect.stringContaining(`/${second}/`)], false]);
  });

  test("forwards unopened without keys, and names a wrong key", async () => {
    await partner.run(sale());
    line.write("partner.json", { baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
    const { code, stdout, stderr } = await listen("--since-start", "--count", "1").ended;
    expect([code, local.posts.length]).toEqual([0, 1]);
    expect(stderr).toContain("There are no keys here");
    expect(stdout).toContain("not opened");

    line.write("partner.json", { baseUrl: service.baseUrl, ...partner.secrets, signingKey: "abc" });
    const wrong = await listen("--since-start", "--count", "1").ended;
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("signingKey");
    expect(wrong.stderr).not.toContain("    at ");
  });

  test("uses a key that was rotated while it listened", async () => {
    const listening = listen();
    await listening.said("Forwarding to");
    const path = `/operator/v1/partners/${partner.id}/keys/rotate`;
    const { body } = await service.operator("POST", path, { key: "signingKey", overlapHours: 0 });
    line.write("partner.json", { baseUrl: service.baseUrl, ...partner.secrets, signingKey: body["secret"] });
    await partner.run(sale());
    await listening.said("verified");
    listening.interrupt();
    expect((await listening.ended).stdout).not.toContain("NOT AUTHENTIC");
  });

  test("skips existing notifications, and sends no requests while nothing happens", async () => {
    await notifyBefore();
    const asked: string[] = [];
    const watched: typeof fetch = async (input, init) => {
      asked.push(
        String(input)
          .replace(/^.*\/v1\//, "")
          .replace(/after=[\w-]{64}/, "after=cursor"),
      );
      const answer = await fetch(input, init);
      const { items = [] } = (await answer.clone().json()) as { items?: unknown[] };
      // An open transaction of another test may hold a notification back for longer than a wait.
      if (asked.at(-1)?.includes("wait=") && items.length === 0) asked.pop();
      return answer;
    };
    const args = ["listen", "--credentials", "partner.json"];
    const listening = line.start(args, { fetch: watched });
    await listening.said("Listening to");
    await partner.run(sale());
    await listening.said("verified");
    await partner.run(sale());
    await listening.said("verified", 2);
    await eventually("it to wait for the next", async () => asked.length >= 5 || undefined);
    listening.interrupt();
    const { code, stderr } = await listening.ended;
    expect([code, stderr.includes("cannot be reached")]).toEqual([0, false]);
    const pull = "notifications?after=cursor&limit=100&wait=20";
    expect(asked).toEqual(["self", "notifications?after=now", pull, pull, pull]);
  });

  test("waits for an unavailable service, and misses nothing", async () => {
    const { network, goes, comes } = unreliable(service.baseUrl);
    const args = ["listen", "--credentials", "partner.json", "--forward", local.place];
    const listening = line.start(args, { fetch: network });
    await listening.said("Forwarding to");
    goes();
    await listening.said("Trying again");
    await partner.run(sale());
    comes();
    await listening.said("Connected again");
    await listening.said("→ 204");
    listening.interrupt();
    expect(local.posts).toHaveLength(1);
    expect((await listening.ended).code).toBe(0);
  });

  const forgotten = { code: "cursor_from_another_history", detail: "Another history.", remedy: "Begin again." };

  test("continues where it was when the service has forgotten its cursor", async () => {
    let forgets = false;
    const restored: typeof fetch = (input, init) => {
      if (!forgets || !String(input).includes("after=")) return fetch(input, init);
      forgets = false;
      return Promise.resolve(Response.json(forgotten, { status: 409 }));
    };
    const args = ["listen", "--credentials", "partner.json", "--forward", local.place];
    await notifyBefore();
    const listening = line.start(args, { fetch: restored });
    await listening.said("Forwarding to");
    // It already waits for this one: its later requests are refused.
    forgets = true;
    await partner.run(sale({ merchantTransId: "first" }));
    await listening.said("→ 204");
    await listening.said("Continuing with what came since");
    await partner.run(sale({ merchantTransId: "second" }));
    await listening.said("→ 204", 2);
    listening.interrupt();
    expect((await listening.ended).code).toBe(0);
    const ids = local.posts.map(({ body, headers }) => receiver(partner.keys).open(body, headers).ipn.merchantTransId);
    expect(ids).toEqual(["first", "second"]);
  });

  test("a cursor that never existed is reported, and nothing is forwarded", async () => {
    await partner.run(sale());
    const stranger: typeof fetch = (input, init) =>
      String(input).includes("after=")
        ? Promise.resolve(Response.json(forgotten, { status: 409 }))
        : fetch(input, init);
    const args = ["listen", "--credentials", "partner.json", "--forward", local.place, "--after", "abc", "--json"];
    const { code, stderr } = await line.run(args, { fetch: stranger });
    expect([code, local.posts]).toEqual([3, []]);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "cursor_from_another_history" } });
  });

  test("uses a new API key from the file, and ends if there is none", async () => {
    const listening = listen();
    await listening.said("Forwarding to");
    const path = `/operator/v1/partners/${partner.id}/keys/rotate`;
    const rotate = async () =>
      (await service.operator("POST", path, { key: "apiKey", overlapHours: 0 })).body["secret"];
    const apiKey = String(await rotate());
    line.write("partner.json", { baseUrl: service.baseUrl, ...partner.secrets, apiKey });
    const { secrets, call } = partner;
    await callHttp(service.baseUrl, "POST", "/v1/commands", { key: apiKey, json: sale() });
    await listening.said("→ 204");
    expect([secrets.apiKey === apiKey, (await call("GET", "/v1/self")).status]).toEqual([false, 401]);
    // A revoked key receives no notification.
    await callHttp(service.baseUrl, "POST", "/v1/commands", { key: String(await rotate()), json: sale() });
    const { code, stderr } = await listening.ended;
    expect(local.posts).toHaveLength(1);
    expect([code, stderr]).toEqual([3, expect.stringContaining("does not know the API key in partner.json")]);
    // It came while the key was wrong, and is not lost.
    const [, after = ""] = /To go on from here: paybell listen --after (\S+)/.exec(stderr) ?? [];
    const right = String(await rotate());
    line.write("partner.json", { baseUrl: service.baseUrl, ...partner.secrets, apiKey: right });
    await line.ok("listen", "--credentials", "partner.json", "--after", after, "--count", "1");
  });
});
