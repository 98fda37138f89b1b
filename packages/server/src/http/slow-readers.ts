import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

export interface SlowReaderBounds {
  /** The time that a caller may take to read one answer. */
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
}

/** A stream's answer holds no more than a piece of it. */
const streamBytes = 64 * 1_024;
const lookEveryMsMax = 1_000;

/**
 * Answers being sent to callers. A client that does not read occupies memory and a connection: each answer has a
 * deadline, all together have a bound, and when either is reached the connection that stalled first is closed: at the
 * bound, of the caller that has the most unread.
 */
export class SlowReaders {
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
      this.#begin(socket, bytesOf(payload), request.headers.authorization ?? socket.remoteAddress ?? "");
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

  #begin(socket: Socket, bytes: number, owner: string): void {
    if (socket.destroyed) return;
    const writing = this.#writing.get(socket);
    if (writing === undefined) this.#writing.set(socket, { owner, answers: 1, bytes, sinceMs: performance.now() });
    else {
      writing.answers += 1;
      writing.bytes += bytes;
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

  #restart(socket: Socket, writing: Writing): void {
    this.#writing.delete(socket);
    this.#writing.set(socket, { ...writing, sinceMs: performance.now() });
  }

  #checkLater(): NodeJS.Timeout {
    const everyMs = Math.min(lookEveryMsMax, this.#bounds.timeoutMs / 4);
    return setTimeout(() => this.#check(), everyMs).unref();
  }

  #check(): void {
    const nowMs = performance.now();
    for (const [socket, writing] of [...this.#writing]) {
      if (nowMs - writing.sinceMs < this.#bounds.timeoutMs) continue;
      // Nothing waits for the caller: the answer waits for another one before it.
      if (socket.writableLength === 0) this.#restart(socket, writing);
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
  if (typeof payload === "string") return payload.length;
  if (Buffer.isBuffer(payload)) return payload.length;
  return payload === undefined || payload === null ? 0 : streamBytes;
}
