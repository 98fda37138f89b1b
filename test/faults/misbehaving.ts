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

export interface ReceiverFault {
  readonly name: string;
  /** Resolves to the callback URL of a receiver that runs until the test has finished. */
  serve(authorities: Authorities): Promise<string>;
}

/** The bytes that all receivers together could send of an answer of 100 MB. */
export const flood = { bytes: 0 };

const trickleEveryMs = 1_000;
const floodBytes = 100 * 1_024 * 1_024;
const yesterday = new Date(Date.now() - 86_400_000);

/** Each does to an attempt what transport.test.ts says, apart from a reset before the handshake. */
export const faults: readonly ReceiverFault[] = [
  served("accepts connections and never says a word", () => tcpPeer(() => undefined)),
  served("takes the request and never answers", (trusted) => talking(trusted, () => undefined)),
  served("trickles a byte a second", (trusted) => talking(trusted, trickle)),
  served("resets at accept", () => resetting()),
  served("resets after the request", (trusted) => talking(trusted, (socket) => socket.destroy())),
  served("resets in the middle of its answer's head", (trusted) =>
    talking(trusted, (socket) => socket.end("HTTP/1.1 204 No Con")),
  ),
  served("speaks garbage", (trusted) =>
    talking(trusted, (socket) => socket.end("\u0000\u0001SSH-2.0-OpenSSH_9.9\r\n\r\n")),
  ),
  served("answers with a head of 1 MB", (trusted) =>
    talking(trusted, (socket) => socket.end(`HTTP/1.1 204 No Content\r\nx-long: ${"a".repeat(1_048_576)}\r\n\r\n`)),
  ),
  served("has an expired certificate", (trusted) => certified(trusted, "localhost", yesterday)),
  served("has the certificate of a foreign name", (trusted) =>
    certified(trusted, "stranger.test", undefined, ["127.0.0.9"]),
  ),
  served("has a certificate of a foreign authority", (_trusted, foreign) => certified(foreign, "localhost")),
  { name: "has a name that does not exist", serve: async () => "https://nowhere.invalid/ipn" },
  { name: "refuses connections", serve: closedPort },
  // A redirect to itself: following it would never end.
  answering("redirects", (response) => response.writeHead(308, { location: "/ipn" }).end()),
  answering("fails with 100 MB", (response) => pour(response, 500)),
  answering("accepts with 100 MB", (response) => pour(response, 200)),
  answering("breaks off its answer's body", (response) => {
    response.writeHead(200, { "content-length": 1_000 });
    response.write("and then", () => response.destroy());
  }),
  answering("closes every connection behind its answer", (response) => {
    const { socket } = response;
    response.writeHead(204).end(() => socket?.destroy());
  }),
  served("answers in HTTP/1.0", (trusted) =>
    talking(trusted, (socket) => socket.end("HTTP/1.0 204 No Content\r\n\r\n")),
  ),
];

function served(name: string, peer: (trusted: Authority, foreign: Authority) => Promise<Peer>): ReceiverFault {
  return { name, serve: async ({ trusted, foreign }) => urlOf(await peer(trusted, foreign)) };
}

function answering(name: string, answer: (response: ServerResponse) => void): ReceiverFault {
  return served(name, async (trusted) =>
    httpsPeer(await trusted.issue("localhost"), (_request, response) => answer(response)),
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
