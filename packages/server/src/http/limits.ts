import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { ServiceError } from "../errors.ts";
import type { Metrics } from "../metrics.ts";
import { networkOf } from "../partners/address-blocks.ts";
import type { Callers } from "./authenticate.ts";
import type { CallerAddress } from "./caller.ts";
import { prefersAsync } from "./prefers-async.ts";
import { type RateDecision, RateLimit } from "./rate-limit.ts";

export type LimitSettings = Pick<
  Config,
  | "partnerRequestsPerMinute"
  | "partnerPullsPerMinute"
  | "partnerAsyncPerMinute"
  | "partnerRedeliveriesPerMinute"
  | "anonymousPerMinute"
>;

type Limit = "requests" | "pulls" | "async" | "redeliveries" | "anonymous";

/** Routes that cost more than their share of `requests`. */
const limitOfRoute: Readonly<Record<string, Limit>> = {
  "GET /v1/notifications": "pulls",
  // Its page is made too, and then not sent.
  "HEAD /v1/notifications": "pulls",
  "POST /v1/notifications/:id/redeliver": "redeliveries",
  "POST /v1/redeliveries": "redeliveries",
  "POST /v1/endpoints/:id/close": "redeliveries",
  "POST /v1/test-notification": "redeliveries",
  // Each is a row of the audit, which all instances write one after the other.
  "POST /v1/api-keys": "redeliveries",
  "POST /v1/api-keys/:keyId/revoke": "redeliveries",
  "PUT /v1/callback-url": "redeliveries",
};
/** Sealing is what a page costs: so many items count as one pull. */
const itemsOfPull = 50;
const itemsOfPage = 100;
/** The bytes that count as one request in an answer to an address without a key: pages and scripts are large. */
const bytesOfRequest = 16 * 1_024;
/** Callers far from a limit need no header. */
const toldBelow = 1 / 4;

/** Rate limits per minute for each partner, and for each address of callers without a key, at this instance. */
export class Limits {
  readonly #limits: Readonly<Record<Limit, RateLimit>>;
  readonly #metrics: Pick<Metrics, "requestsLimited">;

  constructor(settings: LimitSettings, clock: Pick<Clock, "monotonicMs">, metrics: Pick<Metrics, "requestsLimited">) {
    this.#metrics = metrics;
    this.#limits = {
      requests: new RateLimit(settings.partnerRequestsPerMinute, clock),
      pulls: new RateLimit(settings.partnerPullsPerMinute, clock),
      async: new RateLimit(settings.partnerAsyncPerMinute, clock),
      redeliveries: new RateLimit(settings.partnerRedeliveriesPerMinute, clock),
      anonymous: new RateLimit(settings.anonymousPerMinute, clock),
    };
  }

  /** For routes whose caller is authenticated before. */
  ofPartner(callers: Callers): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
    return async (request, reply) => {
      const { id } = callers.partner(request);
      this.#count("requests", id, reply);
      const { method, url } = request.routeOptions;
      const limit = limitOfRoute[`${String(method)} ${url}`];
      if (limit !== undefined) this.#count(limit, id, reply, limit === "pulls" ? pullsOf(request) : 1);
      else if (isAsync(request)) this.#count("async", id, reply);
    };
  }

  /** For routes that need no key, and for paths that lead nowhere. */
  ofAddress(addressOf: CallerAddress): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
    return async (request, reply) => {
      if (isKeyed(request)) return;
      this.#count("anonymous", networkOf(addressOf(request.raw)), reply);
    };
  }

  /** Counts the size of an answer that needs no key. It is sent; the address's next request may be refused. */
  ofAnswer(addressOf: CallerAddress): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
    return async (request, reply) => {
      const cost = Math.floor(Number(reply.getHeader("content-length") ?? 0) / bytesOfRequest);
      if (cost === 0 || isKeyed(request)) return;
      this.#limits.anonymous.add(networkOf(addressOf(request.raw)), cost);
    };
  }

  #count(limit: Limit, key: string, reply: FastifyReply, cost = 1): void {
    const rate = this.#limits[limit];
    const taken = rate.count(key, cost);
    if (taken.allowed && taken.remaining >= rate.perMinute * toldBelow) return;
    tell(reply, limit, rate.perMinute, taken);
    if (taken.allowed) return;
    this.#metrics.requestsLimited.inc({ limit });
    throw new ServiceError("too_many_requests", `More than ${rate.perMinute} a minute (${limit}).`, {
      retryAfterS: taken.resetS,
    });
  }
}

function isKeyed({ routeOptions: { url = "" } }: FastifyRequest): boolean {
  return url.startsWith("/v1/") || url.startsWith("/operator/");
}

/** As in draft-ietf-httpapi-ratelimit-headers. */
function tell(reply: FastifyReply, limit: Limit, perMinute: number, { remaining, resetS }: RateDecision): void {
  reply.header("ratelimit-policy", `"${limit}";q=${perMinute};w=60`);
  reply.header("ratelimit", `"${limit}";r=${remaining};t=${resetS}`);
}

function pullsOf({ query }: FastifyRequest): number {
  const limit = Number((query as Record<string, unknown>)["limit"] ?? itemsOfPage);
  return limit > itemsOfPull && limit <= itemsOfPull * itemsOfPull ? Math.ceil(limit / itemsOfPull) : 1;
}

function isAsync({ method, headers }: FastifyRequest): boolean {
  return method === "POST" && prefersAsync(headers["prefer"]);
}
