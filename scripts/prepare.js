// npm runs this after `npm ci` and `npm install` in the repository: `npm start` then has the console's pages. Plain
// JavaScript, because the Node that npm found may be an old one. Without the development tools there is nothing to build.
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
if (existsSync(join(root, "node_modules/vite")) && existsSync(join(root, "packages/console/index.html"))) {
  const { build } = await import("vite");
  await build({ root: join(root, "packages/console"), logLevel: "error" });
}
