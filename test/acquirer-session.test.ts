import { afterAll, expect, test } from "vitest";
import { linkState, startTwoInstances } from "./support/two-instances.ts";

const service = await startTwoInstances(({ network }) => ({ network: { ...network, sessions: "one" } }));
afterAll(() => service.stop());

test("both instances run commands over one session, and after a kill -9 of its holder the other connects", async () => {
  const { first, second, host, run } = service;
  await linkState(second, /another instance has the one session that the host allows: signed on at/);
  expect((await run(first)).body).toMatchObject({ status: "SUCCESS" });
  expect((await run(second)).body).toMatchObject({ status: "SUCCESS" });
  expect(host.sockets.size).toBe(1);
  first.signal("SIGKILL");
  await first.exited;
  await linkState(second, /^iso8583, example-host: signed on at/);
  expect((await run(second)).body).toMatchObject({ status: "SUCCESS" });
  expect(host.sockets.size).toBe(1);
  expect(host.heard.filter(({ mti }) => mti === "0200")).toHaveLength(3);
});
