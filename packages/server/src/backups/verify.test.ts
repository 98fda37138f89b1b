import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { readArchive } from "./verify.ts";

const bytes = 16 * 1024 * 1024;
/** Segments 255 of the first 4 GiB, and 0 and 1 of the next. */
const segments = ["0000000200000000000000FF", "000000020000000100000000", "000000020000000100000001"];

/** An archive of these files, each as long as a segment, unless it says otherwise. */
async function archive(...files: readonly (string | readonly [name: string, length: number])[]) {
  const folder = temporaryFolder();
  for (const file of files) {
    const [name, length] = typeof file === "string" ? [file, bytes] : file;
    await writeFile(join(folder, name), "");
    await truncate(join(folder, name), length);
  }
  return folder;
}

const read = (folder: string, startLsn = "0/FF000028") =>
  readArchive(folder, { timeline: 2, startLsn, walSegmentBytes: bytes });

test("an archive without a gap is read from the backup's beginning to its own end, on the backup's timeline", async () => {
  const others = ["0000000200000000000000FD", "000000010000000100000002", "000000030000000100000002"];
  const folder = await archive(
    ...others,
    ...segments,
    ...(["00000001.history", "00000002.history", "0000000A.history", "00000003.history"] as const).map(
      (name) => [name, 1] as const,
    ),
    ["000000020000000100000002.partial", 1],
  );
  const laterTimelines = ["00000003", "0000000A"];
  const found = { first: segments[0], last: segments[2], lastAtMs: expect.any(Number), laterTimelines };
  expect(await read(folder)).toEqual({ segments: 3, ...found });
  expect(await read(folder, "1/0")).toEqual({ segments: 2, ...found, first: segments[1] });
  expect(await read(folder, "1/1FFFFFF")).toEqual({ segments: 1, ...found, first: segments[2] });
});

const [first = "", second = "", third = ""] = segments;

test.each([
  ["begins too late", [second, third], `lacks ${first}`],
  ["has a gap", [first, third], `lacks ${second}`],
  ["was cut off within a segment", [first, [second, bytes - 1], third], `has cut off ${second}`],
  ["was cut off at its end", [first, second, [third, 0]], `has cut off ${third}`],
  ["ends before the backup begins", ["0000000200000000000000FE"], `has nothing from ${first} on`],
  ["is of another timeline", segments.map((name) => name.replace("2", "1")), `has nothing from ${first} on`],
] as const)("an archive that %s is refused", async (_, files, words) => {
  await expect(read(await archive(...files))).rejects.toThrow(words);
});

test("an archive that is not there is refused", async () => {
  await expect(read("/nowhere/archive")).rejects.toThrow("The archive cannot be read: ENOENT");
});
