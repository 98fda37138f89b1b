import type { SecureContext } from "node:tls";
import { BoundedMap, Cooldown } from "../../bounded-map.ts";
import type { Clock } from "../../clock.ts";
import { maskCardNumbers } from "../../guards/card-number.ts";
import type { PartnerId } from "../../ids.ts";
import { mayAskToWait, readRetryAfterMs } from "../attempt/status.ts";
import type { FailureReason } from "../delivery.ts";
import {
  type ConnectRules,
  type PartnerConnectionSettings,
  partnerRules,
  type ServiceConnectionSettings,
} from "./connect.ts";
import {
  answerBytesKept,
  type CallbackResponse,
  type Connection,
  ConnectionPool,
  HttpExchange,
  WriteForbidden,
} from "./connection.ts";
import { exchangeFailure, isReset, TransportFailure } from "./failure.ts";
import { callingContext } from "./tls.ts";

export interface TransportOptions extends ServiceConnectionSettings {
  readonly clock: Clock;
  /** Called, at most once a day for each origin, if a partner's certificate ends within 14 days. */
  readonly onCertificateEnding?: (partnerId: PartnerId, origin: string, endsAt: Date) => void;
  readonly idleConnectionsMax?: number;
  readonly poolsMax?: number;
}

export interface CallbackPost {
  readonly partner: PartnerConnectionSettings;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** For everything: connecting, sending, a repetition, the response. Milliseconds from now. */
  readonly deadlineMs: number;
  /** Called before the first byte is written. */
  readonly mayWrite?: () => boolean;
}

/** A response, whatever its status. */
export interface PostAnswered {
  readonly httpStatus: number;
  readonly address: string | null;
  /** The first 4 KiB of a response that is not 2xx. */
  readonly answer: Buffer | null;
  /** The wait that a 429 or 503 asked for. */
  readonly retryAfterMs?: number;
}

/** No response. */
export interface PostUnanswered {
  readonly reason: FailureReason;
  readonly detail: string;
  /** The address connected to; null without a connection. */
  readonly address: string | null;
}

/** Nothing was written: `mayWrite` returned false, or `egress`: the proxy did not connect, for a reason of its own. */
export interface NotWritten {
  readonly notWritten: true | "egress";
}

export type PostResult = PostAnswered | PostUnanswered | NotWritten;

/** The parts of a callback URL that a POST needs. */
interface CallbackTarget {
  readonly protocol: string;
  readonly origin: string;
  readonly path: string;
  readonly port: number;
}

const idleConnectionsDefault = 2_048;
const poolsDefault = 4_096;
const evictAfterMs = 60_000;
const sweepEveryMs = 10_000;
const targetsMax = 1_000;

/** A server's certificate that ends sooner is reported. */
const endingMs = 14 * 86_400_000;
const toldEveryMs = 86_400_000;

/**
 * POSTs to partners' callback URLs: section 4.1. Measured on two cores, 32 at a time over keep-alive HTTPS to an empty
 * receiver: 27,000 to 31,000 a second at 30 µs of CPU each; undici's own Pool and request() needed 42 µs.
 */
export class Transport {
  readonly #options: TransportOptions;
  readonly #secureContext: SecureContext;
  /** By partner and origin, the longest unused first. */
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #targets = new BoundedMap<string, CallbackTarget>(targetsMax);
  readonly #versions = new WeakMap<PartnerConnectionSettings, string>();
  /** By partner and origin: the end of a certificate was reported, by the wall clock. */
  readonly #warned = new Cooldown<string>(toldEveryMs, targetsMax);
  readonly #sweeper: NodeJS.Timeout;
  #idle = 0;
  /** Each ends a POST in flight. */
  readonly #inFlight = new Set<() => void>();

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#secureContext = callingContext({ extraCas: options.extraCas });
    this.#sweeper = setInterval(() => this.#sweep(), sweepEveryMs).unref();
  }

  /** Makes one attempt. It never rejects: a failure is a result, to be recorded. */
  post(post: CallbackPost): Promise<PostResult> {
    const target = this.#read(post.url);
    if (target === undefined) return Promise.resolve(refused("internal", "The callback URL cannot be read."));
    if (target.protocol !== "https:" && !(target.protocol === "http:" && this.#options.sandbox)) {
      return Promise.resolve(refused("tls", "The callback URL is not https://."));
    }
    const { callbackPorts } = post.partner.settings;
    if (callbackPorts !== null && !callbackPorts.includes(target.port)) {
      const detail = `Port ${target.port} is not among callbackPorts (${callbackPorts.join(", ")}).`;
      return Promise.resolve(refused("address_refused", detail));
    }
    return this.#run(post, target);
  }

  /** Thousands of POSTs per second go to a few URLs, so each URL is parsed once. Undefined if it is invalid. */
  #read(text: string): CallbackTarget | undefined {
    const known = this.#targets.get(text);
    if (known !== undefined || !URL.canParse(text)) return known;
    const parsed = new URL(text);
    const { protocol, origin, pathname, search } = parsed;
    const target = { protocol, origin, path: pathname + search, port: portOf(parsed) };
    this.#targets.set(text, target);
    return target;
  }

  /** Closes everything, also what is in flight: nobody waits for it any more. */
  abort(): void {
    for (const end of this.#inFlight) end();
    this.close();
  }

  /** Closes every idle connection, and each busy one when it has its response. */
  close(): void {
    clearInterval(this.#sweeper);
    for (const [key, pool] of this.#pools) this.#remove(key, pool);
  }

  #run(
    { partner, headers, body, deadlineMs, mayWrite = () => true }: CallbackPost,
    { origin, path }: CallbackTarget,
  ): Promise<PostResult> {
    return new Promise((resolve) => {
      const pool = this.#pool(partner, origin);
      const request = { path, method: "POST" as const, headers, body };
      let connection: Connection;
      let exchange: HttpExchange;
      let written: Error | undefined;
      let isOver = false;
      const abort = () => {
        end({ reason: "reset", detail: "The service has stopped.", address: connection.address });
        pool.drop(connection);
      };
      this.#inFlight.add(abort);
      const end = (result: PostResult) => {
        isOver = true;
        this.#inFlight.delete(abort);
        clearTimeout(timer);
        resolve(result);
      };
      const fail = (failure: TransportFailure) => {
        pool.drop(connection);
        end({ reason: failure.reason, detail: failure.message, address: connection.address });
      };
      const answered = (answer: CallbackResponse, reusable: boolean) => {
        // First of all: no error in what follows may lose it.
        end(this.#result(answer, connection.address));
        if (reusable) this.#release(pool, connection);
        else pool.drop(connection);
      };
      const failed = (error: Error) => {
        const isEgress = error instanceof TransportFailure && error.reason === "egress";
        if (error instanceof WriteForbidden || isEgress) {
          // It was already written to the connection that was closed, so an attempt was made. If the proxy fails, it
          // has closed that one too.
          if (written !== undefined) return fail(exchangeFailure(isEgress ? error : written));
          pool.drop(connection);
          return end({ notWritten: isEgress ? "egress" : true });
        }
        // Closed as idle during the request: repeat once on a new connection, whose failure counts.
        if (!(exchange.reused && !exchange.answerBegan && isReset(error))) return fail(exchangeFailure(error));
        written = error;
        pool.drop(connection);
        send(pool.acquireNew());
      };
      const send = (over: Connection) => {
        connection = over;
        connection.mayWrite = mayWrite;
        exchange = new HttpExchange(over, answered, failed);
        over.client.dispatch(request, exchange);
      };
      const deadline = () => {
        if (!isOver && !exchange.endAtDeadline()) fail(deadlineFailure(exchange, deadlineMs));
      };
      // What arrived while the process stood still is read first.
      const timer = setTimeout(() => setImmediate(deadline), deadlineMs);
      send(this.#acquire(pool));
    });
  }

  #result(answer: CallbackResponse, address: string | null): PostAnswered {
    const { httpStatus, retryAfter, body } = answer;
    const asked = mayAskToWait(httpStatus) && retryAfter !== undefined;
    const retryAfterMs = asked ? readRetryAfterMs(retryAfter, this.#options.clock.nowMs()) : undefined;
    const kept = body === null ? null : maskCardNumbers(body, answerBytesKept);
    return { httpStatus, address, answer: kept, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }

  #acquire(pool: ConnectionPool): Connection {
    if (pool.idle > 0) this.#idle -= 1;
    return pool.acquire();
  }

  #release(pool: ConnectionPool, connection: Connection): void {
    if (!pool.release(connection)) return;
    this.#idle += 1;
    if (this.#idle > (this.#options.idleConnectionsMax ?? idleConnectionsDefault)) this.#shed();
  }

  #shed(): void {
    for (const pool of this.#pools.values()) {
      if (pool.idle === 0) continue;
      pool.shed();
      this.#idle -= 1;
      return;
    }
  }

  #pool(partner: PartnerConnectionSettings, origin: string): ConnectionPool {
    const key = `${partner.id} ${origin}`;
    const version = this.#version(partner);
    const known = this.#pools.get(key);
    const pool = known?.version === version ? known : new ConnectionPool(origin, version, this.#rules(partner, origin));
    if (known !== undefined && known !== pool) this.#remove(key, known);
    pool.usedMs = this.#options.clock.monotonicMs();
    this.#pools.delete(key);
    this.#pools.set(key, pool);
    if (this.#pools.size > (this.#options.poolsMax ?? poolsDefault)) this.#removeLongestUnused();
    return pool;
  }

  /** The registration fields that determine where connections may go. */
  #version(partner: PartnerConnectionSettings): string {
    const known = this.#versions.get(partner);
    if (known !== undefined) return known;
    const { callbackAddresses, callbackCa, callbackPins } = partner.settings;
    const version = JSON.stringify([callbackAddresses, callbackCa, callbackPins, partner.keys?.client?.id]);
    this.#versions.set(partner, version);
    return version;
  }

  #rules(partner: PartnerConnectionSettings, origin: string): ConnectRules {
    const onCertificate = (endsAt: Date) => this.#certificateSeen(partner.id, origin, endsAt);
    return { ...partnerRules(partner, this.#options, this.#secureContext), onCertificate };
  }

  #certificateSeen(partnerId: PartnerId, origin: string, endsAt: Date): void {
    const nowMs = this.#options.clock.nowMs();
    if (endsAt.getTime() - nowMs > endingMs) return;
    if (this.#warned.begin(`${partnerId} ${origin}`, nowMs)) {
      this.#options.onCertificateEnding?.(partnerId, origin, endsAt);
    }
  }

  #removeLongestUnused(): void {
    for (const [key, pool] of this.#pools) {
      if (pool.busy > 0) continue;
      this.#remove(key, pool);
      return;
    }
  }

  #remove(key: string, pool: ConnectionPool): void {
    this.#idle -= pool.idle;
    this.#pools.delete(key);
    pool.close();
  }

  #sweep(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [key, pool] of this.#pools) {
      if (nowMs - pool.usedMs <= evictAfterMs) return;
      if (pool.busy === 0) this.#remove(key, pool);
    }
  }
}

function portOf({ protocol, port }: URL): number {
  if (port !== "") return Number(port);
  return protocol === "https:" ? 443 : 80;
}

function deadlineFailure(exchange: HttpExchange, deadlineMs: number): TransportFailure {
  const within = `within ${deadlineMs / 1_000} s`;
  if (!exchange.sent) return new TransportFailure("connect_timeout", `There was no connection ${within}.`);
  if (!exchange.answerBegan) return new TransportFailure("timeout", `There was no answer ${within}.`);
  return new TransportFailure("timeout", `The answer began, and its head was not complete ${within}.`);
}

/** It fails before anything is sent. */
export function refused(reason: FailureReason, detail: string): PostUnanswered {
  return { reason, detail, address: null };
}
