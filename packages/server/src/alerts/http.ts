import { Agent, type buildConnector } from "undici";
import { type ConnectRules, connect } from "../delivery/transport/connect.ts";
import { problemOf } from "./target.ts";

const answerBytesMax = 64 * 1_024;

/** POSTs to one URL; redirects are not followed. */
export class HttpTarget {
  readonly #url: URL;
  readonly #agent: Agent;

  /** @param rules the addresses that it may connect to */
  constructor(url: string, rules: ConnectRules) {
    this.#url = new URL(url);
    this.#agent = new Agent({ connections: 5, connect: guarded(rules) });
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

/** Alerts pass the same address guard as callbacks. */
function guarded(rules: ConnectRules): buildConnector.connector {
  return ({ hostname, port, protocol }, callback) => {
    const secure = protocol === "https:";
    const target = { hostname, port: Number(port || (secure ? 443 : 80)), secure };
    connect(target, rules, { session: undefined }).connected.then(
      (socket) => callback(null, socket),
      (failure: Error) => callback(failure, null),
    );
  };
}
