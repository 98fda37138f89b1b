import {
  createCipheriv,
  createDecipheriv,
  createHash,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { parseCookie, stringifySetCookie } from "cookie";
import type { FastifyRequest } from "fastify";
import { csrfHeader } from "../../error-table.ts";
import { ServiceError } from "../../errors.ts";
import type { HttpDependencies } from "../dependencies.ts";
import type { HttpListener } from "../request-guards.ts";

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

type SessionsParts = Pick<HttpDependencies, "sessionKey" | "clock" | "endedSessions">;

/**
 * Sign-in of the console's pages. The cookie is the caller's own token, encrypted so that only this service can read
 * it. Each request is checked as if it had that token itself, so a token that is revoked, expired or used from
 * elsewhere ends the session on every instance. So does a sign-out.
 */
export class Sessions {
  readonly #clock: SessionsParts["clock"];
  readonly #cookie: SealedCookie<Session>;
  readonly #ended: SessionsParts["endedSessions"];

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

/** Sizes of the parts of what is sealed: nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM, as base64url. */
const nonceBytes = 12;
const tagBytes = 16;

interface SealedCookieOptions {
  readonly name: string;
  readonly path: string;
  readonly sameSite: "strict" | "lax";
}

/** A value that a browser keeps for the service, encrypted under the service's key. It opens under no other name. */
export class SealedCookie<Value> {
  readonly #key: KeyObject;
  readonly #options: SealedCookieOptions;

  constructor(key: KeyObject, options: SealedCookieOptions) {
    this.#key = key;
    this.#options = options;
  }

  /** Undefined where there is none, or where it was not sealed by this key for this name. */
  read({ headers }: FastifyRequest): Value | undefined {
    const sealed = headers.cookie === undefined ? undefined : parseCookie(headers.cookie)[this.#options.name];
    const text = sealed === undefined ? undefined : openSealed(this.#key, this.#options.name, sealed);
    return text === undefined ? undefined : (JSON.parse(text) as Value);
  }

  /** @returns the header Set-Cookie */
  write(request: FastifyRequest, value: Value, maxAgeS: number): string {
    return this.#setCookie(request, sealText(this.#key, this.#options.name, JSON.stringify(value)), maxAgeS);
  }

  /** @returns the header Set-Cookie that has the browser forget it */
  clear(request: FastifyRequest): string {
    return this.#setCookie(request, "", 0);
  }

  #setCookie(request: FastifyRequest, value: string, maxAge: number): string {
    const secure = !isLoopback(request.hostname);
    return stringifySetCookie({ ...this.#options, value, httpOnly: true, secure, maxAge });
  }
}

/** Encrypts a text so that only this key opens it, and only for this purpose. */
export function sealText(key: KeyObject, purpose: string, text: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(purpose));
  const ciphertext = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString("base64url");
}

/** Undefined for what was not sealed by this key for this purpose. */
export function openSealed(key: KeyObject, purpose: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length <= nonceBytes + tagBytes) return undefined;
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(-tagBytes));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]).toString();
  } catch {
    return undefined;
  }
}

/** Browsers take a cookie that is `Secure` only over HTTPS; on this machine itself there may be none. */
function isLoopback(hostname: string): boolean {
  const name = hostname.replace(/:\d+$/, "");
  return name === "localhost" || name === "127.0.0.1" || name === "[::1]" || name === "::1";
}

const bearer = /^Bearer +([^\s]{1,512})$/i;

function bearerToken(request: FastifyRequest): string | undefined {
  return bearer.exec(request.headers.authorization ?? "")?.[1];
}
