import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { embeddedPrograms, openUp, PostgresCluster, SmallDisk } from "./postgres.ts";

test("a standby has what its dead primary had, and takes writes; the next one is cloned from it", async () => {
  const folder = await openUp(await mkdtemp(join(tmpdir(), "paybell-faults-")));
  const cluster = await PostgresCluster.start(folder, await embeddedPrograms(folder), true);
  try {
    await cluster.primary.query("CREATE TABLE kept AS SELECT 1 AS n");
    await cluster.failOver();
    await expect(cluster.failOver()).rejects.toThrow("There is no standby to fail over to.");
    await cluster.primary.query("INSERT INTO kept VALUES (2)");
    await cluster.addStandby();
    await cluster.primary.query("INSERT INTO kept VALUES (3)");
    await cluster.failOver();
    expect(await cluster.primary.query("SELECT n FROM kept ORDER BY n")).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    await cluster.primary.kill();
    await cluster.primary.start();
    expect(await cluster.primary.query("SELECT count(*)::int AS n FROM kept")).toEqual([{ n: 3 }]);
  } finally {
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

test("a small disk can be filled and freed, where this machine permits to mount one", async ({ skip }) => {
  const folder = await mkdtemp(join(tmpdir(), "paybell-disk-"));
  const disk = await SmallDisk.mount(join(folder, "disk"), 8);
  try {
    // Without the right to mount there is nothing that could be filled.
    if (disk === undefined) return skip();
    const write = (name: string) => writeFile(join(folder, "disk", name), Buffer.alloc(64 * 1024));
    await write("file");
    await disk.fill();
    await expect(write("other")).rejects.toThrow(/ENOSPC/);
    await disk.free();
    await write("other");
  } finally {
    await disk?.unmount();
    await rm(folder, { recursive: true, force: true });
  }
});
