import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../../test/support/temporary.ts";
import { readers, UnreadableFile } from "./read-file.ts";

test.each(["", "\n{}"])("a line of over 8 MiB is refused before it is kept whole, followed by %j", async (after) => {
  const folder = temporaryFolder();
  const path = join(folder, "long.jsonl");
  await writeFile(path, `{"externalId":"s-1"}\n${"x".repeat(9 * 1024 * 1024)}${after}`);
  const entries = readers[".jsonl"](path);
  expect(await entries.next()).toMatchObject({ value: { line: 1, item: { externalId: "s-1" } } });
  await expect(entries.next()).rejects.toThrow(UnreadableFile);
});
