import type { Duplex } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, errors, ServiceError } from "../errors.ts";
import { newId } from "../ids.ts";
import type { Log } from "../telemetry/log.ts";
import type { HttpDependencies } from "./dependencies.ts";
import { type CallerAddress, noSniff } from "./request-guards.ts";

/** The media type of every error, RFC 9457. */
export const problemType = "application/problem+json";

const retryAfterSDefault = 1;

/**
 * An error in an answer: RFC 9457 with a stable code, the remedy, and every invalid field.
 *
 * @param instanceId the request's id, or the occurrence's own: it is in our log too
 */
export function problemOf(error: ServiceError, instanceId: string) {
  const { status, title, remedy } = errors[error.code];
  return {
    type: `urn:paybell:error:${error.code}`,
    title,
    status,
    code: error.code,
    detail: error.message,
    remedy,
    documentation: `/docs/reference/errors#${error.code}`,
    instance: `urn:uuid:${instanceId}`,
    ...(error.fields.length > 0 && {
      errors: error.fields.map(({ field, code, message }) => ({ field, code, message })),
    }),
  };
}

/** The headers that a client needs to act on the error. */
function problemHeaders(error: ServiceError): Record<string, string> {
  return {
    "content-type": problemType,
    ...(error.status === 401 && { "www-authenticate": "Bearer" }),
    ...((error.retryAfterS !== undefined || error.status === 503 || error.status === 429) && {
      "retry-after": String(Math.max(1, Math.ceil(error.retryAfterS ?? retryAfterSDefault))),
    }),
  };
}

/** The framework's own refusals, by our codes. Its own messages are never sent. */
const frameworkErrors: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "body_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "invalid_http",
  FST_ERR_BAD_URL: "not_found",
  FST_ERR_MAX_PARAM_LENGTH: "not_found",
};

interface RefusalParts {
  readonly log: Log;
  readonly address: CallerAddress;
}

type FailureParts = RefusalParts & Pick<HttpDependencies, "isUnavailable">;

const comeAgainS = 5;

/** Reads, and writes that are safe to repeat: the caller may try again. */
function unavailable(cause: unknown): ServiceError {
  return new ServiceError("unavailable", "The database cannot be reached.", { retryAfterS: comeAgainS, cause });
}

function cutOff(cause: unknown): ServiceError {
  return new ServiceError("invalid_http", "The request's body ended early.", { cause });
}

/**
 * Every failure is sent as a problem: an unexplained one as `internal`, with an id to quote that the log has
 * too.
 */
export function handleFailures(app: FastifyInstance, { isUnavailable, ...parts }: FailureParts): void {
  app.setErrorHandler((error, request, reply) => {
    // The caller disconnected amid its body. The error is that of any lost connection, such as one to the database.
    const isCutOff = error !== null && error === request.raw.errored;
    if (isCutOff) return sendProblem(reply, request, cutOff(error), error, parts);
    const shown = !(error instanceof ServiceError) && isUnavailable(error) ? unavailable(error) : explain(error);
    sendProblem(reply, request, shown, error, parts);
  });
  const routes: { method: string; pattern: RegExp }[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    const pattern = new RegExp(`^${url.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(/:[^/]+/g, "[^/]+")}$`);
    for (const one of [method].flat()) routes.push({ method: one, pattern });
  });
  app.setNotFoundHandler((request, reply) => {
    const [path = ""] = request.url.split("?");
    const allowed = routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    if (allowed.length === 0) throw new ServiceError("not_found", "There is nothing at this path.");
    const methods = [...new Set(allowed)].join(", ");
    reply.header("allow", methods);
    throw new ServiceError("method_not_allowed", `This path supports ${methods}, not ${request.method}.`);
  });
}

/** The same for a path that the router cannot even read. */
export function refuseBadPath(
  parts: RefusalParts,
): (error: Error, request: FastifyRequest, reply: FastifyReply) => void {
  return (error, request, reply) => sendProblem(reply, request, explain(error), error, parts);
}

function explain(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  const known = typeof code === "string" ? frameworkErrors[code] : undefined;
  return known === undefined
    ? new ServiceError("internal", "The request could not be processed.", { cause: error })
    : new ServiceError(known);
}

function sendProblem(
  reply: FastifyReply,
  request: FastifyRequest,
  shown: ServiceError,
  error: unknown,
  { log, address }: RefusalParts,
): void {
  const { method, routeOptions, raw } = request;
  const where = { requestId: request.id, address: address(raw), method, route: routeOptions.url };
  // An unavailable database refuses every request: that is one outage, reported elsewhere, and not a bug in each.
  if (shown.code === "unavailable") log.warn({ ...where, code: shown.code, err: error }, "request refused for now");
  else if (shown.status >= 500) log.error({ ...where, code: shown.code, err: error }, "request failed");
  else log.debug({ ...where, code: shown.code, fields: shown.fields.map(({ field }) => field) }, "request refused");
  reply
    .code(shown.status)
    .headers(problemHeaders(shown))
    // As bytes: for a string the framework would add a charset, which problem+json does not have.
    .send(Buffer.from(JSON.stringify(problemOf(shown, request.id))));
}

const parserErrors: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/** The same for bytes that never became a request: they are not HTTP, or come too slowly. */
export function refuseBadHttp(error: { code?: string }, socket: Duplex): void {
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const shown = new ServiceError(parserErrors[error.code ?? ""] ?? "invalid_http");
  const body = JSON.stringify(problemOf(shown, newId()));
  const headers = {
    ...noSniff,
    ...problemHeaders(shown),
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${shown.status} ${reasonPhrase(shown.status)}\r\n${lines.join("")}\r\n${body}`);
  // A client that never closes its side would keep the connection forever.
  const ended = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(ended));
}

/** For the answer to arrive: to destroy at once would have it discarded with what the caller still sends. */
const lingerMs = 1_000;

function reasonPhrase(status: number): string {
  if (status === errors.headers_too_large.status) return "Request Header Fields Too Large";
  return status === errors.request_timeout.status ? "Request Timeout" : "Bad Request";
}
