import { Agent } from "undici";
import { type ConnectRules, connectorOf } from "../delivery/transport/connect.ts";
import { problemOf } from "./target.ts";

const answerBytesMax = 64 * 1_024;

/** POSTs to one URL, by the same address guard as callbacks; redirects are not followed. */
export class HttpTarget {
  readonly #url: URL;
  readonly #agent: Agent;

  /** @param rules the addresses that it may connect to */
  constructor(url: string, rules: ConnectRules) {
    this.#url = new URL(url);
    this.#agent = new Agent({ connections: 5, connect: connectorOf(rules) });
  }

  /** @returns why it was not accepted; undefined for a 2xx */
  async post(
    body: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { origin, pathname, search } = this.#url;
    try {
      const answer = await this.#agent.request({
        origin,
        path: pathname + search,
        method: "POST",
        signal,
        headers: { "content-type": "application/json", ...headers },
        body,
      });
      await answer.body.dump({ limit: answerBytesMax, signal }).catch(() => undefined);
      return answer.statusCode >= 200 && answer.statusCode < 300 ? undefined : `status ${answer.statusCode}`;
    } catch (error) {
      return problemOf(error);
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
