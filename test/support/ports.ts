import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

const portsPerProcess = 200;
let nextPort = randomInt(portsPerProcess);

/**
 * A port that stays free until it is used. It lies below the range that the system gives to connections and to
 * servers that listen on port 0. Each of vitest's processes has a range of its own and hands its ports out in turn.
 */
export async function freePort(): Promise<number> {
  // Not 10_000: fetch refuses the port 10080.
  const first = 10_200 + (Number(process.env["VITEST_POOL_ID"] ?? 0) % 100) * portsPerProcess;
  for (;;) {
    const port = first + (nextPort++ % portsPerProcess);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
  } catch {
    return false;
  }
  await once(server.close(), "close");
  return true;
}
