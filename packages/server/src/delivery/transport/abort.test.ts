import type { Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../clock.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { httpsPeer, makeAuthority } from "./transport.fixture.ts";
import { Transport } from "./transport.ts";

test("an abort closes every connection at once, and ends POSTs that connect or wait for a response", async () => {
  // Nothing is closed because it was idle for long.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const authority = await makeAuthority("Paybell test authority");
  const [asked, looksUp, closed] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  const peer = await httpsPeer(await authority.issue("callback.test"), ({ url }, response) => {
    if (url === "/idle") response.end();
    else asked?.resolve();
  });
  Object.assign(peer.server, { keepAliveTimeout: 0 });
  const open = new Set<Socket>();
  peer.server.on("secureConnection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      if (open.size === 0) closed?.resolve();
    });
  });
  const transport = new Transport({
    clock: systemClock,
    resolve: (name) => {
      if (name === "callback.test") return Promise.resolve(["127.0.0.1"]);
      looksUp?.resolve();
      return new Promise(() => undefined);
    },
    sandbox: true,
    extraCas: [authority.cert],
    connectTimeoutMs: 600_000,
  });
  const partner = partnerSnapshot();
  const post = (url: string) => transport.post({ partner, url, headers: {}, body: "{}", deadlineMs: 600_000 });
  const waiting = post(`https://callback.test:${peer.port}/waiting`);
  expect(await post(`https://callback.test:${peer.port}/idle`)).toMatchObject({ httpStatus: 200 });
  const connecting = post("https://silent.test/ipn");
  await Promise.all([asked?.promise, looksUp?.promise]);
  expect(open.size).toBe(2);
  transport.abort();
  expect(await waiting).toMatchObject({ reason: "reset", detail: "The service has stopped." });
  expect(await connecting).toMatchObject({ address: null, reason: "reset", detail: "The service has stopped." });
  await closed?.promise;
});
