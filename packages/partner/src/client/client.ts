import { parseJson } from "@paybell/contract/receiving";
import { checkNames, Misused, PaybellError } from "../errors/misused.ts";
import { checkOption, type OptionRule, refusePromise } from "../errors/option-checks.ts";
import { type ErrorCode, operations, type PartnerApi, type Problem } from "./api.ts";

/** Failures that the client detects itself, when the service did not answer with a problem. */
export type ClientErrorCode =
  /** The connection failed: it is not known whether the call arrived. */
  | "no_answer"
  /** No answer within timeoutMs: it is not known whether the call was processed. */
  | "timeout"
  /** The answer did not come from Paybell, but from a proxy or another server at this baseUrl. */
  | "not_paybell";

/** A call that failed. Branch on `code`. */
export class ApiError extends PaybellError {
  readonly code: ErrorCode | ClientErrorCode;
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /** The remedy. */
  readonly remedy: string;
  /** The problem as answered, with every invalid field in `errors`. */
  readonly problem: Problem | undefined;
  /** When to try again, if the answer said so. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ErrorCode | ClientErrorCode,
    message: string,
    remedy: string,
    more: { status?: number; problem?: Problem; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.remedy = remedy;
    this.problem = more.problem;
    this.retryAfterMs = more.retryAfterMs;
  }

  override get name(): string {
    return "ApiError";
  }
}

export interface ClientOptions {
  /** The URL of the service: https://…; http:// only for localhost. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Timeout of each try; default 45,000, because a command waits 30 s for its acquirer. */
  readonly timeoutMs?: number;
  /** Retries after the first try; default 3. */
  readonly retriesMax?: number;
  /** The client does not wait for a longer Retry-After; default 30,000. */
  readonly retryAfterMsMax?: number;
  /** Default: the global fetch. */
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  /** Aborts the call with its reason. */
  readonly signal?: AbortSignal;
  /** Timeout of each try, overriding the client's. */
  readonly timeoutMs?: number;
  /** For a command: the service answers INIT at once, and the outcome arrives as an IPN. */
  readonly respondAsync?: boolean;
}

/** The partner API. A call rejects with an ApiError, or with Misused if the call itself is invalid. */
export type Client = PartnerApi<CallOptions>;

/**
 * Creates a client of the partner API. It repeats a call that Paybell answered 429 or 503, honouring Retry-After,
 * because nothing was accepted then. It repeats a call without an answer of Paybell's if that is safe: reads, and
 * commands, because their reqId makes the repetition the same command.
 *
 * @throws Misused naming the option and the remedy, never the API key
 */
export function client(options: ClientOptions): Client {
  if (Object(options) !== options) throw new Misused("no_options", "client()");
  refusePromise("What was given to client()", options);
  checkNames("", options, clientOptionNames);
  for (const [name, value] of Object.entries(options)) refusePromise(name, value);
  checkNumbers(options);
  const baseUrl = checkedBaseUrl(options.baseUrl);
  const apiKey = checkedApiKey(options.apiKey);
  const calls = Object.entries(operations).map(([name, [method = "", path = "", takes]]) => {
    const isRepeatable = method === "GET" || name === "runCommand";
    const call = async (...given: unknown[]) => {
      for (const one of given) refusePromise(`What was given to ${name}()`, one);
      const url = new URL(baseUrl + path.replace(/{\w+}/, () => encodeURIComponent(checkedId(given.shift()))));
      const input = takes === undefined ? undefined : given.shift();
      if (input !== undefined || name === "runCommand") checkOption(`What was given to ${name}()`, input, fields);
      const callOptions = (given.shift() ?? {}) as CallOptions;
      checkNames(`${name}()'s option `, callOptions, callOptionNames);
      const { respondAsync, timeoutMs = options.timeoutMs, signal } = callOptions;
      checkNumbers({ timeoutMs });
      if (takes === "query") addQuery(url, input);
      const headers: Record<string, string> = { accept: "application/json", authorization: `Bearer ${apiKey}` };
      if (respondAsync === true) headers["prefer"] = "respond-async";
      const init: RequestInit = { method, headers, redirect: "manual" };
      if (takes === "body" && input !== undefined) {
        headers["content-type"] = "application/json";
        init.body = written(name, input);
      }
      const how = { ...options, timeoutMs, signal };
      return await repeat(() => ask(url, init, how), isRepeatable, how);
    };
    return [name, call];
  });
  return Object.fromEntries(calls) as Client;
}

const clientOptionNames = [
  "baseUrl",
  "apiKey",
  "timeoutMs",
  "retriesMax",
  "retryAfterMsMax",
  "fetch",
] as const satisfies readonly (keyof ClientOptions)[];
const callOptionNames = ["signal", "timeoutMs", "respondAsync"] as const satisfies readonly (keyof CallOptions)[];

const fields: OptionRule = {
  allows: (value) => Object(value) === value && !Array.isArray(value),
  remedy: "Give an object of its fields: { … }.",
};

/** JSON has no BigInt, and nothing that contains itself. */
function written(name: string, input: unknown): string {
  try {
    return JSON.stringify(input);
  } catch (error) {
    const [why] = String((error as Error).message).split("\n");
    throw wrong(`What was given to ${name}()`, `is not JSON: ${why}`, "Give text, lists and objects.");
  }
}

interface How extends Omit<ClientOptions, "timeoutMs"> {
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The longest wait of the client's own choice. */
const backoffMsMax = 30_000;

async function repeat(ask: () => Promise<unknown>, isRepeatable: boolean, how: How): Promise<unknown> {
  const { retriesMax = 3, retryAfterMsMax = 30_000, signal } = how;
  /** What it did is not known, whatever refuses a later try for now. */
  let unclear: ApiError | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, problem, retryAfterMs = 0 } = error;
      const isTransient = [0, 429, 502, 503, 504].includes(status);
      // Before the call was looked at; a proxy's does not say whether it arrived.
      const isRefused = problem !== undefined && [401, 403, 408, 429, 503].includes(status);
      if (!isRefused) unclear = error;
      const isOver = tries >= retriesMax || retryAfterMs > retryAfterMsMax;
      if (isOver || !isTransient || !(isRefused || isRepeatable)) throw unclear ?? error;
      // Exponential, with jitter, so that calls refused at the same moment do not come back together.
      const backoffMs = Math.min(200 * 2 ** tries, backoffMsMax) * (0.5 + Math.random());
      await wait(error.retryAfterMs ?? backoffMs, signal);
    }
  }
}

async function ask(url: URL, init: RequestInit, how: How): Promise<unknown> {
  const { timeoutMs = 45_000, signal } = how;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signals = signal === undefined ? [timeout] : [timeout, signal];
  try {
    const response = await (how.fetch ?? fetch)(url, { ...init, signal: AbortSignal.any(signals) });
    const text = await response.text();
    return readAnswer(response, text);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    signal?.throwIfAborted();
    const remedy = "Repeat a command under the same reqId: it is the same command.";
    if (timeout.aborted) throw new ApiError("timeout", `No answer within ${timeoutMs} ms.`, remedy, { cause: error });
    throw new ApiError("no_answer", "The connection failed.", `Is baseUrl right? ${remedy}`, { cause: error });
  }
}

function readAnswer({ ok, status, headers }: Response, text: string): unknown {
  const body = readJson(text);
  if (ok && body !== undefined) return body;
  const retryAfterMs = readRetryAfter(headers.get("retry-after"));
  const problem = Object(body) as Partial<Problem>;
  // Gateways have codes too, and theirs do not say that nothing was accepted.
  if (problem.type === `urn:paybell:error:${problem.code}`) {
    const { code, detail, remedy = "" } = problem as Problem & { code: ApiError["code"] };
    throw new ApiError(code, `${code}: ${detail}`, remedy, { status, problem: problem as Problem, retryAfterMs });
  }
  const message = `HTTP ${status} without an answer of Paybell's.`;
  throw new ApiError("not_paybell", message, "Is baseUrl right, and does no proxy answer in between?", {
    status,
    retryAfterMs,
  });
}

function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Seconds, or an HTTP date. */
function readRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

function addQuery(url: URL, query: unknown): void {
  for (const [name, value] of Object.entries(Object(query) as Record<string, unknown>)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
}

/** An empty id would request the list, and a URL resolves the others. */
function checkedId(id: unknown): string {
  if (typeof id === "string" && !["", ".", ".."].includes(id)) return id;
  throw new Misused("no_id", "The id", { meaning: "identifies nothing" });
}

function checkedBaseUrl(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) throw wrong("baseUrl", "is no URL", "Give https://… as the operator named it.");
  const { protocol, hostname, origin, pathname } = new URL(baseUrl);
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
  if (protocol === "https:" || (protocol === "http:" && isHere)) return origin + pathname.replace(/(?<!\/)\/+$/, "");
  throw wrong("baseUrl", "is not https://: the API key would be sent in the clear", "http:// is for localhost alone.");
}

function checkedApiKey(apiKey: string): string {
  if (/^pb_[A-Za-z0-9_-]+$/.test(apiKey)) return apiKey;
  throw wrong("apiKey", "is not an API key", "Pass the string that begins with pb_, as registration showed it.");
}

/** A timer with a longer time fires at once. */
const numberMax = 2 ** 31 - 1;

/** The minimum of each number. */
const numbersMin = { timeoutMs: 1, retriesMax: 0, retryAfterMsMax: 0 } as const;

function checkNumbers(given: Partial<Record<keyof typeof numbersMin, number | undefined>>): void {
  for (const [name, min] of Object.entries(numbersMin)) {
    const value = given[name as keyof typeof numbersMin];
    if (value === undefined || (value >= min && value <= numberMax && Number.isInteger(value))) continue;
    throw wrong(name, "is not a valid number", `Pass a whole number from ${min} to ${numberMax}.`);
  }
}

function wrong(option: string, meaning: string, remedy: string): Misused {
  return new Misused("wrong_option", option, { meaning, remedy });
}
