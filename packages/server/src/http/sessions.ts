import { createCipheriv, createDecipheriv, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import { parseCookie, stringifySetCookie } from "cookie";
import type { FastifyRequest } from "fastify";
import type { Clock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import { bearerToken } from "./bearer.ts";
import type { HttpListener } from "./parts.ts";

/** The header that a page sends with everything that changes something. */
const csrfHeader = "paybell-csrf";

/** Without a request for so long, a session has ended. */
const idleMs = 2 * 3_600_000;
/** However busy it is. */
const lifeMs = 12 * 3_600_000;
/** The cookie: nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM, as base64url. */
const nonceBytes = 12;
const tagBytes = 16;

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
  readonly #key: KeyObject;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #name: string;

  /** Cookies do not know ports: each listener has a name of its own. */
  constructor(key: KeyObject, clock: Pick<Clock, "nowMs">, listener: HttpListener) {
    this.#key = key;
    this.#clock = clock;
    this.#name = `paybell_${listener}`;
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
    return this.#setCookie(request, "", 0);
  }

  #read({ headers }: FastifyRequest): Session | undefined {
    const sealed = headers.cookie === undefined ? undefined : parseCookie(headers.cookie)[this.#name];
    const session = sealed === undefined ? undefined : this.#open(sealed);
    return session !== undefined && this.#clock.nowMs() <= endOf(session) ? session : undefined;
  }

  #write(request: FastifyRequest, session: Session): OpenSession {
    const expiresAtMs = endOf(session);
    const maxAgeS = Math.max(0, Math.floor((expiresAtMs - this.#clock.nowMs()) / 1_000));
    return { cookie: this.#setCookie(request, this.#seal(session), maxAgeS), csrf: session.csrf, expiresAtMs };
  }

  #setCookie(request: FastifyRequest, value: string, maxAge: number): string {
    const secure = !isLoopback(request.hostname);
    return stringifySetCookie({
      name: this.#name,
      value,
      httpOnly: true,
      sameSite: "strict",
      secure,
      path: "/",
      maxAge,
    });
  }

  #seal(session: Session): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce, { authTagLength: tagBytes });
    cipher.setAAD(Buffer.from(this.#name));
    const ciphertext = Buffer.concat([cipher.update(JSON.stringify(session)), cipher.final()]);
    return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString("base64url");
  }

  #open(sealed: string): Session | undefined {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length <= nonceBytes + tagBytes) return undefined;
    const decipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(Buffer.from(this.#name)).setAuthTag(bytes.subarray(-tagBytes));
    try {
      const plain = Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]);
      return JSON.parse(plain.toString()) as Session;
    } catch {
      return undefined;
    }
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

/** Browsers take a cookie that is `Secure` only over HTTPS; on this machine itself there may be none. */
function isLoopback(hostname: string): boolean {
  const name = hostname.replace(/:\d+$/, "");
  return name === "localhost" || name === "127.0.0.1" || name === "[::1]" || name === "::1";
}
