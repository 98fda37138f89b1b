import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "vitest";

test("a socket that is never ended", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => connect(port, "127.0.0.1", resolve));
  server.close();
});
