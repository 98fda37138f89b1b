import { createServer } from "node:net";
import { test } from "vitest";

test("a server that is never closed", async () => {
  await new Promise<void>((resolve) => createServer().listen(0, "127.0.0.1", resolve));
});
