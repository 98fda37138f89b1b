import type { Socket } from "node:net";
import { Client } from "undici";
import { type Connecting, type ConnectRules, connect, type LastSession, targetOf } from "./connect.ts";
import { ResponseHead } from "./response-head.ts";

/**
 * Idle connections are kept this long unless the partner's Keep-Alive header says otherwise. If a partner closes
 * earlier, it costs one repetition on a new connection, within the attempt.
 */
const keepAliveMs = 30_000;
const keepAliveMaxMs = 60_000;
const headBytesMax = 16 * 1_024;

/** The sender may no longer write. */
export class WriteForbidden extends Error {
  override readonly name = "WriteForbidden";
}

/**
 * One connection at a time to one origin of one partner, for one request at a time. After it was closed, the next
 * request connects again.
 */
export class Connection {
  readonly client: Client;
  /** The head of the response being received. */
  readonly head = new ResponseHead();
  /** The address connected to, or last connected to; null also if a proxy looked it up. */
  address: string | null = null;
  /** Called when a new socket is ready, before the request is written to it. */
  mayWrite: () => boolean = () => true;
  /** Responses received over the current socket. */
  answers = 0;
  #connecting: Connecting | undefined;

  constructor(origin: string, rules: ConnectRules, lastSession: LastSession) {
    this.client = new Client(origin, {
      connect: (target, callback) => {
        const connecting = connect(targetOf(target), rules, lastSession);
        this.#connecting = connecting;
        connecting.connected.then(
          ({ socket, address }) => {
            this.#took(socket, address);
            if (this.mayWrite()) return callback(null, socket);
            socket.destroy();
            callback(new WriteForbidden(), null);
          },
          (failure: Error) => callback(failure, null),
        );
      },
      pipelining: 1,
      allowH2: false,
      // The attempt has one deadline for everything; these would only bound the pauses in between.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMaxMs,
      maxHeaderSize: headBytesMax,
    });
  }

  #took(socket: Socket, address: string | null): void {
    this.head.watch(socket);
    this.#connecting = undefined;
    this.address = address;
    this.answers = 0;
  }

  /** Closes it at once; a running request fails. */
  destroy(): void {
    this.#connecting?.abandon();
    // Resolves when the socket is closed, and never rejects.
    void this.client.destroy();
  }
}
