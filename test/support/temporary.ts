import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is removed after its test. By its name it is no run's (leftovers.ts), which another run may remove. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "paybell-folder-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Has a server listen on this machine until its test has ended. @returns its port */
export async function listening(server: Server): Promise<number> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    if ("closeAllConnections" in server) (server as HttpServer).closeAllConnections();
    if (server.listening) await once(server.close(), "close");
  });
  return (server.address() as AddressInfo).port;
}
