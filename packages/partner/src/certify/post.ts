import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { rootCertificates } from "node:tls";

/** One request to an endpoint. */
export interface HttpPost {
  readonly method: "POST" | "GET";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The string that its IPN's own signature covers, where it has an IPN. */
  readonly signedString?: string;
  /** `slow`: in many pieces. `cut`: half of it, then the connection ends. Default: at once. */
  readonly pace?: "slow" | "cut";
}

/** The result of one post. */
export type RequestResult = ResponseReceived | NoResponse;

export interface ResponseReceived {
  readonly status: number;
  readonly ms: number;
  /** The first 4 KiB. */
  readonly body: Buffer;
  readonly headers: IncomingMessage["headers"];
  /** The response arrived before the last part of the body was sent. */
  readonly early: boolean;
}

export interface NoResponse {
  /**
   * `no_connection`: nothing listens there. `no_tls`: the port does not use TLS. `certificate_expired`,
   * `certificate_name`: it has expired, or is another host's. `tls`: it is not trusted, or the handshake fails.
   * `timeout`: no response in time. `reset`: the connection was closed. `bad_response`: it is not HTTP.
   */
  readonly failure:
    | "no_connection"
    | "no_tls"
    | "certificate_expired"
    | "certificate_name"
    | "tls"
    | "timeout"
    | "reset"
    | "bad_response";
  readonly detail: string;
  readonly ms: number;
}

export interface PostOptions {
  /** A certificate to trust in addition to the well-known authorities, in PEM. */
  readonly ca?: string | undefined;
  /** From the moment the body is whole. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  /** A slow body's pieces, and the time between two of them. */
  readonly pieces: number;
  readonly gapMs: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * Opens the connection, TLS included, by rules of the caller's own; `ca` and `connectTimeoutMs` are its own then.
   * Rejects with a ConnectionFailed.
   */
  readonly connect?: ((url: URL) => Promise<Socket>) | undefined;
}

/** Why a connection could not be opened, or got no answer in time. */
export class ConnectionFailed extends Error {
  readonly failure: NoResponse["failure"];

  constructor(failure: NoResponse["failure"], detail: string) {
    super(detail);
    this.failure = failure;
  }
}

/** As long as the service waits for a response. */
export const postDefaults = { timeoutMs: 15_000, connectTimeoutMs: 5_000, pieces: 20, gapMs: 100 } as const;

const answerBytesKept = 4 * 1_024;
/** The status line has decided: what becomes of the body after it is not waited for longer. */
const bodyWaitMs = 1_000;
/** For an endpoint to see that a connection ended. */
const cutWaitMs = 1_000;

/**
 * One request with exactly these headers, over a new connection. A failure is a result: it rejects only if the signal
 * aborts.
 */
export async function post(url: URL, sent: HttpPost, options: PostOptions): Promise<RequestResult> {
  options.signal?.throwIfAborted();
  const body = Buffer.from(sent.body);
  const startedMs = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startedMs);
  const socket = await options.connect?.(url).catch((error: unknown) => {
    if (error instanceof ConnectionFailed) return error;
    throw error;
  });
  if (socket instanceof ConnectionFailed) return { failure: socket.failure, detail: socket.message, ms: elapsedMs() };
  const request = socket === undefined ? open(url, sent, body, options) : openOver(socket, url, sent, body);
  // Once there is a response, sending the rest of the body may fail.
  request.on("error", () => undefined);
  const limits: NodeJS.Timeout[] = [];
  const limit = (ms: number, failed: () => readonly [NoResponse["failure"], string]) => {
    const end = () => {
      const [failure, what] = failed();
      request.destroy(new ConnectionFailed(failure, `${what} within ${ms / 1_000} s`));
    };
    limits.push(setTimeout(end, ms));
  };
  let reached: Reached = socket === undefined ? "nothing" : "server";
  if (reached === "nothing") {
    limit(options.connectTimeoutMs, () =>
      reached === "nothing" ? ["no_connection", "no connection"] : ["no_tls", `${noHandshake} answered no TLS`],
    );
  }
  request.once("socket", (opening) => {
    const secure = url.protocol === "https:";
    opening.once("connect", () => {
      reached = secure ? "port" : "server";
      if (!secure) clearTimeout(limits[0]);
    });
    opening.once("secureConnect", () => {
      reached = "server";
      clearTimeout(limits[0]);
    });
  });
  let whole = false;
  const came = headOf(request).then(
    async (message): Promise<RequestResult> => {
      const head = { status: message.statusCode ?? 0, ms: elapsedMs(), headers: message.headers, early: !whole };
      return { ...head, body: await startOf(message) };
    },
    (error: unknown): RequestResult => ({ ...failureOf(error, reached), ms: elapsedMs() }),
  );
  try {
    await send(request, sent, body, came, options);
    whole = true;
    limit(sent.pace === "cut" ? cutWaitMs : options.timeoutMs, () => ["timeout", "no answer"]);
    return await came;
  } finally {
    for (const timer of limits) clearTimeout(timer);
    request.destroy();
    options.signal?.throwIfAborted();
  }
}

/** Over a connection that is open, and ends with this request. */
function openOver(socket: Socket, url: URL, sent: HttpPost, body: Buffer): ClientRequest {
  return requestHttp({
    method: sent.method,
    path: `${url.pathname}${url.search}`,
    headers: { ...headersOf(sent, body), host: url.host, connection: "close" },
    createConnection: () => socket,
  });
}

function headersOf({ method, headers }: HttpPost, body: Buffer): Readonly<Record<string, string | number>> {
  return method === "GET" ? headers : { ...headers, "content-length": body.length };
}

function open(url: URL, sent: HttpPost, body: Buffer, { ca, signal }: PostOptions): ClientRequest {
  const trusted = ca === undefined ? {} : { ca: [...rootCertificates, ca] };
  const given = {
    method: sent.method,
    headers: headersOf(sent, body),
    agent: false as const,
    ...(signal === undefined ? {} : { signal }),
  };
  if (url.protocol === "http:") return requestHttp(url, given);
  return requestHttps(url, { ...given, ...trusted, minVersion: "TLSv1.2" });
}

async function send(
  request: ClientRequest,
  { pace }: HttpPost,
  body: Buffer,
  came: Promise<RequestResult>,
  options: PostOptions,
): Promise<void> {
  if (pace === "slow") return trickle(request, body, came, options);
  if (pace === undefined) return void request.end(body);
  // Half closed: when the endpoint closes too, it has seen the end, and handled it.
  request.write(body.subarray(0, body.length / 2), () => request.socket?.end());
}

/** In parts, with pauses. A server that responds before the last one has not seen the whole body. */
async function trickle(
  request: ClientRequest,
  body: Buffer,
  came: Promise<RequestResult>,
  { pieces, gapMs }: PostOptions,
): Promise<void> {
  const answered = new AbortController();
  const stop = () => answered.abort();
  came.then(stop, stop);
  const size = Math.ceil(body.length / pieces);
  for (let at = 0; at < body.length; at += size) {
    if (at > 0) await pause(gapMs, undefined, { signal: answered.signal }).catch(() => undefined);
    if (answered.signal.aborted) return;
    request.write(body.subarray(at, at + size));
  }
  request.end();
}

async function headOf(request: ClientRequest): Promise<IncomingMessage> {
  const [message] = (await once(request, "response")) as [IncomingMessage];
  return message;
}

/** The part of the body that arrives in time, up to the limit. */
function startOf(message: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = setTimeout(end, bodyWaitMs);
    message.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= answerBytesKept) end();
    });
    message.once("close", end);
    message.on("error", end);

    function end(): void {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).subarray(0, answerBytesKept));
    }
  });
}

const nobodyThere = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);

/** The farthest that a request came: no TCP connection; TCP without TLS; a connection over which it is sent. */
type Reached = "nothing" | "port" | "server";

const noHandshake = "the port accepted the connection, and";
const noTls = ["no_tls", "the port speaks no TLS"] as const;
const unknownIssuer = ["tls", "the certificate's issuer is not known"] as const;

/** By Node's codes, because its own messages advise the operator of Node. */
const tlsFailures: Readonly<Record<string, readonly [NoResponse["failure"], string]>> = {
  CERT_HAS_EXPIRED: ["certificate_expired", "the certificate, or one of its chain, has expired"],
  CERT_NOT_YET_VALID: ["certificate_expired", "the certificate is not valid yet"],
  ERR_TLS_CERT_ALTNAME_INVALID: ["certificate_name", "the certificate is for another host"],
  DEPTH_ZERO_SELF_SIGNED_CERT: ["tls", "the certificate is self-signed, and not trusted"],
  SELF_SIGNED_CERT_IN_CHAIN: ["tls", "the certificate's authority is not trusted"],
  UNABLE_TO_GET_ISSUER_CERT: unknownIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownIssuer,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownIssuer,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_HTTP_REQUEST: noTls,
};

function failureOf(error: unknown, reached: Reached): Pick<NoResponse, "failure" | "detail"> {
  if (error instanceof ConnectionFailed) return { failure: error.failure, detail: error.message };
  // For an attempt at several addresses, the first failure is reported.
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const { code: given = "", message = String(first) } = Object(first) as { code?: string; message?: string };
  const code = given === "EPROTO" ? codeInWords(message) : given;
  const ofTls = tlsFailures[code];
  if (ofTls !== undefined) return { failure: ofTls[0], detail: `${ofTls[1]} (${code})` };
  // OpenSSL's own words quote its source lines.
  if (code.startsWith("ERR_SSL_") || code === "EPROTO")
    return { failure: "tls", detail: `the TLS handshake failed (${code})` };
  const words = message.length > 200 ? `${message.slice(0, 200)}…` : message;
  const detail = code === "" || words.includes(code) ? words : `${words} (${code})`;
  if (nobodyThere.has(code)) return { failure: "no_connection", detail };
  if (reached === "port" && code === "ECONNRESET") {
    return { failure: "no_tls", detail: `${noHandshake} closed it when TLS began` };
  }
  if (reached !== "server") return { failure: code === "ECONNRESET" ? "no_connection" : "tls", detail };
  return { failure: code.startsWith("HPE_") ? "bad_response" : "reset", detail };
}

/** If a handshake fails while it is written to, Node reports OpenSSL's line: `…:SSL routines:<where>:<reason>:…` */
function codeInWords(message: string): string {
  const [, reason] = /SSL routines:[^:]*:([^:]+):/.exec(message) ?? [];
  return reason === undefined ? "EPROTO" : `ERR_SSL_${reason.toUpperCase().replaceAll(/[ /]/g, "_")}`;
}
