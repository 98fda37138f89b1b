import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SmallDisk } from "./small-disk.ts";

let folder: string;
let disk: SmallDisk | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-disk-"));
  disk = await SmallDisk.mount(join(folder, "disk"), 8);
});
afterAll(async () => {
  await disk?.unmount();
  await rm(folder, { recursive: true, force: true });
});

test("a small disk can be filled and freed, where this machine permits to mount one", async ({ skip }) => {
  // Without the right to mount there is nothing that could be filled.
  if (disk === undefined) return skip();
  const write = () => writeFile(join(folder, "disk/file"), Buffer.alloc(64 * 1024));
  await write();
  await disk.fill();
  await expect(writeFile(join(folder, "disk/other"), Buffer.alloc(64 * 1024))).rejects.toThrow(/ENOSPC/);
  await disk.free();
  await writeFile(join(folder, "disk/other"), Buffer.alloc(64 * 1024));
});
