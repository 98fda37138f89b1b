import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Config } from "../../config/config.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { eventStreamType } from "../deliveries/overview.ts";
import { pieceBytes } from "../operation.ts";

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

interface SlowReaderBounds {
  /** The time that a caller may take to read one answer, or a piece of one that is a stream. */
  readonly timeoutMs: number;
  /** The size of answers in memory while they are being written, of all callers together. */
  readonly bytesMax: number;
}

interface Writing {
  /** The caller's key, or else its address. */
  readonly owner: string;
  answers: number;
  bytes: number;
  sinceMs: number;
  /** What the operating system had taken by then. */
  takenBytes: number;
  /** An answer is sent in pieces, and may be of any length. */
  isStream: boolean;
}

const lookEveryMsMax = 1_000;

/**
 * Answers being sent to callers. A client that does not read occupies memory and a connection: each answer has a
 * deadline, all together have a bound, and when either is reached the connection that stalled first is closed: at the
 * bound, of the caller that has the most unread.
 */
class SlowReaders {
  readonly #bounds: SlowReaderBounds;
  readonly #close: (socket: Socket) => void;
  /** The one that began first is first. */
  readonly #writing = new Map<Socket, Writing>();
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(bounds: SlowReaderBounds, close: (socket: Socket) => void) {
    this.#bounds = bounds;
    this.#close = close;
  }

  watch(app: FastifyInstance): void {
    app.server.on("connection", (socket: Socket) => socket.once("close", () => this.#forget(socket)));
    app.addHook("onSend", (request, _, payload, done) => {
      const { socket } = request.raw;
      this.#begin(socket, payload, request.headers.authorization ?? socket.remoteAddress ?? "");
      done();
    });
    app.addHook("onResponse", (request, _, done) => {
      this.#end(request.raw.socket);
      done();
    });
    app.addHook("onClose", async () => clearTimeout(this.#timer));
  }

  /** The bytes that the operating system has not accepted yet. */
  bytes(): number {
    let bytes = 0;
    for (const socket of this.#writing.keys()) bytes += socket.writableLength;
    return bytes;
  }

  /** The connection that stalled first of those that do not read. */
  longest(): Socket | undefined {
    for (const socket of this.#writing.keys()) if (socket.writableLength > 0) return socket;
    return undefined;
  }

  #begin(socket: Socket, payload: unknown, owner: string): void {
    if (socket.destroyed) return;
    const isStream = isPieced(payload);
    const bytes = bytesOf(payload);
    const writing = this.#writing.get(socket);
    if (writing === undefined) this.#restart(socket, { owner, answers: 1, bytes, isStream });
    else {
      writing.answers += 1;
      writing.bytes += bytes;
      writing.isStream ||= isStream;
    }
    this.#bytes += bytes;
    this.#makeRoom(socket);
    this.#timer ??= this.#checkLater();
  }

  /** The newest answer is written whatever its length: alone it must be possible. */
  #makeRoom(newest: Socket): void {
    while (this.#bytes > this.#bounds.bytesMax) {
      const heaviest = this.#heaviest();
      const stalled = [...this.#writing].find(
        ([socket, { owner, bytes }]) => owner === heaviest && (socket !== newest || bytes > this.#bounds.bytesMax),
      );
      if (stalled === undefined) return;
      this.#cut(stalled[0]);
    }
  }

  /** The caller with the most bytes. */
  #heaviest(): string | undefined {
    const bytesOfOwner = new Map<string, number>();
    for (const { owner, bytes } of this.#writing.values()) {
      bytesOfOwner.set(owner, (bytesOfOwner.get(owner) ?? 0) + bytes);
    }
    return [...bytesOfOwner].toSorted(([, one], [, other]) => other - one)[0]?.[0];
  }

  #end(socket: Socket): void {
    const writing = this.#writing.get(socket);
    if (writing === undefined) return;
    writing.answers -= 1;
    // The next answer's time begins. The bytes of this one are counted until the last, because it is not known which
    // one was sent.
    if (writing.answers > 0) this.#restart(socket, writing);
    else this.#forget(socket);
  }

  #restart(socket: Socket, writing: Omit<Writing, "sinceMs" | "takenBytes">): void {
    this.#writing.delete(socket);
    this.#writing.set(socket, { ...writing, sinceMs: performance.now(), takenBytes: takenOf(socket) });
  }

  #checkLater(): NodeJS.Timeout {
    const everyMs = Math.min(lookEveryMsMax, this.#bounds.timeoutMs / 4);
    return setTimeout(() => this.#check(), everyMs).unref();
  }

  #check(): void {
    const nowMs = performance.now();
    for (const [socket, writing] of [...this.#writing]) {
      if (nowMs - writing.sinceMs < this.#bounds.timeoutMs) continue;
      // Nothing waits for the caller: the answer waits for another one before it. Or it reads on: an export lasts as
      // long as its network needs.
      const isRead = writing.isStream && takenOf(socket) - writing.takenBytes >= pieceBytes;
      if (socket.writableLength === 0 || isRead) this.#restart(socket, writing);
      else this.#cut(socket);
    }
    this.#timer = this.#writing.size > 0 ? this.#checkLater() : undefined;
  }

  #cut(socket: Socket): void {
    this.#forget(socket);
    this.#close(socket);
  }

  #forget(socket: Socket): void {
    this.#bytes -= this.#writing.get(socket)?.bytes ?? 0;
    this.#writing.delete(socket);
  }
}

function bytesOf(payload: unknown): number {
  if (typeof payload === "string" || Buffer.isBuffer(payload)) return payload.length;
  return isPieced(payload) ? pieceBytes : 0;
}

function isPieced(payload: unknown): boolean {
  return typeof payload === "object" && payload !== null && !Buffer.isBuffer(payload);
}

function takenOf({ bytesWritten, writableLength }: Socket): number {
  return bytesWritten - writableLength;
}
