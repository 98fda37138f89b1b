import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { eventStreamType } from "./event-stream.ts";
import { SlowReaders } from "./slow-readers.ts";

const toldAtMostEveryMs = 60_000;

const told = {
  unread: "an answer was not read in time, or too much is unread: its connection is closed",
  stream: "too many connections: the stream that began first is closed",
  waiting: "too many connections: the one that waits longest is closed",
  busy: "too many connections, all of them with a request: the new one is closed",
} as const;

type Reason = keyof typeof told;

/**
 * Callers' connections, of all addresses of a listener together. If there are too many, one that does not read its
 * answer is closed, otherwise a stream of events, otherwise the one that has waited longest for a request or the rest
 * of one: a client that opens thousands and sends nothing, reads nothing, or sends a byte a second, loses its own and
 * affects nobody else. A stream's reader reconnects by itself. A connection with any other request that is being
 * processed is never closed.
 */
export class Connections {
  readonly #max: number;
  readonly #log: Log;
  readonly #metrics: Pick<Metrics, "connections" | "connectionsClosed">;
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Socket>();
  /** The number of each one's requests that are being answered. */
  readonly #answering = new Map<Socket, number>();
  /** Connections with a stream of events, which lasts for minutes: the one that began first is first. */
  readonly #streams = new Set<Socket>();
  #toldAtMs = Number.NEGATIVE_INFINITY;

  readonly #unread: SlowReaders;

  constructor(
    config: Pick<Config, "connectionsMax" | "answerTimeoutMs" | "unreadBytesMax">,
    { log, metrics }: { readonly log: Log; readonly metrics: Metrics },
  ) {
    this.#max = config.connectionsMax;
    this.#log = log;
    this.#metrics = metrics;
    const bounds = { timeoutMs: config.answerTimeoutMs, bytesMax: config.unreadBytesMax };
    this.#unread = new SlowReaders(bounds, (socket) => this.#close(socket, "unread"));
    let shown = 0;
    // Each listener adds its own part of the sum.
    metrics.onRead(async () => {
      const bytes = this.#unread.bytes();
      metrics.unreadBytes.inc(bytes - shown);
      shown = bytes;
    });
  }

  /** Counts the connections of the app's server, and knows which of them have a whole request. */
  watch(app: FastifyInstance): void {
    this.#unread.watch(app);
    app.server.on("connection", (socket: Socket) => this.#opened(socket));
    // The whole request has come, its body too.
    app.addHook("preValidation", (request, _, done) => {
      this.#answers(request.raw.socket);
      done();
    });
    app.addHook("onSend", (request, reply, _, done) => {
      const { socket } = request.raw;
      if (!socket.destroyed && reply.getHeader("content-type") === eventStreamType) this.#streams.add(socket);
      done();
    });
    app.addHook("onResponse", (request, _, done) => {
      this.#answered(request.raw.socket);
      done();
    });
  }

  #opened(socket: Socket): void {
    if (this.#waiting.size + this.#answering.size >= this.#max) {
      const [closed, reason] = this.#dispensable() ?? [socket, "busy"];
      this.#close(closed, reason);
      if (closed === socket) return;
    }
    this.#waiting.add(socket);
    socket.once("close", () => {
      this.#forget(socket);
      this.#metrics.connections.dec();
    });
    this.#metrics.connections.inc();
  }

  #dispensable(): readonly [Socket, Reason] | undefined {
    const unread = this.#unread.longest();
    if (unread !== undefined) return [unread, "unread"];
    const [stream] = this.#streams;
    if (stream !== undefined) return [stream, "stream"];
    const [waiting] = this.#waiting;
    return waiting && [waiting, "waiting"];
  }

  #close(socket: Socket, reason: Reason): void {
    this.#forget(socket);
    socket.destroy();
    this.#metrics.connectionsClosed.inc({ reason });
    const nowMs = performance.now();
    if (nowMs - this.#toldAtMs < toldAtMostEveryMs) return;
    this.#toldAtMs = nowMs;
    this.#log.warn({ connectionsMax: this.#max, reason }, told[reason]);
  }

  #answers(socket: Socket): void {
    if (!this.#waiting.delete(socket) && !this.#answering.has(socket)) return;
    this.#answering.set(socket, (this.#answering.get(socket) ?? 0) + 1);
  }

  #answered(socket: Socket): void {
    this.#streams.delete(socket);
    const requests = this.#answering.get(socket);
    if (requests === undefined) return;
    if (requests > 1) {
      this.#answering.set(socket, requests - 1);
      return;
    }
    this.#answering.delete(socket);
    if (!socket.destroyed) this.#waiting.add(socket);
  }

  #forget(socket: Socket): void {
    this.#waiting.delete(socket);
    this.#answering.delete(socket);
    this.#streams.delete(socket);
  }
}
