// Builds the console's pages: `npm run console`, and the first `npm start`. Plain JavaScript, because an old Node may run
// it. With --if-missing only where they were never built; without the development tools there is nothing to build with.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const isBuilt = existsSync(join(root, "packages/console/dist/index.html"));
const isWanted = !(process.argv.includes("--if-missing") && isBuilt);

if (isWanted && existsSync(join(root, "node_modules/vite"))) {
  process.stdout.write("Building the console's pages, once: a few seconds …\n");
  const { build } = await import("vite");
  await build({ root: join(root, "packages/console"), logLevel: "error" });
}
