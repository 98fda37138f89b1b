import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import type { FastifyInstance } from "fastify";

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
