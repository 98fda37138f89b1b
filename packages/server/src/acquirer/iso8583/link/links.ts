import { NotSent } from "../../acquirer.ts";
import type { IsoMessage } from "../message/codec.ts";
import { Exchanges } from "./exchanges.ts";
import { Link, type LinkOptions, type LinkState, type RequestOptions } from "./link.ts";

/**
 * Several connections to an acquirer's hosts, used in turn. All requests go to one host: of those that are connected,
 * the one that is named first. An answer may come over any connection.
 */
export class Links {
  readonly #hosts: readonly string[];
  readonly #links: readonly Link[];
  #requests = 0;

  /** @param connections to each host */
  constructor(options: Omit<LinkOptions, "exchanges">, connections: number) {
    const exchanges = new Exchanges(options.clock);
    this.#hosts = options.hosts.map(({ host, port }) => `${host}:${port}`);
    this.#links = Array.from({ length: connections }, () => new Link({ ...options, exchanges }));
  }

  start(): void {
    for (const link of this.#links) link.start();
  }

  get isUp(): boolean {
    return this.#links.some((link) => link.isUp);
  }

  /** The host to which a request would go now, as name and port. */
  get host(): string | undefined {
    return this.#hosts.find((host) => this.#links.some((link) => link.host === host));
  }

  /** The time since the last connection ended that was up; 0 while one is connected. */
  get downMs(): number {
    return Math.min(...this.#links.map((link) => link.downMs));
  }

  state(): LinkState {
    const { host } = this;
    const at = this.#links.filter((link) => host !== undefined && link.host === host);
    const none = { isUp: false, isSignedOff: false, detail: "there is no connection" };
    const signedOff = this.#links.find((link) => link.state().isSignedOff);
    const state = (at[0] ?? signedOff ?? this.#links[0])?.state() ?? none;
    if (this.#links.length === 1 || !state.isUp) return state;
    return { ...state, detail: `${state.detail}, over ${at.length} of ${this.#links.length} connections` };
  }

  async isUpWithin(timeoutMs: number): Promise<boolean> {
    const waits = this.#links.map(async (link) => {
      if (!(await link.isUpWithin(timeoutMs))) throw new NotSent(link.state().detail);
      return true;
    });
    return Promise.any(waits).catch(() => this.isUp);
  }

  /** Sends a request at once over the next connection, and waits for its answer; rejects as {@link Link.request}. */
  request(message: IsoMessage, options: RequestOptions): Promise<IsoMessage> {
    const { host } = this;
    const usable = this.#links.filter((link) => link.host === host && link.isUp);
    this.#requests += 1;
    const link = usable[this.#requests % usable.length] ?? this.#links[0];
    return link === undefined ? Promise.reject(new NotSent("There is no connection")) : link.request(message, options);
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.close()));
  }
}
