import type { Socket } from "node:net";
import { afterAll, expect, test } from "vitest";
import { answerTo } from "../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import type { IsoMessage } from "../packages/server/src/acquirer/iso8583/message/codec.ts";
import { queryHomes } from "./support/database.ts";
import type { Instance } from "./support/instance.ts";
import { eventually } from "./support/service.ts";
import { linkState, startTwoInstances } from "./support/two-instances.ts";

// Each terminal counts its own trace numbers.
const service = await startTwoInstances(
  ({ timings }) => ({ matchBy: [11], timings: { ...timings, reversalMarginMs: 0 } }),
  { PAYBELL_ACQUIRER_TIMEOUT_MS: "8000" },
);
afterAll(() => service.stop());

/** Until the requests of an earlier process can be answered no more, nothing is sent. */
async function sold(instance: Instance, tid: string) {
  for (;;) {
    const answer = await service.run(instance, { tid });
    if (answer.body["status"] !== "ERROR" || answer.body["isoResponseCode"] !== "91") return answer;
  }
}

test("two requests that a host's answers do not tell apart are never at the host at once, from no two instances", async () => {
  const { database, host, first, second, run } = service;
  await linkState(
    second,
    /another instance has the one session of a profile that cannot tell two requests apart: signed/,
  );
  await sold(first, "T0000009");
  const arrived = Promise.withResolvers<void>();
  let open: { readonly request: IsoMessage; readonly socket: Socket } | undefined;
  host.answer = (request, socket) => {
    const isFirst = request.fields.get(41)?.trim() === "T0000001";
    if (isFirst) {
      open = { request, socket };
      arrived.resolve();
      return undefined;
    }
    // What it owes leaves over the newest connection, and the terminal is not repeated.
    if (open !== undefined) socket.write(host.wire.write(withoutTerminal(answerTo(open.request, "00"))));
    return withoutTerminal(answerTo(request, "51"));
  };
  const one = run(first, { tid: "T0000001" });
  await arrived.promise;
  let isAnswered = false;
  const other = run(second, { tid: "T0000002" }).finally(() => {
    isAnswered = true;
  });
  await eventually("both commands", async () => {
    const running = await queryHomes(database, "SELECT FROM transactions WHERE state = 'INIT'");
    return isAnswered || running.length === 2 ? true : undefined;
  });
  const { request, socket } = open ?? {};
  open = undefined;
  if (request !== undefined) socket?.write(host.wire.write(withoutTerminal(answerTo(request, "00"))));
  expect((await one).body).toMatchObject({ status: "SUCCESS", tid: "T0000001" });
  expect((await other).body).toMatchObject({ status: "ERROR", isoResponseCode: "51", tid: "T0000002" });
  expect(host.sockets.size).toBe(1);
});

function withoutTerminal(answer: IsoMessage): IsoMessage {
  return { ...answer, fields: new Map([...answer.fields].filter(([field]) => field !== 41)) };
}
