import { type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import type { Clock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import { bearerToken } from "./bearer.ts";
import type { HttpListener } from "./parts.ts";
import { SealedCookie } from "./sealed-cookie.ts";

/** The header that a page sends with everything that changes something. */
const csrfHeader = "paybell-csrf";

/** Without a request for so long, a session has ended. */
const idleMs = 2 * 3_600_000;
/** However busy it is. */
const lifeMs = 12 * 3_600_000;

interface Session {
  /** The operator's token or the partner's API key. */
  readonly token: string;
  readonly csrf: string;
  readonly beganMs: number;
  readonly seenMs: number;
}

/** A new or renewed session. */
export interface OpenSession {
  /** The header Set-Cookie. */
  readonly cookie: string;
  /** Sent along as {@link csrfHeader}. */
  readonly csrf: string;
  readonly expiresAtMs: number;
}

/**
 * Sign-in of the console's pages. The cookie is the caller's own token, encrypted so that only this service can read
 * it. Each request is checked as if it had that token itself, so a token that is revoked, expired or used from
 * elsewhere ends the session on every instance, and nothing is stored here.
 */
export class Sessions {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #cookie: SealedCookie<Session>;

  /** Cookies do not know ports: each listener has a name of its own. */
  constructor(key: KeyObject, clock: Pick<Clock, "nowMs">, listener: HttpListener) {
    this.#clock = clock;
    this.#cookie = new SealedCookie(key, { name: `paybell_${listener}`, path: "/", sameSite: "strict" });
  }

  /**
   * The caller's token, from Authorization or else from a session's cookie.
   *
   * @throws ServiceError `csrf` where a session would change something and the page did not send its CSRF token
   */
  readonly tokenOf = (request: FastifyRequest): string | undefined => {
    if (request.headers.authorization !== undefined) return bearerToken(request);
    const session = this.#read(request);
    if (session === undefined) return undefined;
    const isReading = request.method === "GET" || request.method === "HEAD";
    if (!isReading && !isSame(request.headers[csrfHeader], session.csrf)) throw new ServiceError("csrf");
    return session.token;
  };

  begin(request: FastifyRequest, token: string): OpenSession {
    const nowMs = this.#clock.nowMs();
    return this.#write(request, { token, csrf: newCsrf(), beganMs: nowMs, seenMs: nowMs });
  }

  /** The same session, from now on idle for as long again; undefined where there is none. */
  renew(request: FastifyRequest): OpenSession | undefined {
    const session = this.#read(request);
    return session && this.#write(request, { ...session, seenMs: this.#clock.nowMs() });
  }

  /** The header Set-Cookie that has the browser forget it. */
  end(request: FastifyRequest): string {
    return this.#cookie.clear(request);
  }

  #read(request: FastifyRequest): Session | undefined {
    const session = this.#cookie.read(request);
    return session !== undefined && this.#clock.nowMs() <= endOf(session) ? session : undefined;
  }

  #write(request: FastifyRequest, session: Session): OpenSession {
    const expiresAtMs = endOf(session);
    const maxAgeS = Math.max(0, Math.floor((expiresAtMs - this.#clock.nowMs()) / 1_000));
    return { cookie: this.#cookie.write(request, session, maxAgeS), csrf: session.csrf, expiresAtMs };
  }
}

function endOf({ beganMs, seenMs }: Session): number {
  return Math.min(seenMs + idleMs, beganMs + lifeMs);
}

function newCsrf(): string {
  return randomBytes(32).toString("base64url");
}

function isSame(offered: string | string[] | undefined, expected: string): boolean {
  const [a, b] = [Buffer.from(String(offered ?? "")), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
