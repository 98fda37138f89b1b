import type { FastifyReply, FastifyRequest } from "fastify";
import { BoundedMap } from "../../bounded-map.ts";
import { type Clock, systemTimers } from "../../clock.ts";
import type { Config } from "../../config/config.ts";
import { ServiceError } from "../../errors.ts";
import { networkOf } from "../../partners/settings/address-blocks.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { anybody, type PartnerPolicy, policyOf } from "../policy.ts";
import type { CallerAddress } from "../request-guards.ts";
import { ProcessorShare } from "./processor-share.ts";

type Limit = PartnerPolicy["limit"] | "anonymous";

/** The cost of a partner's request so far. */
interface Work {
  readonly account: string;
  /** Added when it was admitted, and not corrected yet. */
  expectedMs: number;
  bodyBytes: number;
  readAtMs: number;
}

/** Sealing is what a page costs: so many items count as one pull. */
const itemsOfPull = 50;
const itemsOfPage = 100;
const itemsOfPageMax = 500;
/** The bytes that count as one request in an answer to an address without a key: pages and scripts are large. */
const bytesOfRequest = 16 * 1_024;
/** Measured in processor time: at least what a request costs, a kilobyte of its body, and one of its answer. */
const requestMs = 0.2;
const bodyMsPerKilobyte = 0.1;
const answerMsPerKilobyte = 0.02;
/** Of a page: its items are paid for while it is made. */
const pageMsPerKilobyte = 0.005;
/** Of each item that a page may have: the database's time to find it, and ours to read it. */
const itemMs = 0.02;
/**
 * The time that a body takes is measured, and counts up to so much for each kilobyte: while other programs have the
 * processor, the clock goes on, too. To read it, and the rules for each field of one that is refused, take at most this.
 */
const measuredMsPerKilobyte = 1;
const readMsMax = 0.5;
const refusedMsMax = 2;
/** Callers far from a limit need no header. */
const toldBelow = 1 / 4;

/** Rate limits per minute for each partner, and for each address of callers without a key, at this instance. */
export class RateLimits {
  readonly #limits: Readonly<Record<Limit, RateLimit>>;
  readonly #metrics: Pick<Metrics, "requestsLimited">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #share: ProcessorShare;
  readonly #work = new WeakMap<FastifyRequest, Work>();

  constructor(settings: Config, clock: Pick<Clock, "monotonicMs">, metrics: Pick<Metrics, "requestsLimited">) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#share = new ProcessorShare(settings.partnerProcessorPercent, clock, systemTimers);
    this.#limits = {
      requests: new RateLimit(settings.partnerRequestsPerMinute, clock),
      pulls: new RateLimit(settings.partnerPullsPerMinute, clock),
      async: new RateLimit(settings.partnerAsyncPerMinute, clock),
      redeliveries: new RateLimit(settings.partnerRedeliveriesPerMinute, clock),
      anonymous: new RateLimit(settings.anonymousPerMinute, clock),
    };
  }

  /** For routes whose caller is authenticated before. */
  ofPartner(callers: {
    partner(request: FastifyRequest): { readonly id: string };
  }): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
    return async (request, reply) => {
      const { id } = callers.partner(request);
      this.#count("requests", id, reply);
      const { limit } = policyOf(request, "partner");
      if (limit === "pulls") this.#count(limit, id, reply, pullsOf(request));
      else if (limit === "redeliveries" || (limit === "async" && prefersAsync(request.headers["prefer"]))) {
        this.#count(limit, id, reply);
      }
      await this.#admit(request, id);
    };
  }

  /** Reads a body, and counts the time against its partner. */
  reading<Value>(request: FastifyRequest, bodyBytes: number, read: () => Value): Value {
    const work = this.#work.get(request);
    if (work === undefined) return read();
    const beganMs = this.#clock.monotonicMs();
    try {
      return read();
    } finally {
      work.readAtMs = this.#clock.monotonicMs();
      work.bodyBytes = bodyBytes;
      this.#correct(work, Math.min(work.readAtMs - beganMs, readMsMax + kilobytes(bodyBytes) * measuredMsPerKilobyte));
    }
  }

  /** Counts the cost of a partner's answer, and of the rules that found what is wrong with a request. */
  readonly ofPartnerAnswer = (
    request: FastifyRequest,
    { statusCode }: FastifyReply,
    payload: unknown,
    done: () => void,
  ): void => {
    const work = this.#work.get(request);
    if (work !== undefined) {
      const checkedMs = statusCode === 400 && work.bodyBytes > 0 ? this.#clock.monotonicMs() - work.readAtMs : 0;
      const refusedMs = Math.min(checkedMs, refusedMsMax + kilobytes(work.bodyBytes) * measuredMsPerKilobyte);
      const answerBytes = typeof payload === "string" ? payload.length : 0;
      const answerMs = kilobytes(answerBytes) * (isPage(request) ? pageMsPerKilobyte : answerMsPerKilobyte);
      // Of a command that runs only the reading counts: its rate bounds it.
      const ownMs = statusCode >= 400 || work.bodyBytes === 0 ? leastMsOf(request) : 0;
      this.#correct(work, ownMs + refusedMs + answerMs);
    }
    done();
  };

  /** The pauses of a request's handler between parts of its work, by which its partner takes no more than its share. */
  pausesOf(request: FastifyRequest): ((spentMs: number) => Promise<void>) | undefined {
    const work = this.#work.get(request);
    return work && this.#share.pauses(work.account);
  }

  async #admit(request: FastifyRequest, id: string): Promise<void> {
    const expectedMs = expectedMsOf(request);
    // A partner that fetches page after page still has its Sales admitted.
    const account = isPage(request) ? `${id} pages` : id;
    if (await this.#share.admit(account, expectedMs)) {
      this.#work.set(request, { account, expectedMs, bodyBytes: 0, readAtMs: 0 });
      return;
    }
    this.#metrics.requestsLimited.inc({ limit: "processor" });
    const message = `Your requests took more than ${this.#share.percent} % of this instance's time.`;
    throw new ServiceError("too_many_requests", message, { retryAfterS: 1 });
  }

  #correct(work: Work, ms: number): void {
    this.#share.add(work.account, ms - work.expectedMs);
    work.expectedMs = 0;
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

function isKeyed({ routeOptions: { config } }: FastifyRequest): boolean {
  return (config.policy ?? anybody).callers !== "anybody";
}

/** As in draft-ietf-httpapi-ratelimit-headers. */
function tell(reply: FastifyReply, limit: Limit, perMinute: number, { remaining, resetS }: RateDecision): void {
  reply.header("ratelimit-policy", `"${limit}";q=${perMinute};w=60`);
  reply.header("ratelimit", `"${limit}";r=${remaining};t=${resetS}`);
}

function pullsOf(request: FastifyRequest): number {
  return Math.ceil(itemsOf(request) / itemsOfPull);
}

/** One for a page that will be refused. */
function itemsOf({ query }: FastifyRequest): number {
  const limit = Number((query as Record<string, unknown>)["limit"] ?? itemsOfPage);
  return limit >= 1 && limit <= itemsOfPageMax ? limit : 1;
}

function isPage(request: FastifyRequest): boolean {
  return policyOf(request, "partner").limit === "pulls";
}

/** What a request costs beside its body, its answer, and what is measured. */
function leastMsOf(request: FastifyRequest): number {
  return requestMs + (isPage(request) ? itemsOf(request) * itemMs : 0);
}

function expectedMsOf(request: FastifyRequest): number {
  return leastMsOf(request) + kilobytes(Number(request.headers["content-length"] ?? 0)) * bodyMsPerKilobyte;
}

function kilobytes(bytes: number): number {
  return bytes / 1_024;
}

/** RFC 7240: preferences are separated by commas, in any case, and each may have parameters. */
export function prefersAsync(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  const preferences = [header].flat().join(",").split(",");
  return preferences.some((preference) => /^respond-async$/i.test((preference.split(";")[0] ?? "").trim()));
}

/** The rest of the limit after a request, and the time until it is reset. */
interface RateDecision {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Until the full limit is available again. */
  readonly resetS: number;
}

interface Window {
  readonly endsAtMs: number;
  used: number;
}

const windowMs = 60_000;
const keysMax = 20_000;

/**
 * A limit per minute for each key; the minute begins with its first request. The number of keys is bounded: the one
 * whose minute began first is forgotten.
 */
export class RateLimit {
  readonly perMinute: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #windows = new BoundedMap<string, Window>(keysMax);

  constructor(perMinute: number, clock: Pick<Clock, "monotonicMs">) {
    this.perMinute = perMinute;
    this.#clock = clock;
  }

  /** @param cost counts as this many requests; one that costs more than the limit is never allowed */
  count(key: string, cost = 1): RateDecision {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#window(key, nowMs);
    const allowed = window.used + cost <= this.perMinute;
    if (allowed) window.used += cost;
    return {
      allowed,
      remaining: Math.max(0, this.perMinute - window.used),
      resetS: Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1_000)),
    };
  }

  /** Counts what is known only afterwards, such as an answer's size: it may go beyond the limit. */
  add(key: string, cost: number): void {
    this.#window(key, this.#clock.monotonicMs()).used += cost;
  }

  #window(key: string, nowMs: number): Window {
    const known = this.#windows.get(key);
    return known !== undefined && known.endsAtMs > nowMs ? known : this.#begin(key, nowMs);
  }

  #begin(key: string, nowMs: number): Window {
    const window = { endsAtMs: nowMs + windowMs, used: 0 };
    this.#windows.set(key, window);
    return window;
  }
}
