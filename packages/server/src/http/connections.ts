import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";

const toldAtMostEveryMs = 60_000;

/**
 * Callers' connections, of all addresses we listen on together. When there are too many, the one that has waited
 * longest, for a request or for the rest of one, makes room: whoever opens thousands and sends nothing, or a byte a
 * second, loses theirs and costs nobody else. One whose request is being answered is never closed.
 */
export class Connections {
  readonly #max: number;
  readonly #log: Log;
  readonly #metrics: Pick<Metrics, "connections" | "connectionsClosed">;
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Socket>();
  /** How many requests of each are being answered. */
  readonly #answering = new Map<Socket, number>();
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(max: number, { log, metrics }: { readonly log: Log; readonly metrics: Metrics }) {
    this.#max = max;
    this.#log = log;
    this.#metrics = metrics;
  }

  /** Counts the connections of the app's server, and knows which of them have a whole request. */
  watch(app: FastifyInstance): void {
    app.server.on("connection", (socket: Socket) => this.#opened(socket));
    // The whole request has come, its body too.
    app.addHook("preValidation", (request, _, done) => {
      this.#answers(request.raw.socket);
      done();
    });
    app.addHook("onResponse", (request, _, done) => {
      this.#answered(request.raw.socket);
      done();
    });
  }

  #opened(socket: Socket): void {
    if (this.#waiting.size + this.#answering.size >= this.#max) {
      const [longest = socket] = this.#waiting;
      this.#close(longest, longest === socket ? "busy" : "waiting");
      if (longest === socket) return;
    }
    this.#waiting.add(socket);
    socket.once("close", () => {
      this.#forget(socket);
      this.#metrics.connections.set(this.#waiting.size + this.#answering.size);
    });
    this.#metrics.connections.set(this.#waiting.size + this.#answering.size);
  }

  #close(socket: Socket, reason: "waiting" | "busy"): void {
    this.#forget(socket);
    socket.destroy();
    this.#metrics.connectionsClosed.inc({ reason });
    const nowMs = performance.now();
    if (nowMs - this.#toldAtMs < toldAtMostEveryMs) return;
    this.#toldAtMs = nowMs;
    this.#log.warn({ connectionsMax: this.#max, reason }, "too many connections: the one that waits longest is closed");
  }

  #answers(socket: Socket): void {
    if (!this.#waiting.delete(socket) && !this.#answering.has(socket)) return;
    this.#answering.set(socket, (this.#answering.get(socket) ?? 0) + 1);
  }

  #answered(socket: Socket): void {
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
  }
}
