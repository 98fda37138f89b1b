import { once } from "node:events";
import { connect } from "node:net";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { listenOn } from "./listeners.ts";

// Elsewhere than on Linux 127.0.0.2 has to be set up first.
test.runIf(process.platform === "linux")("every host refuses input that is not HTTP as the first does", async () => {
  // Shorter than Node's own 60 s for a request's head, as the service has it.
  const app = Fastify({
    requestTimeout: 30_000,
    clientErrorHandler: (error, socket) => socket.end(`refused ${error.code}`),
  });
  let connections = 0;
  app.server.on("connection", () => (connections += 1));
  onTestFinished(() => app.close());
  const urls = await listenOn(app, ["127.0.0.1", "127.0.0.2"], 0);
  expect(urls).toHaveLength(2);
  for (const url of urls) expect(await answerTo(url, "no HTTP\r\n\r\n")).toMatch(/^refused HPE_/);
  // The first's own: what bounds its connections bounds theirs.
  expect(connections).toBe(2);
});

async function answerTo(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
  });
  socket.write(bytes);
  await once(socket, "close");
  return answer;
}
