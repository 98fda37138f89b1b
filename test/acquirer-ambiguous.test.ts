import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answerTo, FakeHost } from "../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import type { IsoMessage } from "../packages/server/src/acquirer/iso8583/message/codec.ts";
import { sale } from "./support/commands.ts";
import { createDatabase, queryHomes, type TestDatabase } from "./support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "./support/instance.ts";
import { callHttp, eventually, type TestPartner } from "./support/service.ts";

const example = readFileSync(join(import.meta.dirname, "../docs/operator/acquirer-profile.json"), "utf8");

let database: TestDatabase;
let host: FakeHost;
let folder: string;
let instances: readonly Instance[];
let partner: TestPartner;
beforeAll(async () => {
  [database, host, folder] = await Promise.all([
    createDatabase(),
    FakeHost.listen(),
    mkdtemp(join(tmpdir(), "paybell-ambiguous-")),
  ]);
  const profile = JSON.parse(example) as { timings: object };
  const file = join(folder, "host.json");
  // Each terminal counts its own trace numbers.
  await writeFile(
    file,
    JSON.stringify({ ...profile, matchBy: [11], timings: { ...profile.timings, reversalMarginMs: 0 } }),
  );
  const env = {
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: file,
    PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
    PAYBELL_ACQUIRER_TLS: "off",
    PAYBELL_ACQUIRER_TIMEOUT_MS: "8000",
  };
  const { host: address, callsLoopback } = partnerHost();
  const masterKey = randomBytes(32);
  const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env });
  const first = await start();
  instances = [first, await start()];
  for (const instance of instances) await signedOn(instance);
  partner = await first.register({}, { host: address });
});
afterAll(async () => {
  for (const instance of instances) {
    instance.signal("SIGTERM");
    await instance.exited;
  }
  await partner.server.close();
  await host.close();
  await rm(folder, { recursive: true });
  await database.drop();
});

/** Itself, or the instance that has the session. */
function signedOn(instance: Instance): Promise<true> {
  return eventually("the link to the host", async () => {
    const { body } = await instance.operator("GET", "/readyz");
    const { acquirer } = body["checks"] as Record<string, { detail: string }>;
    return /: signed on at/.test(acquirer?.detail ?? "") ? true : undefined;
  });
}

const run = (nth: number, tid: string) =>
  callHttp(instances[nth]?.baseUrl ?? "", "POST", "/v1/commands", {
    key: partner.secrets.apiKey,
    json: sale({ tid }),
  });

/** Until the requests of an earlier process can be answered no more, nothing is sent. */
async function sold(nth: number, tid: string) {
  for (;;) {
    const answer = await run(nth, tid);
    if (answer.body["status"] !== "ERROR" || answer.body["isoResponseCode"] !== "91") return answer;
  }
}

test("two requests that a host's answers do not tell apart are never at the host at once, from no two instances", async () => {
  await sold(0, "T0000009");
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
  const one = run(0, "T0000001");
  await arrived.promise;
  let isAnswered = false;
  const other = run(1, "T0000002").finally(() => {
    isAnswered = true;
  });
  await eventually("both commands", async () => {
    const [open] = await queryHomes(database, "SELECT count(*)::int AS of FROM transactions WHERE state = 'INIT'");
    return isAnswered || open?.["of"] === 2 ? true : undefined;
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
