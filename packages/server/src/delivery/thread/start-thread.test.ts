import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startThread } from "./start-thread.ts";

test("a thread's environment has the folder of compiled code and what it is given", async () => {
  enableCompileCache(fileURLToPath(new URL("../../../../../node_modules/.cache/paybell", import.meta.url)));
  process.env["PAYBELL_MASTER_KEY"] ??= "nothing that a thread may know";
  const source = 'import { parentPort } from "node:worker_threads"; parentPort.postMessage({ ...process.env })';
  const exited = Promise.withResolvers<number>();
  const seen = await new Promise<object>((resolve) => {
    startThread<object>({
      entry: new URL(`data:text/javascript,${encodeURIComponent(source)}`),
      name: "a thread of a test",
      logName: "a thread of a test",
      environment: { PGPASSWORD: "a password" },
      limits: {},
      log: { warn: () => undefined, error: () => undefined },
      onMessage: resolve,
      onExit: exited.resolve,
    });
  });
  expect(Object.keys(seen).sort()).toEqual(["NODE_COMPILE_CACHE", "PGPASSWORD"]);
  expect(await exited.promise).toBe(0);
});
