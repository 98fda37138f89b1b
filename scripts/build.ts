import { join } from "node:path";
import { emitPackages } from "./build/emit.ts";
import { listPackages } from "./build/packages.ts";
import { writeSupply } from "./build/supply.ts";

// `npm run build`: every package's dist/, from nothing.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const packages = listPackages(root);
  try {
    await emitPackages(root, packages, ({ directory }) => directory);
    await writeSupply(root, packages);
    for (const { manifest, folder } of packages) {
      process.stdout.write(`${manifest.name} ${manifest.version} → packages/${folder}/dist\n`);
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
