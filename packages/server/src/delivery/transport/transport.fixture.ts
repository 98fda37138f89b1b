import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { generate } from "selfsigned";
import { onTestFinished } from "vitest";
import { systemClock } from "../../clock.ts";
import { Transport, type TransportOptions } from "./transport.ts";

interface Certificate {
  readonly key: string;
  readonly cert: string;
}

interface Authority extends Certificate {
  /** For 127.0.0.1 too, or for `addresses` instead. */
  issue(dnsName: string, validTo?: Date, addresses?: readonly string[]): Promise<Certificate>;
}

/** Makes a certificate authority. */
export async function makeAuthority(name: string): Promise<Authority> {
  const made = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, digitalSignature: true, critical: true },
    ],
  });
  const ca = { key: made.private, cert: made.cert };
  return { ...ca, issue: (dnsName, validTo, addresses) => issue(ca, dnsName, validTo, addresses) };
}

const dayMs = 86_400_000;

async function issue(
  ca: Certificate,
  dnsName: string,
  validTo?: Date,
  addresses: readonly string[] = ["127.0.0.1"],
): Promise<Certificate> {
  const made = await generate([{ name: "commonName", value: dnsName }], {
    keyType: "ec",
    algorithm: "sha256",
    ca,
    ...(validTo === undefined ? {} : { notBeforeDate: new Date(validTo.getTime() - dayMs), notAfterDate: validTo }),
    extensions: [
      { name: "basicConstraints", cA: false },
      {
        name: "subjectAltName",
        altNames: [{ type: 2, value: dnsName }, ...addresses.map((ip) => ({ type: 7, ip }) as const)],
      },
    ],
  });
  return { key: made.private, cert: made.cert };
}

/** A transport of the test, to which every name is at 127.0.0.1, and which trusts the authority. */
export function transportTo(authority: Certificate, options: Partial<TransportOptions> = {}): Transport {
  const transport = new Transport({
    clock: systemClock,
    resolve: () => Promise.resolve(["127.0.0.1"]),
    sandbox: true,
    extraCas: [authority.cert],
    connectTimeoutMs: 600_000,
    ...options,
  });
  onTestFinished(() => transport.close());
  return transport;
}

/** A peer on 127.0.0.1 that counts its connections, and is closed when the test has finished. */
export interface Peer {
  readonly port: number;
  connections: number;
  /** Bytes of requests received, after TLS if it uses TLS. */
  bytes: number;
  readonly server: Server;
  close(): Promise<void>;
}

/** A well-behaved HTTPS server. */
export function httpsPeer(
  certificate: Certificate,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Peer> {
  const server = createHttpsServer({ ...certificate, keepAliveTimeout: 20_000 }, (request, response) => {
    request.resume().on("end", () => handler(request, response));
  });
  return listen(server);
}

/** Completes the TLS handshake, then runs the script. `talk` is called for each chunk of a request. */
export function tlsPeer(certificate: Certificate, talk: (socket: Socket, connection: number) => void): Promise<Peer> {
  const server = createTlsServer(certificate);
  return scripted(server, "secureConnection", talk);
}

/** Answers 200 over TLS with these options. */
export function weakPeer(certificate: Certificate, options: TlsOptions): Promise<Peer> {
  const server = createTlsServer({ ...certificate, ...options });
  return scripted(server, "secureConnection", (socket) => socket.write(answer("200 OK")));
}

/** Plain TCP. */
export function tcpPeer(talk: (socket: Socket, connection: number) => void): Promise<Peer> {
  return scripted(createTcpServer(), "connection", talk);
}

async function scripted(
  server: Server,
  event: "connection" | "secureConnection",
  talk: (socket: Socket, connection: number) => void,
): Promise<Peer> {
  const peer = await listen(server);
  server.on(event, (socket: Socket) => {
    const connection = peer.connections;
    socket.on("data", (chunk) => {
      peer.bytes += chunk.length;
      talk(socket, connection);
    });
  });
  return peer;
}

async function listen(server: Server): Promise<Peer> {
  const sockets = new Set<Socket>();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const peer: Peer = {
    port: (server.address() as AddressInfo).port,
    connections: 0,
    bytes: 0,
    server,
    async close() {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on("connection", (socket: Socket) => {
    peer.connections += 1;
    track(sockets, socket);
  });
  server.on("secureConnection", (socket: Socket) => track(sockets, socket));
  server.on("tlsClientError", () => undefined);
  onTestFinished(() => peer.close());
  return peer;
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  // The test judges how the other side closes.
  socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
}

/** A raw response with a body. */
export function answer(status: string, body = "", headers = ""): string {
  return `HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
}
