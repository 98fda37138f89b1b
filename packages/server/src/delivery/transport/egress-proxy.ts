import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, isIPv6, type Socket } from "node:net";
import { Cooldown } from "../../bounded-map.ts";
import type { Clock } from "../../clock.ts";
import { AddressBlocks } from "../../partners/settings/address-blocks.ts";
import type { Resolve } from "./addresses.ts";
import { describe, TransportFailure } from "./failure.ts";
import { callingContext } from "./tls.ts";

export interface EgressProxyOptions {
  /** http:// or https://, with user:password if the proxy requires them. */
  readonly url: string;
  /** It is asked for names, and looks them up itself: their addresses are not checked here. */
  readonly resolvesNames: boolean;
  /** Connected to directly: host names, domains (`.internal.example`), and ranges of literal addresses. */
  readonly except: readonly string[];
  /** For the proxy's own name. */
  readonly resolve: Resolve;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Called for each tunnel that did not open. */
  readonly onNotOpened?: (kind: EgressFailureKind) => void;
  /** The proxy fails, and no partner's endpoint. Called at most once in ten minutes for each failure. */
  readonly onFailure?: (detail: string) => void;
}

/** The proxy's answer to CONNECT was not 2xx; null: there was none in time. */
export class NotConnected extends Error {
  override readonly name = "NotConnected";
  readonly status: number | null;

  constructor(status: number | null) {
    super(status === null ? "no answer to CONNECT in time" : `status ${status}`);
    this.status = status;
  }
}

/**
 * Why a tunnel did not open: the proxy cannot be reached, does not accept our password, or refuses the origin; the
 * origin fails; every origin does.
 */
export const egressFailureKinds = ["unreachable", "unauthorized", "refused", "origin", "every_origin"] as const;
export type EgressFailureKind = (typeof egressFailureKinds)[number];

/** Origins that fail one after the other, with nothing received from any in between: then the proxy fails. */
const originsToFail = 3;
/** While the proxy fails, deliveries begin once in this time. It doubles with each failure. */
const firstWaitMs = 1_000;
const waitMaxMs = 5_000;
const toldEveryMs = 600_000;
const toldMax = 1_000;

/**
 * The forward proxy that outgoing connections go through: it opens a tunnel by CONNECT, and TLS with the origin is
 * inside. A tunnel that does not open is judged:
 *
 * ```
 * the proxy cannot be reached, ends the connection, or answers 407   it fails: no delivery begins for 1 to 5 s
 * 502 to 504, or no answer in time                                   the origin fails, as if connected to directly
 * any other status                                                   it refuses this origin: its deliveries are postponed
 * the third origin in a row, with nothing received in between        it fails
 * ```
 */
export class EgressProxy {
  /** host:port, without credentials. */
  readonly name: string;
  readonly resolvesNames: boolean;
  readonly #options: EgressProxyOptions;
  readonly #target: object;
  readonly #isSecure: boolean;
  readonly #authorization: string | undefined;
  readonly #exceptNames: readonly string[];
  readonly #exceptAddresses: AddressBlocks;
  readonly #tunnels = new Set<Socket>();
  /** Bytes received over tunnels that have ended. */
  #bytesEnded = 0;
  /** Origins that failed since something was received. */
  readonly #failing = new Set<string>();
  #bytesBefore = 0;
  #waits = 0;
  #waitUntilMs = Number.NEGATIVE_INFINITY;
  readonly #told = new Cooldown<string>(toldEveryMs, toldMax);

  constructor(options: EgressProxyOptions) {
    const { protocol, hostname, port, username, password } = new URL(options.url);
    const host = hostname.replace(/^\[|\]$/g, "");
    this.#isSecure = protocol === "https:";
    const number = port === "" ? (this.#isSecure ? 443 : 80) : Number(port);
    this.name = `${hostname}:${number}`;
    this.resolvesNames = options.resolvesNames;
    this.#options = options;
    this.#target = {
      host,
      port: number,
      agent: false,
      autoSelectFamily: true,
      lookup: (name: string, _: object, found: (error: Error | null, addresses?: object[]) => void) =>
        void options.resolve(name).then(
          (addresses) =>
            found(
              null,
              addresses.map((address) => ({ address, family: isIP(address) })),
            ),
          (error: Error) => found(error),
        ),
      ...(this.#isSecure && { secureContext: callingContext() }),
    };
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    this.#authorization = username === "" ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`;
    this.#exceptNames = options.except.filter((it) => !isRange(it)).map((it) => it.toLowerCase());
    this.#exceptAddresses = new AddressBlocks(options.except.filter(isRange));
  }

  /** Whether connections to this host go through it. */
  isFor(hostname: string): boolean {
    if (isIP(hostname) !== 0) return !this.#exceptAddresses.contains(hostname);
    return !this.#exceptNames.some((it) => (it.startsWith(".") ? hostname.endsWith(it) : hostname === it));
  }

  /**
   * Opens a tunnel.
   *
   * @param made called with what ends it, whatever its stage @param onAsked the proxy was reached, and asked
   * @throws NotConnected, or the error of the connection to the proxy
   */
  open(
    host: string,
    port: number,
    made: (it: { destroy(): unknown }) => void,
    onAsked: () => void = () => undefined,
  ): Promise<Socket> {
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    return new Promise((resolve, reject) => {
      const request = (this.#isSecure ? requestHttps : requestHttp)({
        ...this.#target,
        method: "CONNECT",
        path: authority,
        headers: {
          host: authority,
          ...(this.#authorization !== undefined && { "proxy-authorization": this.#authorization }),
        },
      });
      made(request);
      request.on("socket", (socket) => socket.once(this.#isSecure ? "secureConnect" : "connect", onAsked));
      request.on("error", reject);
      request.once("connect", ({ statusCode = 0 }, socket: Socket, head: Buffer) => {
        made(socket);
        if (statusCode < 200 || statusCode > 299) {
          socket.destroy();
          return reject(new NotConnected(statusCode));
        }
        this.#opened(socket);
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      request.end();
    });
  }

  /** A tunnel to this origin did not open. @returns whose failure it is: the proxy's is `egress` */
  failed(origin: string, cause: Error): TransportFailure {
    const status = cause instanceof NotConnected ? cause.status : undefined;
    const isAsked = status !== undefined && status !== 407;
    if (this.#bytes() > this.#bytesBefore) this.#lives();
    this.#failing.add(origin);
    const isDown = !isAsked || this.#failing.size >= originsToFail;
    if (isDown) this.#hold();
    const isOrigin = status === null || [502, 503, 504].includes(Number(status));
    this.#options.onNotOpened?.(isDown && isAsked ? "every_origin" : isOrigin ? "origin" : kindOf(status));
    const detail = `The egress proxy ${this.name} ${this.#words(origin, cause, status)}`;
    if (!isDown && status === null) return new TransportFailure("connect_timeout", detail);
    if (!isDown && isOrigin) return new TransportFailure("connect", detail);
    this.#tell(isDown && isAsked ? `The egress proxy ${this.name} connects to nothing.` : detail);
    return new TransportFailure("egress", detail);
  }

  /** The time for which no delivery begins, because the proxy fails; 0: they may. */
  waitMs(): number {
    return Math.max(0, this.#waitUntilMs - this.#options.clock.monotonicMs());
  }

  #words(origin: string, cause: Error, status: number | null | undefined): string {
    if (status === undefined) return `cannot be used: ${describe(cause)}.`;
    if (status === null) return `did not connect to ${origin} in time.`;
    if (status === 407) return "answered 407: it does not accept the user and password in PAYBELL_EGRESS_PROXY.";
    return `answered ${status} to CONNECT for ${origin}.`;
  }

  #opened(socket: Socket): void {
    this.#tunnels.add(socket);
    this.#lives();
    // Errors are those of the connection inside. An event without a listener would end the process.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#tunnels.delete(socket);
      this.#bytesEnded += socket.bytesRead;
    });
  }

  /** Something came through it. */
  #lives(): void {
    this.#failing.clear();
    this.#bytesBefore = this.#bytes();
    this.#waits = 0;
    this.#waitUntilMs = Number.NEGATIVE_INFINITY;
  }

  #bytes(): number {
    return [...this.#tunnels].reduce((sum, { bytesRead }) => sum + bytesRead, this.#bytesEnded);
  }

  #hold(): void {
    if (this.waitMs() > 0) return;
    this.#waitUntilMs = this.#options.clock.monotonicMs() + Math.min(firstWaitMs * 2 ** this.#waits, waitMaxMs);
    this.#waits += 1;
  }

  #tell(detail: string): void {
    if (this.#told.begin(detail, this.#options.clock.monotonicMs())) this.#options.onFailure?.(detail);
  }
}

function kindOf(status: number | undefined): EgressFailureKind {
  if (status === undefined) return "unreachable";
  return status === 407 ? "unauthorized" : "refused";
}

function isRange(text: string): boolean {
  return isIP(text.replace(/\/.*/, "")) !== 0;
}
