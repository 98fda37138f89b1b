import { once } from "node:events";
import { createServer } from "node:net";
import { acquireServiceLock, livingHolders } from "../postgres/service-lock.ts";

/** No such address on this machine: without IPv6 there is no ::1, and nothing is missing. */
const absent = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

interface PortOptions {
  /** Of the embedded PostgreSQL; left out with a database of one's own: who holds the home explains nothing then. */
  readonly home?: string | undefined;
  /** By which the port was chosen. */
  readonly setting?: string;
}

/**
 * Rejects when the port cannot be listened on, before anything is started that takes time. Whoever started the service
 * a second time on its home is told of that: it is why the port is taken. Measured: 1 ms.
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

async function requireFreeHome(home: string): Promise<void> {
  if ((await livingHolders(home)).length > 0) await (await acquireServiceLock(home)).release();
}
