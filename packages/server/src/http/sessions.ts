import { createHash, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import type { Clock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import type { EndedSessions } from "../operators/ended-sessions.ts";
import { bearerToken } from "./bearer.ts";
import type { HttpListener } from "./caller.ts";
import { SealedCookie } from "./sealed-cookie.ts";

/** The header that a page sends with every request that changes something. */
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

export interface SessionsParts {
  /** Under which cookies are encrypted: the same on every instance. */
  readonly sessionKey: KeyObject;
  readonly clock: Pick<Clock, "nowMs">;
  readonly endedSessions: Pick<EndedSessions, "add" | "has">;
}

/**
 * Sign-in of the console's pages. The cookie is the caller's own token, encrypted so that only this service can read
 * it. Each request is checked as if it had that token itself, so a token that is revoked, expired or used from
 * elsewhere ends the session on every instance. So does a sign-out.
 */
export class Sessions {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #cookie: SealedCookie<Session>;
  readonly #ended: Pick<EndedSessions, "add" | "has">;

  /** Cookies do not know ports: each listener has a name of its own. */
  constructor({ sessionKey: key, clock, endedSessions }: SessionsParts, listener: HttpListener) {
    this.#clock = clock;
    this.#ended = endedSessions;
    this.#cookie = new SealedCookie(key, { name: `paybell_${listener}`, path: "/", sameSite: "strict" });
  }

  /**
   * The caller's token, from Authorization or else from a session's cookie.
   *
   * @throws ServiceError `csrf` where a session would change something and the page did not send its CSRF token
   */
  readonly tokenOf = async (request: FastifyRequest): Promise<string | undefined> => {
    if (request.headers.authorization !== undefined) return bearerToken(request);
    const session = await this.#read(request);
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
  async renew(request: FastifyRequest): Promise<OpenSession | undefined> {
    const session = await this.#read(request);
    return session && this.#write(request, { ...session, seenMs: this.#clock.nowMs() });
  }

  /**
   * Ends the session for each copy of its cookie.
   *
   * @returns its token; undefined where there is no session
   */
  async end(request: FastifyRequest): Promise<string | undefined> {
    const session = await this.#read(request);
    if (session !== undefined) await this.#ended.add(idOf(session), session.beganMs + lifeMs);
    return session?.token;
  }

  /** @returns the header Set-Cookie that has the browser forget its session */
  forget(request: FastifyRequest): string {
    return this.#cookie.clear(request);
  }

  async #read(request: FastifyRequest): Promise<Session | undefined> {
    const session = this.#cookie.read(request);
    if (session === undefined || this.#clock.nowMs() > endOf(session)) return undefined;
    return (await this.#ended.has(idOf(session))) ? undefined : session;
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

/** Each session has a CSRF token of its own. */
function idOf({ csrf }: Session): Buffer {
  return createHash("sha256").update(csrf).digest();
}

function newCsrf(): string {
  return randomBytes(32).toString("base64url");
}

function isSame(offered: string | string[] | undefined, expected: string): boolean {
  const [a, b] = [Buffer.from(String(offered ?? "")), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
