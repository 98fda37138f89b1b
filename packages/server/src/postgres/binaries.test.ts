import { cp, lstat, readFile, readlink, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { installedBinaries, majorOf, makeLinks } from "./binaries.ts";
import { runTool } from "./process.ts";
import { temporaryFolder } from "./testing/homes.ts";

const folder = await temporaryFolder();

interface Link {
  source: string;
  target: string;
}

test("a platform without binaries gets an error that says how to install them", async () => {
  await expect(installedBinaries("linux-s390x")).rejects.toMatchObject({
    code: "binaries_missing",
    message: expect.stringContaining("linux-s390x"),
    remedy: expect.stringMatching(/npm ci.*DATABASE_URL/),
  });
});

test("a tree that npm unpacked without its links gets them, by as many starts at once as there are", async () => {
  const installed = await installedBinaries();
  expect(majorOf(installed)).toBe("18");
  const native = join(folder, "native");
  await cp(installed.native, native, { recursive: true, verbatimSymlinks: true });
  const links: Link[] = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8"));
  expect(links.length).toBeGreaterThan(0);
  const at = (path: string) => join(folder, path);
  for (const { target } of links) await rm(at(target), { force: true });
  const postgres = join(native, "bin", "postgres");
  const before = await runTool(postgres, ["--version"], undefined);

  await Promise.all(Array.from({ length: 10 }, () => makeLinks(native)));
  for (const { source, target } of links) {
    expect((await lstat(at(target))).isSymbolicLink()).toBe(true);
    expect(join(at(target), "..", await readlink(at(target)))).toBe(at(source));
  }
  expect(before.exitCode).not.toBe(0);
  expect(await runTool(postgres, ["--version"], undefined)).toMatchObject({ exitCode: 0 });
});
