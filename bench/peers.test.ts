import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { runBench } from "./bench.ts";
import { Cleanup } from "./environment.ts";
import { installedVersion, installPeers } from "./install-peers.ts";
import { peerNames, readOptions } from "./options.ts";
import { redisMissing } from "./redis.ts";

beforeAll(() => installPeers(() => undefined), 300_000);

test("the peers compile against the versions that are installed", async () => {
  // The root's own check leaves them out: `npm ci` there does not install them.
  await promisify(execFile)("tsc", ["-p", join(import.meta.dirname, "peers")]);
});

test("the bench measures each peer, and names its version", async () => {
  const cleanup = new Cleanup();
  try {
    const options = readOptions(["--smoke", "--only", peerNames.join(",")]);
    const { rows, left } = await runBench(options, cleanup, () => undefined);
    // BullMQ needs Redis, which not every machine has.
    expect(left.every(({ name, why }) => name === "bullmq" && why === redisMissing)).toBe(true);
    expect([...rows, ...left].map(({ name }) => name).sort()).toEqual([...peerNames].sort());
    for (const { name, label, perS } of rows) {
      expect(label).toContain(await installedVersion(name));
      expect(perS.median).toBeGreaterThan(0);
    }
  } finally {
    await cleanup.run();
  }
});
