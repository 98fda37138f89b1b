import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";

/** No such address on this machine: without IPv6 there is no ::1, and nothing is missing. */
const absent = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/** How long a close waits for requests under way: a caller that never finishes its request must not hold up a stop. */
const closeTimeoutMs = 10_000;

/**
 * Listens on every host, all on one port. Port 0 takes any free one, the same for all. Closing the app closes them all.
 *
 * @returns where it listens, such as http://127.0.0.1:7420
 */
export async function listenOn(
  app: FastifyInstance,
  hosts: readonly string[],
  port: number,
): Promise<readonly string[]> {
  const [first = "127.0.0.1", ...others] = hosts;
  const servers: Server[] = [];
  let cut: NodeJS.Timeout | undefined;
  app.addHook("preClose", async () => {
    cut = setTimeout(() => {
      for (const server of [app.server, ...servers]) server.closeAllConnections();
    }, closeTimeoutMs);
  });
  app.addHook("onClose", async () => {
    await Promise.all(servers.map(close));
    clearTimeout(cut);
  });
  await app.listen({ host: first, port });
  const { port: taken } = app.server.address() as AddressInfo;
  const urls = [urlOf(first, taken)];
  for (const host of others) {
    const server = createServer((request, response) => app.routing(request, response));
    // Set, not passed as options: those refuse a request's time that is shorter than the default for its head.
    Object.assign(server, timeoutsOf(app.server));
    // What is no HTTP, or comes too slowly, is answered here as on the first host.
    for (const refuse of app.server.listeners("clientError")) server.on("clientError", refuse as () => void);
    try {
      await once(server.listen(taken, host), "listening");
    } catch (error) {
      if (absent.has((error as NodeJS.ErrnoException).code ?? "")) continue;
      throw error;
    }
    servers.push(server);
    urls.push(urlOf(host, taken));
  }
  return urls;
}

function timeoutsOf({ requestTimeout, headersTimeout, keepAliveTimeout }: Server) {
  return { requestTimeout, headersTimeout, keepAliveTimeout };
}

async function close(server: Server): Promise<void> {
  const closed = once(server.close(), "close");
  server.closeIdleConnections();
  await closed;
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
