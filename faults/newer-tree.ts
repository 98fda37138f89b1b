import { cp, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ownTree } from "./instance.ts";

const migrations = "packages/server/src/store/migrations";
/** After every real one. */
const firstNumber = 9_001;

/**
 * The next version of Paybell: a copy of these sources with more migrations, each of which gives the table that every
 * command writes another column.
 *
 * @param version 1 has one migration more than ours, 2 two
 */
export async function makeNewerTree(folder: string, version: number): Promise<string> {
  const tree = join(folder, `version-${version}`);
  for (const part of ["packages", "test/support/instance-fixtures"]) {
    const filter = (path: string) => !/\/(node_modules|dist)$/.test(path);
    await cp(join(ownTree, part), join(tree, part), { recursive: true, filter });
  }
  await linkModules(tree);
  for (let more = 0; more < version; more += 1) {
    const number = firstNumber + more;
    const sql = `ALTER TABLE transactions ADD COLUMN of_version_${number} text;\n`;
    await writeFile(join(tree, migrations, `${number}_next_version.sql`), sql);
  }
  return tree;
}

/** What is installed is shared; the packages of the copy find each other, not ours. */
async function linkModules(tree: string): Promise<void> {
  const [installed, linked] = [join(ownTree, "node_modules"), join(tree, "node_modules")];
  await mkdir(join(linked, "@paybell"), { recursive: true });
  for (const name of await readdir(installed)) {
    if (!name.startsWith(".") && name !== "@paybell") await symlink(join(installed, name), join(linked, name));
  }
  for (const name of await readdir(join(installed, "@paybell")))
    await symlink(join(tree, "packages", name), join(linked, "@paybell", name));
}
