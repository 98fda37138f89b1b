import { execFile } from "node:child_process";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ownTree } from "./instance.ts";

const run = promisify(execFile);

const migrations = "packages/server/src/store/schema/migrations";
/** After every real one. */
const firstNumber = 9_001;
/** The tables that every command or delivery reads and writes. */
const tables = ["transactions", "notifications", "pending", "terminals", "endpoints", "partners"];

/**
 * A later version of Paybell: a copy of these sources with more migrations, which add a column to each busy table.
 * Statements that the previous version has prepared must still work.
 *
 * @param version 1 is the next one, 2 the one after it
 */
export async function makeNewerTree(folder: string, version: number): Promise<string> {
  const tree = join(folder, `version-${version}`);
  await mkdir(join(tree, "test/support"), { recursive: true });
  // By a process of its own: file by file it would take this one, which has the load to answer, a minute.
  for (const part of ["packages", "test/support/instance-fixtures"])
    await run("cp", ["-R", join(ownTree, part), join(tree, part)]);
  await linkModules(tree);
  for (const [at, name] of Array.from({ length: version }, () => tables)
    .flat()
    .entries()) {
    const number = firstNumber + at;
    const mark = name === "partners" ? "" : "--! homes\n";
    const sql = `${mark}ALTER TABLE ${name} ADD COLUMN of_migration_${number} text;\n`;
    await writeFile(join(tree, migrations, `${number}_${name}.sql`), sql);
  }
  return tree;
}

/** Installed packages are shared; the packages of the copy find each other, not ours. */
async function linkModules(tree: string): Promise<void> {
  const [installed, linked] = [join(ownTree, "node_modules"), join(tree, "node_modules")];
  await mkdir(join(linked, "@paybell"), { recursive: true });
  const names = (await readdir(installed)).filter((name) => !name.startsWith(".") && name !== "@paybell");
  const ours = await readdir(join(installed, "@paybell"));
  await Promise.all([
    ...names.map((name) => symlink(join(installed, name), join(linked, name))),
    ...ours.map((name) => symlink(join(tree, "packages", name), join(linked, "@paybell", name))),
  ]);
}
