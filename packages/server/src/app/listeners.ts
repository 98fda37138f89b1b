import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Config } from "../config/config.ts";
import type { HttpDependencies } from "../http/dependencies.ts";
import { createHttp } from "../http/server.ts";
import { requireFreeHome } from "../postgres/service-lock.ts";

interface ListenersOptions {
  readonly config: Pick<Config, "port" | "operatorPort">;
  readonly hosts: readonly string[];
  readonly operatorHosts?: readonly string[];
}

/** One listener for everybody, or one for partners and one for operators: neither serves the routes of the other. */
export function openListeners(parts: HttpDependencies, { config, hosts, operatorHosts }: ListenersOptions) {
  const partners = createHttp(parts, operatorHosts === undefined ? "all" : "partners");
  const operators = operatorHosts === undefined ? undefined : createHttp(parts, "operators");
  let operatorUrls: readonly string[] = [];
  return {
    /** @returns the URLs for partners */
    async listen() {
      if (operators !== undefined) operatorUrls = await listenOn(operators, operatorHosts ?? [], config.operatorPort);
      const urls = await listenOn(partners, hosts, config.port);
      if (operators === undefined) operatorUrls = urls;
      return urls;
    },
    /** The URLs for operators. */
    operatorUrls: () => operatorUrls,
    async close() {
      await Promise.all([partners.close(), operators?.close()]);
    },
  };
}

/** No such address on this machine: without IPv6 there is no ::1, which is fine. */
const absent = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/** The timeout of a close for running requests: a caller that never finishes its request must not delay a stop. */
const closeTimeoutMs = 10_000;

/**
 * Listens on every host, on the same port. Port 0 uses a free one, the same for all. All connections belong to the
 * app's own server, with its timeouts and limits. Closing the app closes them all.
 *
 * @returns the URLs, such as http://127.0.0.1:7420
 */
export async function listenOn(
  app: FastifyInstance,
  hosts: readonly string[],
  port: number,
): Promise<readonly string[]> {
  const [first = "127.0.0.1", ...others] = hosts;
  const doors: Server[] = [];
  let cut: NodeJS.Timeout | undefined;
  app.addHook("preClose", async () => {
    cut = setTimeout(() => app.server.closeAllConnections(), closeTimeoutMs);
  });
  app.addHook("onClose", async () => {
    const closed = doors.map((door) => once(door.close(), "close"));
    app.server.closeIdleConnections();
    await Promise.all(closed);
    clearTimeout(cut);
  });
  await app.listen({ host: first, port });
  const { port: taken } = app.server.address() as AddressInfo;
  const urls = [urlOf(first, taken)];
  for (const host of others) {
    // As the app's own server accepts them: half open, so that a client that has sent everything still gets its answer.
    const door = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      app.server.emit("connection", socket);
    });
    try {
      await once(door.listen(taken, host), "listening");
    } catch (error) {
      if (absent.has((error as NodeJS.ErrnoException).code ?? "")) continue;
      throw error;
    }
    doors.push(door);
    urls.push(urlOf(host, taken));
  }
  return urls;
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

interface PortOptions {
  /**
   * The home of the embedded PostgreSQL; absent with another database: then the holder of the home is not the reason.
   */
  readonly home?: string | undefined;
  /** The setting that chose the port. */
  readonly setting?: string;
}

/**
 * Rejects if the port is not free, before anything slow is started. If the service is already running on this home, the
 * error says so. Measured: 1 ms.
 */
export async function requireFreePort(
  hosts: readonly string[],
  port: number,
  { home, setting = "PAYBELL_PORT" }: PortOptions,
): Promise<void> {
  try {
    for (const host of hosts) await tryPort(host, port);
  } catch (error) {
    if (home !== undefined) await requireFreeHome(home);
    throw Object.assign(error as Error, { setting });
  }
}

async function tryPort(host: string, port: number): Promise<void> {
  const server = createServer();
  try {
    await once(server.listen({ host, port }), "listening");
  } catch (error) {
    if (absent.has((error as NodeJS.ErrnoException).code ?? "")) return;
    throw error;
  }
  await once(server.close(), "close");
}
