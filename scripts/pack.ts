import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { packClients } from "./build/clients.ts";
import { packExecutable } from "./build/executable.ts";
import { packPackages } from "./build/pack.ts";

// `npm run pack -- <folder>`: every package as a .tgz, as it is published, those in other languages as their ecosystems
// install them, and `paybell` as one executable file. Default: packed/.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const destination = resolve(process.env["INIT_CWD"] ?? root, process.argv[2] ?? "packed");
  const staging = mkdtempSync(join(tmpdir(), "paybell-pack-"));
  try {
    const packed = await packPackages(root, { staging, destination });
    const executable = await packExecutable(root, packed, { staging, destination });
    for (const path of [...packed.map(({ tarball }) => tarball), executable]) {
      process.stdout.write(`${relative(process.env["INIT_CWD"] ?? root, path)}\n`);
    }
    for (const line of await packClients(root, destination)) process.stdout.write(`${line}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
