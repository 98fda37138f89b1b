import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import type { FastifyInstance } from "fastify";

/** No such address on this machine: without IPv6 there is no ::1, and nothing is missing. */
const absent = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/** How long a close waits for requests under way: a caller that never finishes its request must not hold up a stop. */
const closeTimeoutMs = 10_000;

/**
 * Listens on every host, all on one port. Port 0 takes any free one, the same for all. What connects to any of them is
 * the app's own server's, under its time-outs and its bounds. Closing the app closes them all.
 *
 * @returns where it listens, such as http://127.0.0.1:7420
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
    // As the app's own server takes them in: half open, so that who has sent all may still be answered.
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
