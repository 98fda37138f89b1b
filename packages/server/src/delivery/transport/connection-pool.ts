import type { ConnectRules, LastSession } from "./connect.ts";
import { Connection } from "./connection.ts";

/**
 * The connections to one origin of one partner, never shared with another. The one used last is used again first, so
 * that surplus ones become idle.
 */
export class ConnectionPool {
  readonly version: string;
  readonly #origin: string;
  readonly #rules: ConnectRules;
  readonly #lastSession: LastSession = { session: undefined };
  readonly #idle: Connection[] = [];
  #busy = 0;
  #closed = false;
  usedMs = 0;

  constructor(origin: string, version: string, rules: ConnectRules) {
    this.#origin = origin;
    this.version = version;
    this.#rules = rules;
  }

  get idle(): number {
    return this.#idle.length;
  }

  get busy(): number {
    return this.#busy;
  }

  /**
   * Acquires a connection for one request, to be released or dropped. Their number is bounded by the slots of the
   * callers.
   */
  acquire(): Connection {
    this.#busy += 1;
    return this.#idle.pop() ?? new Connection(this.#origin, this.#rules, this.#lastSession);
  }

  /** As `acquire`, but certainly without a socket that was used before. */
  acquireNew(): Connection {
    this.#busy += 1;
    return new Connection(this.#origin, this.#rules, this.#lastSession);
  }

  /** The response was received completely. False if the pool was closed, and the connection with it. */
  release(connection: Connection): boolean {
    this.#busy -= 1;
    if (this.#closed) connection.destroy();
    else this.#idle.push(connection);
    return !this.#closed;
  }

  drop(connection: Connection): void {
    this.#busy -= 1;
    connection.destroy();
  }

  /** Closes the connection that was idle longest. */
  shed(): void {
    this.#idle.shift()?.destroy();
  }

  /** Closes idle connections now, and busy ones when they have their response. */
  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}
