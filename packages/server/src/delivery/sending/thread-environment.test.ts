import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { threadEnvironment } from "./thread-environment.ts";

test("a thread's environment only names the folder of compiled code", async () => {
  enableCompileCache(fileURLToPath(new URL("../../../../../node_modules/.cache/paybell", import.meta.url)));
  process.env["PAYBELL_MASTER_KEY"] ??= "nothing that a thread may know";
  const source = 'require("node:worker_threads").parentPort.postMessage({ ...process.env })';
  const thread = new Worker(source, { eval: true, env: threadEnvironment() });
  const seen = await new Promise((resolve) => thread.once("message", resolve));
  await thread.terminate();
  expect(Object.keys(seen as object)).toEqual(["NODE_COMPILE_CACHE"]);
});
