import { once } from "node:events";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type SecureContextOptions } from "node:tls";
import { messageOf } from "../../../errors.ts";
import { FrameReader, type Framing } from "./wire.ts";

export interface Host {
  readonly host: string;
  readonly port: number;
}

export interface ConnectionOptions {
  readonly framing: Framing;
  readonly connectTimeoutMs: number;
  /** Undefined: TCP without TLS. */
  readonly tls: TlsOptions | undefined;
  readonly onMessage: (message: Buffer) => void;
}

/**
 * The client certificate, where the host asks for one, and the authorities that may vouch for the host. Its certificate
 * must be valid for the name by which it is called.
 */
export type TlsOptions = Pick<SecureContextOptions, "ca" | "cert" | "key">;

/** Bytes that the operating system has not accepted yet: more of them mean that the host no longer reads. */
const unsentBytesMax = 1_024 * 1_024;
const keepAliveMs = 15_000;

export class HostConnection {
  readonly #socket: Socket;
  /** Resolves with why, when it has ended; never rejects. */
  readonly ended: Promise<string>;
  readonly #end: (why: string) => void;

  constructor(socket: Socket, { framing, onMessage }: Pick<ConnectionOptions, "framing" | "onMessage">) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#socket = socket;
    this.ended = promise;
    this.#end = resolve;
    const reader = new FrameReader(framing);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepAliveMs);
    socket.on("data", (bytes: Buffer) => {
      try {
        for (const message of reader.push(bytes)) if (message.length > 0) onMessage(message);
      } catch (error) {
        this.close(messageOf(error));
      }
    });
    socket.on("error", (error) => resolve(error.message));
    socket.on("end", () => this.close("the host closed the connection"));
    socket.on("close", () => resolve("the connection closed"));
  }

  /** @returns false if the message is certainly not sent: nothing of it was written */
  send(frame: Buffer): boolean {
    if (!this.#socket.writable || this.#socket.writableLength > unsentBytesMax) return false;
    this.#socket.write(frame);
    return true;
  }

  close(why: string): void {
    this.#end(why);
    this.#socket.destroy();
  }
}

/** Rejects with a sentence if there is no connection, or not in time. */
export async function connectTo(host: Host, options: ConnectionOptions, signal: AbortSignal): Promise<HostConnection> {
  // An address is not a valid server name (RFC 6066); the certificate is checked against it anyway.
  const named = isIP(host.host) === 0 ? { servername: host.host } : {};
  const socket =
    options.tls === undefined
      ? connectTcp(host)
      : connectTls({ ...host, ...named, ...options.tls, minVersion: "TLSv1.2" });
  const late = AbortSignal.timeout(options.connectTimeoutMs);
  try {
    const event = options.tls === undefined ? "connect" : "secureConnect";
    await once(socket, event, { signal: AbortSignal.any([signal, late]) });
    return new HostConnection(socket, options);
  } catch (error) {
    socket.on("error", () => undefined);
    socket.destroy();
    if (signal.aborted) throw new Error("the link was closed");
    throw new Error(late.aborted ? `no connection within ${options.connectTimeoutMs} ms` : messageOf(error));
  }
}
