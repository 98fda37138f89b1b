import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { queryOnce, temporaryFolder } from "./testing/homes.ts";
import { spawnService } from "./testing/service-process.ts";

const folder = await temporaryFolder();

const onLinux = process.platform === "linux";

// A process's environment is in /proc, which only Linux has.
test.runIf(onLinux)(
  "no process of PostgreSQL has a secret of ours in its environment, nor our process group",
  async () => {
    const secret = "c2VjcmV0IG1hc3RlciBrZXk";
    const service = spawnService({
      home: join(folder, "home"),
      systemDirectory: join(folder, "system"),
      environment: { PAYBELL_MASTER_KEY: secret, DATABASE_URL: `postgres://${secret}@elsewhere/x`, PGPORT: "9" },
    });
    const { pid, connectionString } = await service.report;
    const rows = await queryOnce<{ pid: number }>(connectionString, "SELECT pid FROM pg_stat_activity");
    const pids = [pid, ...rows.map((row) => row.pid)];
    expect(pids.length).toBeGreaterThan(3);
    const living = new Set(await readdir("/proc"));
    for (const each of pids.filter((candidate) => living.has(String(candidate)))) {
      const environment = await readFile(`/proc/${each}/environ`, "utf8").catch(() => "");
      expect(environment).not.toContain(secret);
      expect(environment).not.toMatch(/PAYBELL|DATABASE_URL|PGPORT/);
    }
    expect((await readFile(`/proc/${pid}/environ`, "utf8")).split("\0").map((entry) => entry.split("=")[0])).toEqual(
      expect.arrayContaining(["PATH", "LANG", "TZ"]),
    );
    expect(await processGroup(pid)).toBe(pid);
    await service.stop();
  },
);

async function processGroup(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
}
