import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface ConnectProxyOptions {
  /** For TLS with the proxy itself. */
  readonly certificate?: { readonly key: string; readonly cert: string };
  /** user:password that it requires. */
  readonly credentials?: string;
  /** Default 0: a free one. */
  readonly port?: number;
}

/** A real forward proxy on 127.0.0.1: it connects to what CONNECT names; each `.test` name is 127.0.0.1. */
export interface ConnectProxy {
  readonly port: number;
  /** The targets of CONNECT, in order. */
  readonly asked: string[];
  /** Its answers to CONNECT for these: a status, or none. Others are connected. */
  readonly answers: Map<string, number | "silence">;
  /** Ends every tunnel and refuses connections. */
  stop(): Promise<void>;
}

export async function connectProxy(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
  const { certificate, credentials, port = 0 } = options;
  const sockets = new Set<Socket>();
  const proxy = { asked: [] as string[], answers: new Map<string, number | "silence">() };
  const server: Server = certificate === undefined ? createHttpServer() : createHttpsServer(certificate);
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
  };
  server.on("connection", track).on("secureConnection", track);
  server.on("connect", ({ url = "", headers }, socket: Socket) => {
    proxy.asked.push(url);
    const wanted = credentials && `Basic ${Buffer.from(credentials).toString("base64")}`;
    const refusal = headers["proxy-authorization"] === wanted ? proxy.answers.get(url) : 407;
    if (refusal === "silence") return;
    if (refusal !== undefined) return void socket.end(`HTTP/1.1 ${refusal} No\r\ncontent-length: 0\r\n\r\n`);
    const { hostname, port: target } = new URL(`http://${url}`);
    const origin = connect(Number(target === "" ? 80 : target), hostname.endsWith(".test") ? "127.0.0.1" : hostname);
    track(origin);
    origin.once("connect", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      origin.pipe(socket).pipe(origin);
    });
    origin.once("error", () => socket.end("HTTP/1.1 502 Bad gateway\r\ncontent-length: 0\r\n\r\n"));
    origin.once("close", () => socket.destroy());
    socket.once("close", () => origin.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  onTestFinished(stop);
  return { ...proxy, port: (server.address() as AddressInfo).port, stop };
}
