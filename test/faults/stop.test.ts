import { expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { holdAnswers } from "../support/held-answers.ts";
import { serviceOfFile } from "../support/service.ts";

// The time for deliveries is no bound for commands.
const service = await serviceOfFile({ env: { PAYBELL_DRAIN_TIMEOUT_MS: "0" } });
const partner = await service.register();

test("a stop refuses commands, ends those that run, and then closes the link to the acquirer", async () => {
  const { acquirer } = service;
  const held = holdAnswers(acquirer);
  const running = partner.run(sale());
  await held.begun(1);
  const stopped = service.service.stop();
  const alive = await partner.call("GET", "/healthz", { key: null });
  expect(alive).toMatchObject({ status: 503, body: { ok: false } });
  // A proxy's connection is gone before the listener closes.
  expect(alive.headers.get("connection")).toBe("close");
  const refused = await partner.call("POST", "/v1/commands", { json: sale() });
  expect(refused).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(refused.headers.get("retry-after")).toBe("1");
  // What waits for the acquirer outlasts many requests.
  for (let asked = 0; asked < 100; asked += 1) await partner.call("GET", "/healthz", { key: null });
  held.go();
  expect(await running).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
  await stopped;
});
