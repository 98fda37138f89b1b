import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import type { buildConnector } from "undici";
import type { Partner } from "../../partners/partner.ts";
import { AddressGuard, AddressRefused, type Resolve } from "./addresses.ts";
import { type EgressProxy, NotConnected } from "./egress-proxy.ts";
import { codeOf, describe, TransportFailure, tlsDetail } from "./failure.ts";
import { callingContext, publicKeyPin } from "./tls.ts";

/** The rules for connections to one endpoint of one partner, or of the operator. */
export interface ConnectRules {
  /** Absent: the operator named the host, and any address of it is called. */
  readonly guard?: AddressGuard;
  /** Absent: connections are made directly. */
  readonly proxy?: EgressProxy | undefined;
  readonly resolve: Resolve;
  readonly secureContext: SecureContext;
  /** For name look-up, TCP, the proxy and TLS together. */
  readonly connectTimeoutMs: number;
  /** Hashes of public keys: the server's must be one of them. None: any key with a valid certificate. */
  readonly pins?: readonly string[];
  /** Called with the end of the server certificate's validity. */
  readonly onCertificate?: (endsAt: Date) => void;
}

export interface ConnectTarget {
  /** Without brackets. */
  readonly hostname: string;
  readonly port: number;
  readonly secure: boolean;
}

/** The TLS session to resume: each endpoint has its own, so that no partner's session is offered to another. */
export interface LastSession {
  session: Buffer | undefined;
}

export interface Connected {
  readonly socket: Socket;
  /** The address that was connected to, by us or by the proxy; null if the proxy looked it up. */
  readonly address: string | null;
}

/** A connection being made. `abandon` closes it, whatever its stage. */
export interface Connecting {
  readonly connected: Promise<Connected>;
  abandon(): void;
}

const attemptOneAddressMs = 500;

type Stage = "dns" | "tcp" | "proxy" | "tunnel" | "tls";
type Made = (it: { destroy(): unknown }) => void;

/**
 * Connects only to addresses that the guard allows, through the proxy if there is one. `connected` rejects with a
 * TransportFailure that says what went wrong. Certificates are always verified.
 */
export function connect(target: ConnectTarget, rules: ConnectRules, last: LastSession): Connecting {
  let stage: Stage = "dns";
  let opened: { destroy(): unknown } | undefined;
  let isOver = false;
  const proxy = rules.proxy?.isFor(target.hostname) === true ? rules.proxy : undefined;
  const { promise, resolve, reject } = Promise.withResolvers<Connected>();
  const end = (failure: TransportFailure) => {
    isOver = true;
    clearTimeout(timer);
    // A server may refuse to resume it, each time.
    if (stage === "tls") last.session = undefined;
    opened?.destroy();
    reject(failure);
  };
  const failed = (error: unknown) => {
    if (isOver) return;
    if (proxy === undefined || (stage !== "proxy" && stage !== "tunnel")) {
      return end(connectFailure(target, stage, error));
    }
    end(proxy.failed(originOf(target), error as Error));
  };
  const timeoutMs = rules.connectTimeoutMs;
  const timer = setTimeout(() => {
    if (stage === "tunnel") failed(new NotConnected(null));
    else if (stage === "proxy") failed(new Error(`there was no connection within ${timeoutMs / 1_000} s`));
    else end(timeoutFailure(target, stage, timeoutMs));
  }, timeoutMs);
  const made: Made = (it) => {
    opened = it;
    if (isOver) it.destroy();
  };

  async function run(): Promise<void> {
    const isNamed = proxy !== undefined && (proxy.resolvesNames || rules.guard === undefined);
    const addresses = isNamed ? [checked(target.hostname, rules)] : await addressesOf(target.hostname, rules);
    if (isOver) return;
    const { socket: tcp, address } = proxy ? await openTunnel(proxy, addresses) : await openDirectly(addresses);
    if (!target.secure) return finish(tcp, address);
    stage = "tls";
    finish(await openTls(tcp, target, rules, last, made), address);
  }

  async function openDirectly(addresses: readonly string[]): Promise<Connected> {
    stage = "tcp";
    const socket = await openTcp(target, addresses, made);
    rules.guard?.requireAllowed(socket.remoteAddress);
    return { socket, address: socket.remoteAddress ?? null };
  }

  /** The first address that the proxy connects to. */
  async function openTunnel(by: EgressProxy, addresses: readonly string[]): Promise<Connected> {
    for (const [index, address] of addresses.entries()) {
      stage = "proxy";
      try {
        const socket = await by.open(address, target.port, made, () => {
          stage = "tunnel";
        });
        return { socket, address: isIP(address) === 0 ? null : address };
      } catch (error) {
        if (isOver || index === addresses.length - 1 || !(error instanceof NotConnected)) throw error;
      }
    }
    throw new Error("a name has at least one address");
  }

  function finish(socket: Socket, address: string | null): void {
    clearTimeout(timer);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    resolve({ socket, address });
  }

  run().catch(failed);
  return { connected: promise, abandon: () => end(new TransportFailure("timeout", "The attempt timed out.")) };
}

/** The same for undici. */
export function connectorOf(rules: ConnectRules): buildConnector.connector {
  return ({ hostname, port, protocol }, callback) => {
    connect(targetOf({ hostname, port, protocol }), rules, { session: undefined }).connected.then(
      ({ socket }) => callback(null, socket),
      (failure: Error) => callback(failure, null),
    );
  };
}

/** The parts of a URL. */
export function targetOf({ hostname, port, protocol }: Pick<URL, "hostname" | "port" | "protocol">): ConnectTarget {
  const secure = protocol === "https:";
  return { hostname: hostname.replace(/^\[|\]$/g, ""), port: Number(port || (secure ? 443 : 80)), secure };
}

function originOf({ hostname, port, secure }: ConnectTarget): string {
  return `${secure ? "https" : "http"}://${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${port}`;
}

/** A literal address is checked; a name is returned. */
function checked(hostname: string, { guard }: ConnectRules): string {
  if (isIP(hostname) !== 0) guard?.requireAllowed(hostname);
  return hostname;
}

async function addressesOf(hostname: string, rules: ConnectRules): Promise<readonly string[]> {
  if (isIP(hostname) !== 0) return [checked(hostname, rules)];
  const addresses = await rules.resolve(hostname);
  return rules.guard === undefined ? addresses : rules.guard.allowedOf(hostname, addresses);
}

function openTcp(target: ConnectTarget, addresses: readonly string[], made: Made): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const list = addresses.map((address) => ({ address, family: isIP(address) }));
    const [only] = addresses;
    const socket = connectTcp({
      host: list.length === 1 && only !== undefined ? only : target.hostname,
      port: target.port,
      // Checked already: the socket tries these, without another look-up.
      lookup: (_hostname, _options, callback) => callback(null, list),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: attemptOneAddressMs,
    });
    made(socket);
    socket.once("error", reject);
    socket.once("connect", () => resolve(socket));
  });
}

function openTls(
  tcp: Socket,
  target: ConnectTarget,
  { secureContext, pins = [], onCertificate }: ConnectRules,
  last: LastSession,
  made: Made,
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      socket: tcp,
      host: target.hostname,
      // RFC 6066: an address is not a server name.
      ...(isIP(target.hostname) === 0 ? { servername: target.hostname } : {}),
      secureContext,
      rejectUnauthorized: true,
      ALPNProtocols: ["http/1.1"],
      // A resumed session has no certificate whose key could be compared.
      ...(last.session === undefined || pins.length > 0 ? {} : { session: last.session }),
    });
    made(socket);
    // The TLS socket reports the errors of both. An event without a listener would end the process.
    tcp.on("error", () => undefined);
    const ended = () => reject(new Error("the connection was closed during the TLS handshake"));
    socket.on("session", (session) => {
      last.session = session;
    });
    socket.once("error", reject);
    socket.once("close", ended);
    socket.once("secureConnect", () => {
      socket.off("error", reject);
      socket.off("close", ended);
      const endsAt = socket.getPeerX509Certificate()?.validToDate;
      if (endsAt !== undefined) onCertificate?.(endsAt);
      const pin = pins.length > 0 ? publicKeyPin(socket) : undefined;
      if (pins.length === 0 || (pin !== undefined && pins.includes(pin))) return resolve(socket);
      reject(new Error(`the server's public key (${pin}) is not among callbackPins`));
    });
  });
}

function timeoutFailure(target: ConnectTarget, stage: Stage, timeoutMs: number): TransportFailure {
  const within = `within ${timeoutMs / 1_000} s`;
  if (stage === "dns") return new TransportFailure("dns", `${target.hostname} was not resolved ${within}.`);
  const what = stage === "tls" ? "The TLS handshake was not complete" : "There was no TCP connection";
  return new TransportFailure("connect_timeout", `${what} ${within}.`);
}

function connectFailure(target: ConnectTarget, stage: Stage, error: unknown): TransportFailure {
  if (error instanceof AddressRefused) return new TransportFailure("address_refused", error.message);
  if (stage === "dns") return new TransportFailure("dns", `${target.hostname} cannot be resolved: ${describe(error)}.`);
  if (stage === "tls") return new TransportFailure("tls", tlsDetail(error, target.hostname));
  if (codeOf(error) === "ETIMEDOUT") return new TransportFailure("connect_timeout", `${describe(error)}.`);
  return new TransportFailure("connect", `${describe(error)}.`);
}

/** The partner fields that determine where its connections may go. */
export type PartnerConnectionSettings = Pick<Partner, "id" | "settings"> & {
  readonly keys?: Pick<Partner["keys"], "client">;
};

export interface ServiceConnectionSettings {
  readonly resolve: Resolve;
  /** Only the sandbox calls http:// and loopback addresses. */
  readonly sandbox: boolean;
  /** PEM certificates that are trusted in addition to the well-known CAs. */
  readonly extraCas?: readonly string[];
  readonly proxy?: EgressProxy | undefined;
  /** For name look-up, TCP and TLS together. */
  readonly connectTimeoutMs: number;
}

/** @param shared the context of partners with neither a CA nor a client certificate of their own */
export function partnerRules(
  partner: PartnerConnectionSettings,
  { resolve, connectTimeoutMs, sandbox, extraCas, proxy }: ServiceConnectionSettings,
  shared?: SecureContext,
): ConnectRules {
  const { callbackAddresses, callbackCa: onlyCa, callbackPins: pins } = partner.settings;
  const guard = new AddressGuard(callbackAddresses, { loopbackAllowed: sandbox });
  const client = partner.keys?.client;
  const isOwn = onlyCa !== null || client !== undefined;
  const secureContext = isOwn ? callingContext({ extraCas, onlyCa, client }) : (shared ?? callingContext({ extraCas }));
  return { guard, resolve, proxy, connectTimeoutMs, secureContext, pins };
}
