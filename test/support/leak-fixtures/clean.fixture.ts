import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, test } from "vitest";

const server = createServer();
afterAll(async () => {
  server.close();
  await once(server, "close");
});

test("everything is closed, and what is left does not keep the process alive", async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
  clearInterval(setInterval(() => undefined, 60_000));
  setInterval(() => undefined, 60_000).unref();
  await once(spawn("true"), "exit");
});
