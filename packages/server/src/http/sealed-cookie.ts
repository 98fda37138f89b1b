import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";
import { parseCookie, stringifySetCookie } from "cookie";
import type { FastifyRequest } from "fastify";

/** Sizes of the parts of what is sealed: nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM, as base64url. */
const nonceBytes = 12;
const tagBytes = 16;

export interface SealedCookieOptions {
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
