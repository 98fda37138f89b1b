import { Readable } from "node:stream";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { jsonIn } from "../shell/files.ts";
import { printable } from "../shell/output.ts";
import { definedOf } from "./credentials.ts";

/** Longer than the service waits for an acquirer before it answers 202. */
const answerTimeoutMs = 90_000;

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface How {
  /** Aborts the call. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/** Calls to one service. Every one that is not answered 2xx throws a Failure with the service's own words. */
export interface Api {
  readonly baseUrl: string;
  get<Answer>(path: string, query?: Query, how?: How): Promise<Answer>;
  post<Answer>(path: string, body?: object, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  put<Answer>(path: string, body: object): Promise<Answer>;
  patch<Answer>(path: string, body: object): Promise<Answer>;
  delete<Answer>(path: string): Promise<Answer>;
  /** The body as it comes, for what may be long. */
  stream(path: string, query?: Query, headers?: Readonly<Record<string, string>>): Promise<AsyncIterable<Uint8Array>>;
  /** Sends a file as it is read. It may take as long as it needs. */
  upload<Answer>(path: string, query: Query, bytes: Readable): Promise<Answer>;
  /** Resolves with any status: for /readyz, whose 503 lists what is not ready. */
  look(path: string): Promise<{ readonly status: number; readonly text: string }>;
}

interface Call extends How {
  /** A stream is sent as it is read. */
  readonly body?: object | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A bearer token. */
export interface Key {
  readonly text: string;
  /** The kind of key and its source, as in "the API key in PAYBELL_API_KEY". */
  readonly name: string;
  /** The command that makes another. */
  readonly maker: string;
}

/** @param key is sent to `baseUrl` and nowhere else */
export function api(context: CommandContext, baseUrl: string, key?: Key): Api {
  async function call(method: string, path: string, { timeoutMs = answerTimeoutMs, signal, ...request }: Call = {}) {
    const signals = [AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])];
    const response = await send(method, path, { ...request, signal: AbortSignal.any(signals) });
    try {
      return { status: response.status, text: await response.text() };
    } catch (error) {
      throw unreachable(baseUrl, error, method);
    }
  }

  function send(method: string, path: string, { body, headers, signal }: Omit<Call, "timeoutMs">): Promise<Response> {
    const signals = [context.signal, ...(signal === undefined ? [] : [signal])];
    const isStream = body instanceof Readable;
    const sent = isStream ? (Readable.toWeb(body) as ReadableStream<Uint8Array>) : JSON.stringify(body);
    return context
      .fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          accept: "application/json",
          ...(key !== undefined && { authorization: `Bearer ${key.text}` }),
          ...(body !== undefined && { "content-type": isStream ? "application/octet-stream" : "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: sent }),
        ...(isStream && { duplex: "half" }),
        redirect: "manual",
        signal: AbortSignal.any(signals),
      })
      .catch((error: unknown) => {
        throw unreachable(baseUrl, error, method);
      });
  }

  const stream: Api["stream"] = async (path, query = {}, headers = {}) => {
    const response = await send("GET", `${path}${queryText(query)}`, { headers });
    if (!response.ok) throw refused({ baseUrl, method: "GET", path, key }, response.status, await response.text());
    if (response.body === null) throw noPaybell(baseUrl, response.status);
    return wholeBody(baseUrl, response.body);
  };

  async function upload<Answer>(path: string, query: Query, bytes: Readable): Promise<Answer> {
    const response = await send("POST", `${path}${queryText(query)}`, { body: bytes });
    return answered("POST", path, response.status, await response.text());
  }

  async function answer<Answer>(...request: Parameters<typeof call>): Promise<Answer> {
    const { status, text } = await call(...request);
    return answered(request[0], request[1], status, text);
  }

  function answered<Answer>(method: string, path: string, status: number, text: string): Answer {
    if (status < 200 || status > 299) throw refused({ baseUrl, method, path, key }, status, text);
    const value = parse(text);
    if (value === undefined) throw noPaybell(baseUrl, status);
    return value as Answer;
  }

  return {
    baseUrl,
    get: (path, query = {}, how = {}) => answer("GET", `${path}${queryText(query)}`, how),
    post: (path, body, headers) => answer("POST", path, { ...(body && { body }), ...(headers && { headers }) }),
    put: (path, body) => answer("PUT", path, { body }),
    patch: (path, body) => answer("PATCH", path, { body }),
    delete: (path) => answer("DELETE", path),
    stream,
    upload,
    look: (path) => call("GET", path),
  };
}

async function* wholeBody(baseUrl: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch {
    throw new Failure(`${baseUrl} ended its answer early.`, {
      code: "incomplete_answer",
      exitCode: exitCodes.service,
      remedy: "Is the service running? Then try again.",
    });
  }
}

function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function parse(text: string): object | undefined {
  const value = jsonIn(text);
  return typeof value === "object" && value !== null ? value : undefined;
}

interface Problem {
  readonly code?: unknown;
  readonly title?: unknown;
  readonly detail?: unknown;
  readonly remedy?: unknown;
  readonly errors?: readonly { readonly message?: unknown }[];
}

interface Asked {
  readonly baseUrl: string;
  readonly method: string;
  readonly path: string;
  readonly key: Key | undefined;
}

const regular = /^(partner|terminal|acquirer|operator|proposal|transaction|settlement|reversal|event|api-key)s$/;
const irregular: Readonly<Record<string, string>> = {
  notifications: "notifications list",
  redeliveries: "notifications list",
  batches: "batch list",
  "clearing-files": "clearing files",
  "clearing-exceptions": "clearing exceptions",
};

/** The command that lists what a part of a path names. */
function listerOf(part: string): string | undefined {
  const noun = regular.exec(part)?.[1];
  return noun === undefined ? irregular[part] : `${noun} list`;
}

/** The next command for an error whose own remedy speaks of the API. */
const nextCommands: Readonly<Record<string, string>> = {
  unknown_partner: "`paybell partner list` lists them.",
  role_not_allowed: "An admin makes a token with another role: `paybell operator add <name> --role <role>`.",
  invalid_cursor: "The last line of `paybell notifications list --as partner` has one; without --after it begins anew.",
  second_admin_required: "Run it again with --propose; another admin then runs `paybell proposal confirm`.",
  partner_disabled: "The operator lets it call again: `paybell partner resume`.",
  terminal_not_registered: "The operator registers it: `paybell terminal set`.",
  no_acquirer: "The operator registers one: `paybell acquirer add`.",
};

function nextCommand(code: string, path: string): string | undefined {
  const lister = path
    .split(/[/?]/)
    .flatMap((part) => listerOf(part) ?? [])
    .at(-1);
  if (code !== "not_found" || lister === undefined) return nextCommands[code];
  return `\`paybell ${lister}\` lists what there is.`;
}

/** RFC 9457, as Paybell answers every error. */
function refused({ baseUrl, method, path, key }: Asked, status: number, text: string): Failure {
  const { code, title, detail, remedy, errors = [] }: Problem = parse(text) ?? {};
  if (typeof code !== "string" || typeof detail !== "string") return noPaybell(baseUrl, status, method);
  if (code === "unauthorized" && key !== undefined) {
    return new Failure(`${baseUrl} does not know ${key.name}.`, {
      code,
      status,
      exitCode: exitCodes.service,
      // The service distinguishes an API key from an operator's token, and says which one it got.
      remedy:
        detail === title
          ? `Is it for this service, complete, and not replaced since? \`paybell ${key.maker}\` makes a new one.`
          : printable(detail),
    });
  }
  const lines = errors.map(({ message }) => printable(String(message))).filter((line) => line !== detail);
  // Some of the service's titles are not sentences.
  return new Failure(printable(/[.!?]$/.test(detail) ? detail : `${detail}.`), {
    code,
    status,
    exitCode: exitCodes.service,
    lines,
    ...definedOf({ remedy: nextCommand(code, path) ?? (typeof remedy === "string" ? printable(remedy) : undefined) }),
  });
}

/** A proxy without an answer, or a connection that ended, may have carried it out. */
const isUnknown = "It is not known whether the change was made: check before you try again.";

export function noPaybell(baseUrl: string, status: number, method = "GET"): Failure {
  return new Failure(`${baseUrl} answered ${status}, and not as Paybell does.`, {
    code: "not_paybell",
    status,
    exitCode: exitCodes.service,
    remedy:
      method !== "GET" && status >= 500
        ? isUnknown
        : "Is the URL right? It is the service's own, without a path, not that of your callback.",
  });
}

const cutCodes = ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"];

function unreachable(baseUrl: string, error: unknown, method: string): Failure {
  const { cause = error } = Object(error) as { cause?: unknown };
  const { code, message } = Object(cause) as { code?: unknown; message?: unknown };
  const timedOut = error instanceof Error && error.name === "TimeoutError";
  const why = timedOut ? " (no answer in time)" : whyText(String(code ?? message ?? error));
  return new Failure(`${baseUrl} cannot be reached${why}.`, {
    code: "unreachable",
    exitCode: exitCodes.service,
    remedy:
      method !== "GET" && (timedOut || cutCodes.includes(String(code)))
        ? isUnknown
        : "Is the service running, and is this its URL? `paybell sandbox` starts one; --url names another.",
  });
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no such host",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS: is it http://?",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not speak TLS: is it http://?",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
  UND_ERR_SOCKET: "the connection was cut: is it https://?",
  "bad port": "fetch refuses this port, which belongs to another protocol",
};
const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/;

/** The reason of a failed fetch, in words, and by its code. */
function whyText(why: string): string {
  const untrusted = certificateCodes.test(why) ? "name its certificate authority in NODE_EXTRA_CA_CERTS" : undefined;
  const words = reasons[why] ?? untrusted;
  return words === undefined ? ` (${why})` : `: ${words} (${why})`;
}
