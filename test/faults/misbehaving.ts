import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import {
  httpsPeer,
  type makeAuthority,
  type Peer,
  tcpPeer,
  tlsPeer,
} from "../../packages/server/src/delivery/transport/transport.fixture.ts";

type Authority = Awaited<ReturnType<typeof makeAuthority>>;

/** The certificates of a misbehaving receiver. */
export interface Authorities {
  /** The service trusts it. */
  readonly trusted: Authority;
  /** The service has never heard of it. */
  readonly foreign: Authority;
}

/** The record of the first attempt at a misbehaving receiver. */
export interface RecordedRequest {
  /** One of these; null: accepted. */
  readonly reasons: readonly (string | null)[];
  readonly httpStatus: number | null;
  /** A pattern of `detail`. */
  readonly says: RegExp | null;
}

export interface ReceiverFault extends RecordedRequest {
  readonly name: string;
  /** Resolves to the callback URL of a receiver that runs until the test has finished. */
  serve(authorities: Authorities): Promise<string>;
}

/** The bytes that all receivers together could send of an answer of 100 MB. */
export const flood = { bytes: 0 };

const trickleEveryMs = 1_000;
const floodBytes = 100 * 1_024 * 1_024;
const yesterday = new Date(Date.now() - 86_400_000);

/** The attempt's time is over after `attemptTimeoutMs`. */
export function faults(attemptTimeoutMs: number): readonly ReceiverFault[] {
  const inTime = `within ${attemptTimeoutMs / 1_000} s`;
  return [
    failing("accepts connections and never says a word", "connect_timeout", /TLS handshake was not complete/, () =>
      tcpPeer(() => undefined),
    ),
    failing("takes the request and never answers", "timeout", new RegExp(`There was no answer ${inTime}`), (trusted) =>
      talking(trusted, () => undefined),
    ),
    failing("trickles a byte a second", "timeout", new RegExp(`head was not complete ${inTime}`), (trusted) =>
      talking(trusted, trickle),
    ),
    // The reset comes before or after the handshake began.
    failing("resets at accept", ["connect", "tls"], /ECONNRESET|disconnected|closed/, () => resetting()),
    failing("resets after the request", "reset", /ended before the answer was complete/, (trusted) =>
      talking(trusted, (socket) => socket.destroy()),
    ),
    failing("resets in the middle of its answer's head", "reset", /ended before the answer was complete/, (trusted) =>
      talking(trusted, (socket) => socket.end("HTTP/1.1 204 No Con")),
    ),
    failing("speaks garbage", "bad_response", /not HTTP\/1\.1/, (trusted) =>
      talking(trusted, (socket) => socket.end("\u0000\u0001SSH-2.0-OpenSSH_9.9\r\n\r\n")),
    ),
    failing("answers with a head of 1 MB", "bad_response", /[Hh]eader/, (trusted) =>
      talking(trusted, (socket) => socket.end(`HTTP/1.1 204 No Content\r\nx-long: ${"a".repeat(1_048_576)}\r\n\r\n`)),
    ),
    failing("has an expired certificate", "tls", /expired/, (trusted) => certified(trusted, "localhost", yesterday)),
    failing("has the certificate of a foreign name", "tls", /altnames|ALTNAME/, (trusted) =>
      certified(trusted, "stranger.test", undefined, ["127.0.0.9"]),
    ),
    failing("has a certificate of a foreign authority", "tls", /unable to|self-signed|UNABLE/i, (_trusted, foreign) =>
      certified(foreign, "localhost"),
    ),
    fault(
      "has a name that does not exist",
      { reasons: ["dns"], httpStatus: null, says: /nowhere\.invalid/ },
      async () => {
        return "https://nowhere.invalid/ipn";
      },
    ),
    fault("refuses connections", { reasons: ["connect"], httpStatus: null, says: /ECONNREFUSED/ }, closedPort),
    answering("redirects", { reasons: ["redirect"], httpStatus: 308, says: /never followed/ }, (response) =>
      // A redirect to itself: following it would never end.
      response.writeHead(308, { location: "/ipn" }).end(),
    ),
    answering("fails with 100 MB", { reasons: ["status"], httpStatus: 500, says: /Answered 500/ }, (response) =>
      pour(response, 500),
    ),
    answering("accepts with 100 MB", accepted(200), (response) => pour(response, 200)),
    answering("breaks off its answer's body", accepted(200), (response) => {
      response.writeHead(200, { "content-length": 1_000 });
      response.write("and then", () => response.destroy());
    }),
    answering("closes every connection behind its answer", accepted(204), (response) => {
      const { socket } = response;
      response.writeHead(204).end(() => socket?.destroy());
    }),
    fault("answers in HTTP/1.0", accepted(204), async ({ trusted }) =>
      urlOf(await talking(trusted, (socket) => socket.end("HTTP/1.0 204 No Content\r\n\r\n"))),
    ),
  ];
}

function accepted(httpStatus: number): RecordedRequest {
  return { reasons: [null], httpStatus, says: null };
}

function fault(name: string, recorded: RecordedRequest, serve: ReceiverFault["serve"]): ReceiverFault {
  return { name, ...recorded, serve };
}

/** Without any answer. */
function failing(
  name: string,
  reason: string | readonly string[],
  says: RegExp,
  peer: (trusted: Authority, foreign: Authority) => Promise<Peer>,
): ReceiverFault {
  const recorded = { reasons: [reason].flat(), httpStatus: null, says };
  return fault(name, recorded, async ({ trusted, foreign }) => urlOf(await peer(trusted, foreign)));
}

function answering(name: string, recorded: RecordedRequest, answer: (response: ServerResponse) => void): ReceiverFault {
  return fault(name, recorded, async ({ trusted }) =>
    urlOf(await httpsPeer(await trusted.issue("localhost"), (_request, response) => answer(response))),
  );
}

function urlOf({ port }: Pick<Peer, "port">): string {
  return `https://127.0.0.1:${port}/ipn`;
}

/** Speaks TLS, and calls `talk` once a request begins. */
async function talking(authority: Authority, talk: (socket: Socket) => void): Promise<Peer> {
  const spoken = new WeakSet<Socket>();
  return tlsPeer(await authority.issue("localhost"), (socket) => {
    if (spoken.has(socket)) return;
    spoken.add(socket);
    talk(socket);
  });
}

async function certified(authority: Authority, name: string, validTo?: Date, addresses?: string[]): Promise<Peer> {
  const certificate = await authority.issue(name, validTo, addresses);
  return httpsPeer(certificate, (_request, response) => response.writeHead(204).end());
}

async function resetting(): Promise<Peer> {
  const peer = await tcpPeer(() => undefined);
  peer.server.on("connection", (socket: Socket) => socket.resetAndDestroy());
  return peer;
}

function trickle(socket: Socket): void {
  const letters = [..."HTTP/1.1 204 No Content\r\n"];
  const timer = setInterval(() => socket.write(letters.shift() ?? "x"), trickleEveryMs);
  socket.write(letters.shift() ?? "x");
  socket.on("close", () => clearInterval(timer));
}

function pour(response: ServerResponse, status: number): void {
  const chunk = Buffer.alloc(64 * 1_024, "x");
  let poured = 0;
  const more = () => {
    while (poured < floodBytes && !response.destroyed) {
      poured += chunk.length;
      flood.bytes += chunk.length;
      if (!response.write(chunk)) return;
    }
  };
  response.writeHead(status, { "content-length": floodBytes }).on("drain", more);
  more();
}

/** A server listened there a moment ago. */
async function closedPort(): Promise<string> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as { port: number };
  await once(server.close(), "close");
  return urlOf({ port });
}
