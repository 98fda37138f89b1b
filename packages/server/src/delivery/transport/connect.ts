import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import { type AddressGuard, AddressRefused } from "./address-guard.ts";
import { codeOf, describe, TransportFailure } from "./failure.ts";
import type { Resolve } from "./resolve.ts";
import { publicKeyPin } from "./tls.ts";
import { tlsDetail } from "./tls-failure.ts";

/** The rules for connections to one endpoint of one partner. */
export interface ConnectRules {
  readonly guard: AddressGuard;
  readonly resolve: Resolve;
  readonly secureContext: SecureContext;
  /** For name look-up, TCP and TLS together. */
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

/** A connection being made. `abandon` closes it, whatever its stage. */
export interface Connecting {
  readonly connected: Promise<Socket>;
  abandon(): void;
}

const attemptOneAddressMs = 500;

/**
 * Connects only to addresses that the guard allows. `connected` rejects with a TransportFailure that says what went
 * wrong. Certificates are always verified.
 */
export function connect(target: ConnectTarget, rules: ConnectRules, last: LastSession): Connecting {
  let stage: "dns" | "tcp" | "tls" = "dns";
  let opened: Socket | undefined;
  let isOver = false;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const end = (failure: TransportFailure) => {
    isOver = true;
    clearTimeout(timer);
    opened?.destroy();
    reject(failure);
  };
  const timeoutMs = rules.connectTimeoutMs;
  const timer = setTimeout(() => end(timeoutFailure(target, stage, timeoutMs)), timeoutMs);
  const made = (socket: Socket) => {
    opened = socket;
  };

  async function run(): Promise<void> {
    const addresses = await addressesOf(target.hostname, rules);
    if (isOver) return;
    stage = "tcp";
    const tcp = await openTcp(target, addresses, made);
    rules.guard.requireAllowed(tcp.remoteAddress);
    if (!target.secure) return finish(tcp);
    stage = "tls";
    finish(await openTls(tcp, target, rules, last, made));
  }

  function finish(socket: Socket): void {
    clearTimeout(timer);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    resolve(socket);
  }

  run().catch((error: unknown) => end(connectFailure(target, stage, error)));
  return { connected: promise, abandon: () => end(new TransportFailure("timeout", "The attempt timed out.")) };
}

async function addressesOf(hostname: string, rules: ConnectRules): Promise<readonly string[]> {
  if (isIP(hostname) === 0) return rules.guard.allowedOf(hostname, await rules.resolve(hostname));
  rules.guard.requireAllowed(hostname);
  return [hostname];
}

function openTcp(target: ConnectTarget, addresses: readonly string[], made: (socket: Socket) => void): Promise<Socket> {
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
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

function openTls(
  tcp: Socket,
  target: ConnectTarget,
  { secureContext, pins = [], onCertificate }: ConnectRules,
  last: LastSession,
  made: (socket: Socket) => void,
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

function timeoutFailure(target: ConnectTarget, stage: string, timeoutMs: number): TransportFailure {
  const within = `within ${timeoutMs / 1_000} s`;
  if (stage === "dns") return new TransportFailure("dns", `${target.hostname} was not resolved ${within}.`);
  const what = stage === "tls" ? "The TLS handshake was not complete" : "There was no TCP connection";
  return new TransportFailure("connect_timeout", `${what} ${within}.`);
}

function connectFailure(target: ConnectTarget, stage: string, error: unknown): TransportFailure {
  if (error instanceof AddressRefused) return new TransportFailure("address_refused", error.message);
  if (stage === "dns") return new TransportFailure("dns", `${target.hostname} cannot be resolved: ${describe(error)}.`);
  if (stage === "tls") return new TransportFailure("tls", tlsDetail(error, target.hostname));
  if (codeOf(error) === "ETIMEDOUT") return new TransportFailure("connect_timeout", `${describe(error)}.`);
  return new TransportFailure("connect", `${describe(error)}.`);
}
