import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { percentile } from "./statistics.ts";

const writes = 200;
const writeBytes = 8_192;

/** The median cost of one flush to this folder's disk in milliseconds: every commit waits for one. */
export async function fdatasyncP50Ms(folder: string): Promise<number> {
  const path = join(folder, "fdatasync");
  const file = await open(path, "w");
  try {
    const block = Buffer.alloc(writeBytes, 1);
    const times: number[] = [];
    for (let index = 0; index < writes; index += 1) {
      // Over the same pages again and again, as a write-ahead log reuses its files.
      await file.write(block, 0, writeBytes, (index % 16) * writeBytes);
      const startedMs = performance.now();
      await file.datasync();
      times.push(performance.now() - startedMs);
    }
    return percentile(times, 50);
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}
