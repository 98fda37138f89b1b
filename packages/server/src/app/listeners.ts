import type { Config } from "../config.ts";
import type { HttpDependencies } from "../http/dependencies.ts";
import { createHttp } from "../http/server.ts";
import { listenOn } from "./listen.ts";

export interface Listeners {
  /** @returns the URLs for partners */
  listen(): Promise<readonly string[]>;
  /** The URLs for operators. */
  operatorUrls(): readonly string[];
  close(): Promise<void>;
}

interface ListenersOptions {
  readonly config: Pick<Config, "port" | "operatorPort">;
  readonly hosts: readonly string[];
  readonly operatorHosts?: readonly string[];
}

/** One listener for everybody, or one for partners and one for operators: neither serves the routes of the other. */
export function openListeners(parts: HttpDependencies, { config, hosts, operatorHosts }: ListenersOptions): Listeners {
  const partners = createHttp(parts, operatorHosts === undefined ? "all" : "partners");
  const operators = operatorHosts === undefined ? undefined : createHttp(parts, "operators");
  let operatorUrls: readonly string[] = [];
  return {
    async listen() {
      if (operators !== undefined) operatorUrls = await listenOn(operators, operatorHosts ?? [], config.operatorPort);
      const urls = await listenOn(partners, hosts, config.port);
      if (operators === undefined) operatorUrls = urls;
      return urls;
    },
    operatorUrls: () => operatorUrls,
    async close() {
      await Promise.all([partners.close(), operators?.close()]);
    },
  };
}
