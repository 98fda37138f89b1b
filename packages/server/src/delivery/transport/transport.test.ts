import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner } from "../../partners/partner.ts";
import { answer, httpsPeer, makeAuthority, tcpPeer, tlsPeer, transportTo, weakPeer } from "./transport.fixture.ts";
import type { PostAnswered, PostResult, PostUnanswered, Transport, TransportOptions } from "./transport.ts";

const authority = await makeAuthority("Paybell test authority");
const certificate = await authority.issue("callback.test");

const makeTransport = (options?: Partial<TransportOptions>) => transportTo(authority, options);

/** Timeouts end only when the test advances the time. */
function stopTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** The bytes that the peer, in this process, has written by now are read. */
async function written(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await turn();
}

interface Sent {
  readonly transport?: Transport;
  readonly partner?: Partner;
  readonly deadlineMs?: number;
  readonly path?: string;
  readonly mayWrite?: () => boolean;
}

const somebody = partnerSnapshot();

function post(port: number, sent: Sent = {}): Promise<PostResult> {
  return (sent.transport ?? makeTransport()).post({
    partner: sent.partner ?? somebody,
    url: `https://callback.test:${port}${sent.path ?? "/ipn"}`,
    headers: { "content-type": "application/json" },
    body: '{"data":"sealed"}',
    deadlineMs: sent.deadlineMs ?? 600_000,
    ...(sent.mayWrite && { mayWrite: sent.mayWrite }),
  });
}

async function postUnanswered(port: number, sent: Sent = {}): Promise<PostUnanswered> {
  const result = await post(port, sent);
  if (!("reason" in result)) throw new Error(`unexpectedly ${JSON.stringify(result)}`);
  return result;
}

async function postAnswered(port: number, sent: Sent = {}): Promise<PostAnswered> {
  const result = await post(port, sent);
  if (!("httpStatus" in result)) throw new Error(`unexpectedly ${JSON.stringify(result)}`);
  return result;
}

describe("a response", () => {
  test("is accepted by its status line, with the address it came from", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => response.writeHead(202).end("welcome"));
    expect(await post(peer.port)).toEqual({ httpStatus: 202, address: "127.0.0.1", answer: null });
  });

  test("gets the body and headers as sent", async () => {
    const received = Promise.withResolvers<{ text: string; header: string | undefined; url: string | undefined }>();
    const peer = await tlsPeer(certificate, (socket) => {
      socket.once("data", () => undefined);
      socket.write(answer("200 OK"));
    });
    peer.server.once("secureConnection", (socket) => {
      socket.once("data", (chunk: Buffer) => {
        const text = chunk.toString();
        received.resolve({ text, header: /content-type: (.*)\r\n/.exec(text)?.[1], url: text.split(" ")[1] });
      });
    });
    await postAnswered(peer.port, { path: "/a/b?c=d" });
    const { text, header, url } = await received.promise;
    expect(text.startsWith("POST ")).toBe(true);
    expect(header).toBe("application/json");
    expect(url).toBe("/a/b?c=d");
    expect(text).toContain(`host: callback.test:${peer.port}\r\n`);
  });

  test("that is not 2xx is recorded with its first 4 KiB, as bytes", async () => {
    const body = Buffer.alloc(10_000, 0xc3);
    const peer = await httpsPeer(certificate, (_request, response) => response.writeHead(500).end(body));
    const result = await postAnswered(peer.port);
    expect(result.httpStatus).toBe(500);
    expect(result.answer).toEqual(body.subarray(0, 4_096));
  });

  test("that contains a full card number is recorded without it", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.writeHead(400).end('{"error":"no card 4111111111111111"}');
    });
    expect((await postAnswered(peer.port)).answer?.toString()).toBe('{"error":"no card 411111******1111"}');
  });

  test("of 100 MB is cut off: 2xx is accepted, anything else keeps its 4 KiB", async () => {
    const size = 100 * 1_024 * 1_024;
    let status = 200;
    const closed = Promise.withResolvers<number>();
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.writeHead(status, { "content-length": size });
      const chunk = Buffer.alloc(64 * 1_024, "x");
      let written = 0;
      const more = () => {
        while (written < size && response.write(chunk)) written += chunk.length;
      };
      response.on("drain", more).on("close", () => closed.resolve(written));
      more();
    });
    expect((await postAnswered(peer.port)).httpStatus).toBe(200);
    expect(await closed.promise).toBeLessThan(size / 2);
    status = 503;
    expect((await postAnswered(peer.port)).answer).toHaveLength(4_096);
  });

  test.each([
    ["status line", "HTTP/1.1 200 "],
    ["header's name", "HTTP/1.1 200 OK\r\n"],
    ["header's value", "HTTP/1.1 200 OK\r\nx: "],
    ["reason after an interim answer", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 500 "],
  ])("whose head has an endless %s is cut after 64 KiB", async (_, start) => {
    const written = Promise.withResolvers<number>();
    const chunk = "x".repeat(16 * 1_024);
    const peer = await tlsPeer(certificate, (socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(chunk));
      };
      socket.on("drain", more).on("close", () => written.resolve(socket.bytesWritten));
      socket.write(start);
      more();
    });
    const result = await postUnanswered(peer.port);
    expect(result.reason).toBe("bad_response");
    expect(result.detail).toMatch(/head/i);
    expect(await written.promise).toBeLessThan(32 * 1_024 * 1_024);
  });

  test("may have a body in the same chunk as its head", async () => {
    const body = "x".repeat(60_000);
    const peer = await tlsPeer(certificate, (socket) => socket.write(answer("200 OK", body)));
    const transport = makeTransport();
    for (let count = 0; count < 4; count += 1) await postAnswered(peer.port, { transport });
    expect(peer.connections).toBe(1);
  });

  test.each(["099 Low", "000 None", "99 Short", "1000 Long", "2x0 Odd"])(
    "of status %j is no HTTP, in our words",
    async (status) => {
      const peer = await tlsPeer(certificate, (socket) => socket.write(answer(status)));
      const result = await postUnanswered(peer.port);
      expect(result.reason).toBe("bad_response");
      expect(result.detail).not.toMatch(/assert|undici|node|expression/i);
    },
  );

  test("whose body never ends is accepted a second after its head", async () => {
    const peer = await tlsPeer(certificate, (socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nand then");
    });
    expect((await postAnswered(peer.port)).httpStatus).toBe(200);
  });

  test("whose body is not complete when the attempt's time is over counts by its status line", async () => {
    const asked = Promise.withResolvers<void>();
    const peer = await tlsPeer(certificate, (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", () => asked.resolve());
    });
    stopTime();
    const result = postAnswered(peer.port, { deadlineMs: 500 });
    await asked.promise;
    await written();
    vi.advanceTimersByTime(500);
    expect((await result).httpStatus).toBe(200);
  });

  test("that came while the process stood still is read before the attempt's time counts", async () => {
    const [setRealTimeout, deadlineMs] = [setTimeout, 600_000];
    const peer = await tlsPeer(certificate, (socket) => {
      socket.write(answer("200 OK"), () => {
        // The next thing that the event loop does, before it reads anything, is to end what is over.
        setRealTimeout(() => vi.advanceTimersByTime(deadlineMs), 1);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      });
    });
    stopTime();
    expect((await postAnswered(peer.port, { deadlineMs })).httpStatus).toBe(200);
  });

  test("that breaks off in its body counts by its status line", async () => {
    const peer = await tlsPeer(certificate, (socket) => {
      socket.end("HTTP/1.1 500 Oh\r\ncontent-length: 1000\r\n\r\nbroken");
    });
    expect(await postAnswered(peer.port)).toMatchObject({ httpStatus: 500, answer: Buffer.from("broken") });
  });

  test("may be of HTTP/1.0", async () => {
    const peer = await tlsPeer(certificate, (socket) => socket.end("HTTP/1.0 204 No Content\r\n\r\n"));
    expect((await postAnswered(peer.port)).httpStatus).toBe(204);
  });

  test("may be preceded by early hints", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.writeHead(204).end();
    });
    expect((await postAnswered(peer.port)).httpStatus).toBe(204);
  });

  test("that redirects is not followed", async () => {
    const target = await httpsPeer(certificate, (_request, response) => response.end());
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.writeHead(307, { location: `https://callback.test:${target.port}/ipn` }).end();
    });
    expect((await postAnswered(peer.port)).httpStatus).toBe(307);
    expect(target.connections).toBe(0);
  });

  test.each([
    [429, "120", 120_000],
    [503, "1", 1_000],
    [503, ["7", "9"], 7_000],
    [503, "soon", undefined],
    [500, "120", undefined],
  ])("%i with Retry-After %s asks to wait %s ms", async (status, retryAfter, expected) => {
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.setHeader("retry-after", retryAfter).writeHead(status).end();
    });
    expect((await postAnswered(peer.port)).retryAfterMs).toBe(expected);
  });
});

describe("a failure says what it was:", () => {
  test("no response at all", async () => {
    const asked = Promise.withResolvers<void>();
    const peer = await tlsPeer(certificate, () => asked.resolve());
    stopTime();
    const result = postUnanswered(peer.port, { deadlineMs: 200 });
    await asked.promise;
    vi.advanceTimersByTime(200);
    expect(await result).toEqual({
      reason: "timeout",
      detail: "There was no answer within 0.2 s.",
      address: "127.0.0.1",
    });
  });

  test("a response that trickles in, at any pace", async () => {
    const asked = Promise.withResolvers<Socket>();
    const peer = await tlsPeer(certificate, (socket) => asked.resolve(socket));
    stopTime();
    const result = postUnanswered(peer.port, { deadlineMs: 400 });
    const socket = await asked.promise;
    for (const letter of "HTTP/1.1 200 OK\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaa") {
      socket.write(letter);
      await written();
      vi.advanceTimersByTime(10);
    }
    expect(await result).toMatchObject({
      reason: "timeout",
      detail: "The answer began, and its head was not complete within 0.4 s.",
    });
  });

  test("a connection closed instead of a response", async () => {
    const peer = await tlsPeer(certificate, (socket) => socket.destroy());
    const detail = expect.stringContaining("ended before the answer was complete");
    expect(await postUnanswered(peer.port)).toMatchObject({ reason: "reset", detail, address: "127.0.0.1" });
    expect(peer.connections).toBe(1);
  });

  test("a reset", async () => {
    let raw: Socket | undefined;
    const peer = await tlsPeer(certificate, () => raw?.resetAndDestroy());
    peer.server.once("connection", (socket) => {
      raw = socket;
    });
    expect(await postUnanswered(peer.port)).toMatchObject({
      reason: "reset",
      detail: expect.stringContaining("ECONNRESET"),
    });
  });

  test.each([
    "SSH-2.0-OpenSSH_9.6\r\n",
    "HTTP/1.1 abc\r\n\r\n",
    "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
  ])("no HTTP but %j", async (garbage) => {
    const peer = await tlsPeer(certificate, (socket) => socket.write(garbage));
    const detail = expect.stringContaining("not HTTP/1.1");
    expect(await postUnanswered(peer.port)).toMatchObject({ reason: "bad_response", detail });
  });

  test("endless interim responses; a few are skipped", async () => {
    const interim = "HTTP/1.1 103 Early Hints\r\nlink: </ipn>\r\n\r\n";
    const endless = await tlsPeer(certificate, (socket) => socket.write(interim.repeat(17)));
    expect(await postUnanswered(endless.port)).toMatchObject({
      reason: "bad_response",
      detail: expect.stringContaining("1xx"),
    });
    const few = await tlsPeer(certificate, (socket) => socket.write(interim.repeat(16) + answer("204 No Content")));
    expect(await post(few.port)).toMatchObject({ httpStatus: 204 });
  });

  test.each([
    ["at once", (text: string) => [text]],
    ["byte by byte", (text: string) => [...text]],
  ])("100 Continue, and other interim responses, before the answer, %s", async (_, parts) => {
    const goOn = "HTTP/1.1 100 Continue\r\n\r\n";
    const interim = `${goOn}HTTP/1.1 103 Early Hints\r\nlink: </100>\r\n\r\n${goOn}`;
    const peer = await tlsPeer(certificate, (socket) => {
      for (const part of parts(interim + answer("503 Busy", "HTTP/1.1 100 Continue"))) socket.write(part);
    });
    expect(await post(peer.port)).toMatchObject({ httpStatus: 503, answer: Buffer.from("HTTP/1.1 100 Continue") });
  });

  test("an endless head", async () => {
    const peer = await tlsPeer(certificate, (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${"x-more: and more\r\n".repeat(2_000)}`);
    });
    const detail = expect.stringMatching(/header/i);
    expect(await postUnanswered(peer.port)).toMatchObject({ reason: "bad_response", detail });
  });

  test.each([
    [
      "expired",
      async () => authority.issue("callback.test", new Date(Date.now() - 1_000)),
      /^The certificate, or one of its chain, has expired \(CERT_HAS_EXPIRED\)\.$/,
    ],
    ["another host's", async () => authority.issue("other.test"), /^The certificate is not for callback\.test \(/],
    [
      "of an unknown authority",
      async () => (await makeAuthority("Nobody")).issue("callback.test"),
      /^The certificate's issuer is not known: [^"]* \([A-Z_]+\)\.$/,
    ],
  ])("a certificate that is %s, before any byte was sent", async (_what, issue, detail) => {
    const peer = await tlsPeer(await issue(), () => undefined);
    const result = await postUnanswered(peer.port);
    expect(result).toMatchObject({ reason: "tls", detail: expect.stringMatching(detail) });
    expect(peer.bytes).toBe(0);
  });

  test("plain HTTP where TLS was expected", async () => {
    const peer = await tcpPeer((socket) => socket.end(answer("400 Bad Request")));
    expect(await postUnanswered(peer.port)).toMatchObject({
      reason: "tls",
      detail: expect.stringMatching(/^The port does not speak TLS \([A-Z_]+\)\.$/),
    });
  });

  test.each(["destroy", "resetAndDestroy"] as const)("a connection closed in the TLS handshake: %s", async (how) => {
    const peer = await tcpPeer((socket) => socket[how]());
    expect(await postUnanswered(peer.port)).toMatchObject({ reason: "tls" });
  });

  test("a TLS handshake that never ends", async () => {
    const asked = Promise.withResolvers<void>();
    const peer = await tcpPeer(() => asked.resolve());
    stopTime();
    const result = postUnanswered(peer.port, { transport: makeTransport({ connectTimeoutMs: 150 }) });
    await asked.promise;
    vi.advanceTimersByTime(150);
    expect(await result).toEqual({
      reason: "connect_timeout",
      detail: "The TLS handshake was not complete within 0.15 s.",
      address: null,
    });
  });

  test("an attempt that times out while it connects", async () => {
    const peer = await tcpPeer(() => undefined);
    expect(await postUnanswered(peer.port, { deadlineMs: 150 })).toMatchObject({ reason: "connect_timeout" });
  });

  test("a closed port", async () => {
    const peer = await tcpPeer(() => undefined);
    await peer.close();
    expect(await postUnanswered(peer.port)).toMatchObject({
      reason: "connect",
      detail: expect.stringContaining("ECONNREFUSED"),
      address: null,
    });
  });

  test("a name that does not exist", async () => {
    const missing = Object.assign(new Error("queryA ENOTFOUND callback.test"), { code: "ENOTFOUND" });
    const transport = makeTransport({ resolve: () => Promise.reject(missing) });
    expect(await postUnanswered(1, { transport })).toMatchObject({
      reason: "dns",
      detail: "callback.test cannot be resolved: queryA ENOTFOUND callback.test.",
    });
  });

  test("a name server that never answers", async () => {
    const transport = makeTransport({ resolve: () => new Promise(() => undefined), connectTimeoutMs: 100 });
    expect(await postUnanswered(1, { transport })).toMatchObject({
      reason: "dns",
      detail: "callback.test was not resolved within 0.1 s.",
    });
  });

  test("a header that cannot be sent", async () => {
    const result = await makeTransport().post({
      partner: somebody,
      url: "https://callback.test:1/ipn",
      headers: { "x-bad": "a\r\nb" },
      body: "",
      deadlineMs: 600_000,
    });
    expect(result).toMatchObject({ reason: "internal" });
  });
});

describe("connections", () => {
  test("are reused, however long the heads of all responses are together", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.setHeader("x-long", "x".repeat(15_000)).end("thanks");
    });
    const transport = makeTransport();
    for (let i = 0; i < 8; i += 1) await postAnswered(peer.port, { transport });
    expect(peer.connections).toBe(1);
  });

  test("are never shared between partners", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => response.end());
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    await postAnswered(peer.port, { transport, partner: partnerSnapshot() });
    expect(peer.connections).toBe(2);
  });

  test("are closed when the registration changes, and stay when a snapshot is only newer", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => response.end());
    const transport = makeTransport();
    const closed = Promise.withResolvers<void>();
    peer.server.once("connection", (socket) => socket.once("close", () => closed.resolve()));
    await postAnswered(peer.port, { transport });
    await postAnswered(peer.port, { transport, partner: { ...somebody } });
    expect(peer.connections).toBe(1);
    const settings = { ...somebody.settings, callbackAddresses: ["127.0.0.0/8"] };
    await postAnswered(peer.port, { transport, partner: { ...somebody, settings } });
    await closed.promise;
    expect(peer.connections).toBe(2);
  });

  test("get their response first when they are closed during a request", async () => {
    const asked = Promise.withResolvers<() => void>();
    const peer = await httpsPeer(certificate, (_request, response) => asked.resolve(() => response.end()));
    const transport = makeTransport();
    const result = postAnswered(peer.port, { transport });
    const reply = await asked.promise;
    transport.close();
    reply();
    expect((await result).httpStatus).toBe(200);
  });

  test("beyond the bound of idle ones are closed, the longest unused first", async () => {
    const closed = Promise.withResolvers<void>();
    const first = await httpsPeer(certificate, (_request, response) => response.end());
    const second = await httpsPeer(certificate, (_request, response) => response.end());
    first.server.once("connection", (socket) => socket.once("close", () => closed.resolve()));
    const transport = makeTransport({ idleConnectionsMax: 1 });
    await postAnswered(first.port, { transport });
    await postAnswered(second.port, { transport });
    await closed.promise;
    for (let posts = 0; posts < 2; posts += 1) await postAnswered(second.port, { transport });
    expect(second.connections).toBe(1);
  });

  test("of pools beyond their bound are closed, the longest unused first", async () => {
    const closed = Promise.withResolvers<void>();
    const first = await httpsPeer(certificate, (_request, response) => response.end());
    const second = await httpsPeer(certificate, (_request, response) => response.end());
    first.server.once("connection", (socket) => socket.once("close", () => closed.resolve()));
    const transport = makeTransport({ poolsMax: 1 });
    await postAnswered(first.port, { transport });
    await postAnswered(second.port, { transport });
    await closed.promise;
  });

  test("that were closed as idle during a request are replaced once, within the attempt", async () => {
    const peer = await tlsPeer(certificate, (socket, connection) => {
      if (connection === 1 && socket.bytesWritten > 0) socket.destroy();
      else socket.write(answer("200 OK"));
    });
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    expect((await postAnswered(peer.port, { transport })).httpStatus).toBe(200);
    expect(peer.connections).toBe(2);
  });

  test("that are closed again on the new connection are the partner's failure", async () => {
    const peer = await tlsPeer(certificate, (socket) => {
      if (peer.connections === 1 && socket.bytesWritten === 0) socket.write(answer("200 OK"));
      else socket.destroy();
    });
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    expect(await postUnanswered(peer.port, { transport })).toMatchObject({ reason: "reset" });
    expect(peer.connections).toBe(2);
  });

  test("that break after the first byte of a response are not tried again", async () => {
    const peer = await tlsPeer(certificate, (socket) => {
      if (socket.bytesWritten === 0) socket.write(answer("200 OK"));
      else socket.end("HTTP/1.1 2");
    });
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    expect((await postUnanswered(peer.port, { transport })).reason).toMatch(/reset|bad_response/);
    expect(peer.connections).toBe(1);
  });

  test("are closed in every way during many requests, and each request has one result", async () => {
    const behaviours = [
      (socket: Socket) => socket.write(answer("200 OK", "fine")),
      (socket: Socket) => socket.write(answer("500 Oh", "no")),
      (socket: Socket) => socket.destroy(),
      (socket: Socket) => socket.write(answer("200 OK", "", "connection: close\r\n")),
      (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-le"),
      (socket: Socket) => socket.end("HTTP/1.1 404 No\r\ncontent-length: 9\r\n\r\nhalf"),
      (socket: Socket) => socket.write(answer("204 No Content").repeat(2)),
    ];
    let turn = 0;
    const peer = await tlsPeer(certificate, (socket) => {
      turn += 1;
      behaviours[turn % behaviours.length]?.(socket);
    });
    const transport = makeTransport();
    const results: PostResult[] = [];
    const one = async () => {
      for (let i = 0; i < 25; i += 1) results.push(await post(peer.port, { transport }));
    };
    await Promise.all(Array.from({ length: 8 }, one));
    const kinds = results.map((result) =>
      "reason" in result ? result.reason : "httpStatus" in result ? result.httpStatus : "not written",
    );
    expect(kinds).toHaveLength(200);
    expect(kinds.filter((kind) => ![200, 204, 404, 500, "reset", "bad_response"].includes(kind))).toEqual([]);
    expect(new Set(kinds).size).toBeGreaterThan(4);
  });

  test("that the partner closes after each response are simply made again", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => {
      response.setHeader("connection", "close").end();
    });
    const transport = makeTransport();
    for (let i = 0; i < 3; i += 1) await postAnswered(peer.port, { transport });
    expect(peer.connections).toBe(3);
  });

  test("are as many as there are concurrent requests", async () => {
    const open: (() => void)[] = [];
    const peer = await httpsPeer(certificate, (_request, response) => {
      open.push(() => response.end());
      if (open.length === 8) for (const reply of open) reply();
    });
    const transport = makeTransport();
    const results = await Promise.all(Array.from({ length: 8 }, () => postAnswered(peer.port, { transport })));
    expect(results.map((result) => result.httpStatus)).toEqual(Array(8).fill(200));
    expect(peer.connections).toBe(8);
  });
});

describe("a sender that may no longer write", () => {
  /** Says yes this many times, then no. */
  const yesTimes = (times: number) => {
    let asked = 0;
    return () => {
      asked += 1;
      return asked <= times;
    };
  };

  test("connects to nobody", async () => {
    const peer = await tlsPeer(certificate, () => undefined);
    expect(await post(peer.port, { mayWrite: () => false })).toEqual({ notWritten: true });
    expect(peer.connections).toBe(0);
  });

  test("writes no byte to a new connection that was ready too late", async () => {
    const closed = Promise.withResolvers<void>();
    const peer = await tlsPeer(certificate, () => undefined);
    peer.server.once("connection", (socket: Socket) => socket.once("close", () => closed.resolve()));
    expect(await post(peer.port, { mayWrite: yesTimes(1) })).toEqual({ notWritten: true });
    await closed.promise;
    expect(peer).toMatchObject({ connections: 1, bytes: 0 });
  });

  test("writes no byte to a reused connection", async () => {
    const peer = await tlsPeer(certificate, (socket) => socket.write(answer("204 No Content")));
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    const before = peer.bytes;
    expect(await post(peer.port, { transport, mayWrite: () => false })).toEqual({ notWritten: true });
    await postAnswered(peer.port, { transport });
    expect(peer.bytes).toBe(2 * before);
  });

  test("writes no byte to a reused connection if its lease ended before the request's turn", async () => {
    const peer = await tlsPeer(certificate, (socket) => socket.write(answer("204 No Content")));
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    const before = peer.bytes;
    let isHeld = true;
    const result = post(peer.port, { transport, mayWrite: () => isHeld });
    isHeld = false;
    expect([await result, peer.bytes]).toEqual([{ notWritten: true }, before]);
  });

  test("repeats nothing on a new connection, and what was written before is an attempt", async () => {
    const peer = await tlsPeer(certificate, (socket, connection) => {
      if (peer.bytes > sent) socket.destroy();
      else socket.write(answer("204 No Content"));
      expect(connection).toBe(1);
    });
    let sent = Number.POSITIVE_INFINITY;
    const transport = makeTransport();
    await postAnswered(peer.port, { transport });
    sent = peer.bytes;
    expect(await post(peer.port, { transport, mayWrite: yesTimes(1) })).toMatchObject({ reason: "reset" });
    expect(peer).toMatchObject({ connections: 1, bytes: 2 * sent });
  });
});

describe("TLS", () => {
  test.each([
    ["CBC and SHA-1", { ciphers: "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0" }],
    ["CBC and SHA-256", { ciphers: "ECDHE-ECDSA-AES128-SHA256" }],
    ["a SHA-1 signature", { sigalgs: "ECDSA+SHA1", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256:@SECLEVEL=0" }],
  ])("1.2 with %s is refused", async (_, weak) => {
    const server = await weakPeer(certificate, { ...weak, maxVersion: "TLSv1.2" });
    expect(await postUnanswered(server.port)).toMatchObject({ reason: "tls" });
  });

  test("1.2 with an AEAD is accepted", async () => {
    const server = await weakPeer(certificate, { ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256", maxVersion: "TLSv1.2" });
    expect((await postAnswered(server.port)).httpStatus).toBe(200);
  });
});

describe("the address guard", () => {
  test.each([
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "%31%32%37.0.0.1",
    "１２７.0.0.1",
    "localhost",
  ])("connects to nobody at %s outside the sandbox, even when it is listed", async (host) => {
    const peer = await tcpPeer(() => undefined);
    const transport = makeTransport({ sandbox: false });
    const partner = partnerSnapshot({ callbackAddresses: ["127.0.0.0/8", "::1/128", "::/0", "0.0.0.0/0"] });
    const url = `https://${host}:${peer.port}/ipn`;
    const result = await transport.post({ partner, url, headers: {}, body: "x", deadlineMs: 600_000 });
    expect(result).toMatchObject({ reason: "address_refused", address: null });
    expect(peer.connections).toBe(0);
  });

  test("reports the address, and the list that does not contain it", async () => {
    const partner = partnerSnapshot({ callbackAddresses: ["203.0.113.0/24"] });
    const transport = makeTransport({ resolve: () => Promise.resolve(["198.51.100.7", "10.0.0.5"]) });
    expect(await postUnanswered(443, { transport, partner })).toEqual({
      reason: "address_refused",
      detail:
        "callback.test: 198.51.100.7 is outside callbackAddresses (203.0.113.0/24); 10.0.0.5 is a private address: " +
        "callbackAddresses must name a block within 10.0.0.0/8 for it, and has 203.0.113.0/24.",
      address: null,
    });
  });

  test("connects to the listed ones of a name's addresses", async () => {
    const peer = await httpsPeer(certificate, (_request, response) => response.end());
    const transport = makeTransport({ resolve: () => Promise.resolve(["198.51.100.7", "127.0.0.1", "::1"]) });
    expect((await postAnswered(peer.port, { transport })).address).toBe("127.0.0.1");
  });

  test("looks a name up once for each connection: an answer that differs the second time is judged anew", async () => {
    const peer = await httpsPeer(certificate, (_request, response) =>
      response.writeHead(200, { connection: "close" }).end(),
    );
    const answers = [["127.0.0.1"], ["127.0.0.1"], ["10.0.0.5"]];
    let asked = 0;
    const transport = makeTransport({ resolve: async () => answers[asked++] ?? [] });
    for (const turn of [1, 2]) {
      expect((await postAnswered(peer.port, { transport })).address).toBe("127.0.0.1");
      expect(asked).toBe(turn);
    }
    expect(await postUnanswered(peer.port, { transport })).toMatchObject({ reason: "address_refused" });
    expect(peer.connections).toBe(2);
  });

  test("allows http:// only in the sandbox", async () => {
    const server = createHttpServer((request, response) => request.resume().on("end", () => response.end()));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`;
    const request = { partner: somebody, url, headers: {}, body: "x", deadlineMs: 600_000 };
    const sandbox = makeTransport();
    expect(await sandbox.post(request)).toMatchObject({ httpStatus: 200 });
    sandbox.close();
    expect(await makeTransport({ sandbox: false }).post(request)).toEqual({
      reason: "tls",
      detail: "The callback URL is not https://.",
      address: null,
    });
  });
});
