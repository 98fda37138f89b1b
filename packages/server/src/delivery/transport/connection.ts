import type { Socket } from "node:net";
import { Client, type Dispatcher } from "undici";
import { type Connecting, type ConnectRules, connect, type LastSession, targetOf } from "./connect.ts";
import { TransportFailure } from "./failure.ts";

/**
 * Idle connections are kept this long unless the partner's Keep-Alive header says otherwise. If a partner closes
 * earlier, it costs one repetition on a new connection, within the attempt.
 */
const keepAliveMs = 30_000;
const keepAliveMaxMs = 60_000;
const headBytesMax = 16 * 1_024;

/** The sender may no longer write. */
export class WriteForbidden extends Error {
  override readonly name = "WriteForbidden";
}

/**
 * One connection at a time to one origin of one partner, for one request at a time. After it was closed, the next
 * request connects again.
 */
export class Connection {
  readonly client: Client;
  /** The head of the response being received. */
  readonly head = new ResponseHead();
  /** The address connected to, or last connected to; null also if a proxy looked it up. */
  address: string | null = null;
  /** Called before it connects, and again before the first byte of a request. */
  mayWrite: () => boolean = () => true;
  /** Responses received over the current socket. */
  answers = 0;
  #connecting: Connecting | undefined;

  constructor(origin: string, rules: ConnectRules, lastSession: LastSession) {
    this.client = new Client(origin, {
      connect: (target, callback) => {
        if (!this.mayWrite()) return callback(new WriteForbidden(), null);
        const connecting = connect(targetOf(target), rules, lastSession);
        this.#connecting = connecting;
        connecting.connected.then(
          ({ socket, address }) => {
            this.#took(socket, address);
            callback(null, socket);
          },
          (failure: Error) => callback(failure, null),
        );
      },
      pipelining: 1,
      allowH2: false,
      // The attempt has one deadline for everything; these would only bound the pauses in between.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMaxMs,
      maxHeaderSize: headBytesMax,
    });
  }

  #took(socket: Socket, address: string | null): void {
    this.head.watch(socket);
    this.#connecting = undefined;
    this.address = address;
    this.answers = 0;
  }

  /** Closes it at once; a running request fails. */
  destroy(): void {
    this.#connecting?.abandon();
    // Resolves when the socket is closed, and never rejects.
    void this.client.destroy();
  }
}

/**
 * The connections to one origin of one partner, never shared with another. The one used last is used again first, so
 * that surplus ones become idle.
 */
export class ConnectionPool {
  readonly version: string;
  readonly #origin: string;
  readonly #rules: ConnectRules;
  readonly #lastSession: LastSession = { session: undefined };
  readonly #idle: Connection[] = [];
  #busy = 0;
  #closed = false;
  usedMs = 0;

  constructor(origin: string, version: string, rules: ConnectRules) {
    this.#origin = origin;
    this.version = version;
    this.#rules = rules;
  }

  get idle(): number {
    return this.#idle.length;
  }

  get busy(): number {
    return this.#busy;
  }

  /**
   * Acquires a connection for one request, to be released or dropped. Their number is bounded by the slots of the
   * callers.
   */
  acquire(): Connection {
    this.#busy += 1;
    return this.#idle.pop() ?? new Connection(this.#origin, this.#rules, this.#lastSession);
  }

  /** As `acquire`, but certainly without a socket that was used before. */
  acquireNew(): Connection {
    this.#busy += 1;
    return new Connection(this.#origin, this.#rules, this.#lastSession);
  }

  /** The response was received completely. False if the pool was closed, and the connection with it. */
  release(connection: Connection): boolean {
    this.#busy -= 1;
    if (this.#closed) connection.destroy();
    else this.#idle.push(connection);
    return !this.#closed;
  }

  drop(connection: Connection): void {
    this.#busy -= 1;
    connection.destroy();
  }

  /** Closes the connection that was idle longest. */
  shed(): void {
    this.#idle.shift()?.destroy();
  }

  /** Closes idle connections now, and busy ones when they have their response. */
  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}

/** All bytes of a response until its head is complete, including interim responses. */
const responseHeadBytesMax = 64 * 1_024;
const statusBytes = "HTTP/1.1 100".length;
const digits = { zero: 0x30, two: 0x32 } as const;

/**
 * The raw bytes of a response until its head is complete.
 *
 * It counts them. The client library bounds the headers, but not the status line: measured, 32 receivers with an
 * endless one made everybody's callbacks 80 times slower.
 *
 * It reads 100 as 102. A server may send `100 Continue` to a request that did not ask for it (RFC 9110, 15.2), and the
 * library takes it for an error, but passes over other interim responses.
 */
class ResponseHead {
  #bytes = 0;
  #complete = true;
  /** The status line as far as it decides: of the final response, or of the interim one that is being read. */
  #status = "";
  /** The last bytes of an interim response. */
  #end = "";

  /** Must be called before anything else listens to the socket. */
  watch(socket: Socket): void {
    this.#complete = true;
    // The bytes before this chunk did not complete the head; this chunk may, and may contain part of the body.
    socket.on("readable", () => {
      if (this.#complete) return;
      if (this.#bytes > responseHeadBytesMax) socket.destroy(tooLong());
      this.#bytes += socket.readableLength;
    });
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      const chunk: Buffer | null = read(size);
      if (chunk !== null && !this.#complete) this.#acceptContinue(chunk);
      return chunk;
    };
  }

  begin(): void {
    this.#bytes = 0;
    this.#complete = false;
    this.#status = "";
    this.#end = "";
  }

  complete(): void {
    this.#complete = true;
  }

  /** A chunk may end anywhere, and contain several responses. */
  #acceptContinue(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#status.length < statusBytes) {
        const isContinue = this.#status === "HTTP/1.1 10" && chunk[at] === digits.zero;
        if (isContinue) chunk[at] = digits.two;
        this.#status += String.fromCharCode(chunk[at] ?? 0);
      } else if (this.#status[statusBytes - 3] !== "1") return;
      else {
        this.#end = this.#end.slice(-3) + String.fromCharCode(chunk[at] ?? 0);
        if (this.#end === "\r\n\r\n") this.#status = "";
      }
    }
  }
}

function tooLong(): TransportFailure {
  return new TransportFailure("bad_response", `The answer's head is longer than ${responseHeadBytesMax / 1_024} KiB.`);
}

/** Bytes kept of a response that is not 2xx. */
export const answerBytesKept = 4 * 1_024;
/** Bytes read of any response body, to reuse the connection; a longer one is cut off with its connection. */
const bodyBytesMax = 64 * 1_024;
/** The status line has decided by then: no body occupies its slot longer than this. */
const bodyWaitMs = 1_000;

/**
 * Interim responses before the final one; one is usual. Measured: endless ones used half a processor until the
 * attempt's end.
 */
const interimAnswersMax = 16;

export interface CallbackResponse {
  readonly httpStatus: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer | null;
}

/**
 * One request over one connection, from its first byte to the end of its response. It calls one of its callbacks, once.
 */
export class HttpExchange implements Dispatcher.DispatchHandler {
  /** Part of the response was received. */
  answerBegan = false;
  /** The connection had received a response before. */
  reused = false;
  /** The request was written. */
  sent = false;
  readonly #connection: Connection;
  readonly #answered: (answer: CallbackResponse, reusable: boolean) => void;
  readonly #failed: (error: Error) => void;
  #interimAnswers = 0;
  #httpStatus = 0;
  #retryAfter: string | undefined;
  #kept: Buffer[] = [];
  #bytes = 0;
  #bodyTimer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(
    connection: Connection,
    answered: (answer: CallbackResponse, reusable: boolean) => void,
    failed: (error: Error) => void,
  ) {
    this.#connection = connection;
    this.#answered = answered;
    this.#failed = failed;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // A socket that was used before gets its request a turn of the event loop later, in which the process may stall.
    if (!this.#connection.mayWrite()) {
      controller.abort(new WriteForbidden());
      return;
    }
    this.sent = true;
    this.#connection.head.begin();
    this.reused = this.#connection.answers > 0;
  }

  onResponseStarted(): void {
    this.answerBegan = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    httpStatus: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Interim responses such as 103.
    if (httpStatus < 200) {
      this.#interimAnswers += 1;
      const detail = `Over ${interimAnswersMax} answers of status 1xx came before any other.`;
      if (this.#interimAnswers > interimAnswersMax) controller.abort(new TransportFailure("bad_response", detail));
      return;
    }
    this.#connection.head.complete();
    this.#httpStatus = httpStatus;
    // A proxy may add its own to the server's.
    this.#retryAfter = [headers["retry-after"]].flat()[0];
    const hasBody = httpStatus !== 204 && headers["content-length"] !== "0";
    if (hasBody) this.#bodyTimer = setTimeout(() => this.#end(false), bodyWaitMs);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    const room = answerBytesKept - this.#bytes;
    // Copied, because a slice would keep the whole chunk in memory.
    if (room > 0 && this.#httpStatus >= 300) this.#kept.push(Buffer.from(chunk.subarray(0, room)));
    this.#bytes += chunk.length;
    if (this.#bytes > bodyBytesMax) this.#end(false);
  }

  onResponseEnd(): void {
    this.#connection.answers += 1;
    this.#end(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    // The status line decides; a failure in the body changes nothing.
    if (this.#httpStatus !== 0) this.#end(false);
    else if (!this.#over) {
      this.#over = true;
      this.#failed(error);
    }
  }

  /**
   * The attempt's time is over. The status decides where it is known; otherwise no callback is called any more.
   *
   * @returns whether the status is known
   */
  endAtDeadline(): boolean {
    const isAnswered = this.#httpStatus !== 0;
    if (isAnswered) this.#end(false);
    else this.#over = true;
    return isAnswered;
  }

  #end(reusable: boolean): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#bodyTimer);
    const body = this.#httpStatus >= 300 ? Buffer.concat(this.#kept) : null;
    this.#answered({ httpStatus: this.#httpStatus, retryAfter: this.#retryAfter, body }, reusable);
  }
}
