import { checkNames, Misused, PaybellError } from "../errors/misused.ts";
import { IpnRefused } from "../errors/refused.ts";
import type { RequestHeaders } from "../receiver/headers.ts";
import type { ReceivedIpn, Receiver } from "../receiver/receiver.ts";

/**
 * Your function for an authentic IPN. It is answered 2xx after that returned or its promise was fulfilled; if it
 * throws, 500, and it comes again. Deduplicate by `ipn.id`.
 */
export type OnIpn = (received: ReceivedIpn) => unknown;

export interface HandlerOptions {
  /**
   * Called for every POST not answered 2xx. Default: a process warning, on stderr.
   */
  readonly log?: (message: string, error: unknown) => void;
}

/** A request, independent of the server framework. */
export interface HandlerRequest {
  readonly method: string;
  readonly headers: RequestHeaders;
  /** The address of the peer, if known. */
  readonly remoteAddress: string | undefined;
  /** Reads at most bodyBytesMax. Rejects if the sender disconnected. */
  readonly readBody: () => Promise<BodyRead>;
  /** The setting to change if something read the body before: whole sentences. */
  readonly alreadyReadRemedy: string;
}

export type BodyRead = { readonly body: Uint8Array | string } | { readonly failed: "too_large" | "already_read" };

export interface HandlerResponse {
  readonly status: 204 | 400 | 405 | 413 | 500;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const accepted: HandlerResponse = { status: 204, headers: {}, body: "" };
const notAuthentic = problem(400, "not_authentic");
const methodNotAllowed = problem(405, "method_not_allowed", { allow: "POST" });
const tooLarge = problem(413, "too_large");
const bodyAlreadyRead = problem(500, "body_already_read");
const notProcessed = problem(500, "not_processed");

function problem(
  status: HandlerResponse["status"],
  error: string,
  headers: Record<string, string> = {},
): HandlerResponse {
  return { status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify({ error }) };
}

type Log = NonNullable<HandlerOptions["log"]>;

/**
 * Answers a request. Rejects only if the sender disconnected within the body.
 */
export async function respond(
  exchange: HandlerRequest,
  receiver: Receiver,
  onIpn: OnIpn,
  { log = warn }: HandlerOptions,
): Promise<HandlerResponse> {
  if (exchange.method !== "POST") return methodNotAllowed;
  const read = await exchange.readBody();
  if ("body" in read) return deliver(read.body, exchange, receiver, onIpn, log);
  if (read.failed === "too_large") return refuse(new IpnRefused("too_large"), log);
  const misused = new Misused("body_already_read", "", { remedy: exchange.alreadyReadRemedy });
  writeLog(log, `IPN not received: ${misused.message}`, misused);
  return bodyAlreadyRead;
}

async function deliver(
  body: Uint8Array | string,
  { headers, remoteAddress }: HandlerRequest,
  receiver: Receiver,
  onIpn: OnIpn,
  log: Log,
): Promise<HandlerResponse> {
  let received: ReceivedIpn;
  try {
    received = receiver.open(body, headers, remoteAddress);
  } catch (error) {
    if (error instanceof IpnRefused) return refuse(error, log);
    writeLog(log, "IPN not processed: opening it failed.", error);
    return notProcessed;
  }
  try {
    const result = await onIpn(received);
    if (typeof result === "function")
      throw new Misused("no_function", "", { meaning: "Your function gave back one that nobody calls" });
    return accepted;
  } catch (error) {
    writeLog(log, `IPN ${received.ipn.id} not processed: your function threw; it will be delivered again.`, error);
    return notProcessed;
  }
}

function refuse(refused: IpnRefused, log: Log): HandlerResponse {
  writeLog(log, `IPN refused (${refused.reason}): ${refused.hint}`, refused);
  // The length is not secret from its sender, and an honest sender needs to know that it is the cause.
  return refused.reason === "too_large" ? tooLarge : notAuthentic;
}

/**
 * A log function that throws must not leave the request without a response. If it returns a promise, its rejection must
 * not end the process.
 */
function writeLog(log: Log, message: string, error: unknown): void {
  try {
    Promise.resolve(log(message, error)).catch(() => undefined);
  } catch {
    // There is no other place to report it.
  }
}

function warn(message: string, error: unknown): void {
  // The library's own errors are in the message. An error of your function is reported only here.
  const detail = error instanceof PaybellError ? "" : String((error as Error | undefined)?.stack ?? error);
  const { process } = globalThis as { process?: { emitWarning?: NodeJS.Process["emitWarning"] } };
  process?.emitWarning?.(message, { type: "PaybellWarning", detail });
}

/** Refuses, at creation, a handler that could only fail. */
export function checkHandler(
  receiver: Receiver,
  onIpn: OnIpn,
  options: object,
  known: readonly string[] = ["log"],
): void {
  if (receiver instanceof Promise) throw new Misused("missing_await", "The handler's first argument");
  if (typeof (receiver as Partial<Receiver> | undefined)?.open !== "function") throw new Misused("no_receiver");
  if (typeof onIpn !== "function") throw new Misused("no_function", "The handler");
  if (Object(options) !== options) throw new Misused("no_options", "The handler");
  checkNames("The handler's option ", options, known);
}
