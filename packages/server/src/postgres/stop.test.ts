import { join } from "node:path";
import { Client } from "pg";
import { expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded.ts";
import { temporaryFolder, withoutSync } from "./testing/homes.ts";

const folder = await temporaryFolder();

test("a fast shutdown that hangs becomes an immediate one, and says so", async () => {
  const lines: string[] = [];
  const postgres = await startEmbeddedPostgres({
    home: join(folder, "home"),
    systemDirectory: join(folder, "system"),
    log: (line) => lines.push(line),
    settings: withoutSync,
    stopTimeoutMs: 200,
  });
  const client = new Client({ connectionString: postgres.connectionString });
  client.on("error", () => undefined);
  await client.connect();
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const backend = rows[0]?.pid ?? 0;
  // A stopped process obeys nothing but SIGKILL, which PostgreSQL itself sends 5 s after an immediate shutdown.
  process.kill(backend, "SIGSTOP");
  await postgres.stop();
  await ended;
  expect(lines).toEqual([expect.stringContaining("did not stop within 0.2 s")]);
});
