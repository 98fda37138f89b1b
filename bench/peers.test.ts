import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { needs } from "../test/support/programs.ts";
import { runBench } from "./bench.ts";
import { Cleanup } from "./command.ts";
import { installedVersion, installPeers } from "./install-peers.ts";
import { peerNames, readOptions } from "./options.ts";

beforeAll(() => installPeers(() => undefined));

test("the peers compile against the versions that are installed", async () => {
  // The root's own check leaves them out: `npm ci` there does not install them.
  await promisify(execFile)("tsc", ["-p", join(import.meta.dirname, "peers")]);
});

// BullMQ needs Redis, which not every machine has.
const measured = [
  { of: "the peers on PostgreSQL", names: peerNames.filter((name) => name !== "bullmq"), needed: needs() },
  { of: "BullMQ", names: ["bullmq"], needed: needs("redis") },
] as const;

for (const { of, names, needed } of measured) {
  test(`the bench measures ${of}, and names the version`, needed, async () => {
    const cleanup = new Cleanup();
    try {
      const options = readOptions(["--smoke", "--only", names.join(",")]);
      const { rows, left } = await runBench(options, cleanup, () => undefined);
      expect(left).toEqual([]);
      expect(rows.map(({ name }) => name).sort()).toEqual([...names].sort());
      for (const { name, label, perS } of rows) {
        expect(label).toContain(await installedVersion(name));
        expect(perS.median).toBeGreaterThan(0);
      }
    } finally {
      await cleanup.run();
    }
  });
}
