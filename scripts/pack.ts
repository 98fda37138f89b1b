import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { packClients } from "./build/clients.ts";
import { packPackages } from "./build/pack.ts";

// `npm run pack -- <folder>`: every package as a .tgz, as it is published, and those in other languages as their
// ecosystems install them. Default: packed/.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const destination = resolve(process.env["INIT_CWD"] ?? root, process.argv[2] ?? "packed");
  const staging = mkdtempSync(join(tmpdir(), "paybell-pack-"));
  try {
    for (const { tarball } of await packPackages(root, { staging, destination })) {
      process.stdout.write(`${relative(process.env["INIT_CWD"] ?? root, tarball)}\n`);
    }
    for (const line of await packClients(root, destination)) process.stdout.write(`${line}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
