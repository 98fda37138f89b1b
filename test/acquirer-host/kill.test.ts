import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "../support/instance.ts";
import { callHttp, eventually, type TestPartner } from "../support/service.ts";
import { type AcquirerHost, needsHost, startHost } from "./host.ts";

const needed = needsHost();
const profile = join(import.meta.dirname, "../../docs/operator/acquirer-profile.json");
const kills = 3;
const callersAtOnce = 4;
const tokens = ["tok_approve", "tok_approve", "tok_approve", "tok_decline_51", "tok_timeout", "tok_late"];

describe("the service on a host of ISO 8583 that is killed again and again", needed, () => {
  let database: TestDatabase;
  let host: AcquirerHost;
  let instances: Instance[];
  let partner: TestPartner;
  let start: () => Promise<Instance>;

  beforeAll(async () => {
    [database, host] = await Promise.all([createDatabase(), startHost()]);
    const { host: address, callsLoopback } = partnerHost();
    const masterKey = randomBytes(32);
    const env = {
      PAYBELL_ACQUIRER: "iso8583",
      PAYBELL_ACQUIRER_PROFILE: profile,
      PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
      PAYBELL_ACQUIRER_TLS: "off",
      PAYBELL_ACQUIRER_TIMEOUT_MS: "250",
    };
    start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env });
    instances = [await start(), await start()];
    partner = await (instances[0] as Instance).register({}, { host: address });
  });
  afterAll(async () => {
    for (const instance of instances) instance.signal("SIGTERM");
    await Promise.all(instances.map(({ exited }) => exited));
    await partner.server.close();
    await host.stop();
    await database.drop();
  });

  /** The result of a command; undefined if its instance was gone, or refuses now. */
  async function run(nth: number, json: Readonly<Record<string, unknown>>) {
    const instance = instances[nth % instances.length] as Instance;
    const call = { key: partner.secrets.apiKey, json };
    const answer = await callHttp(instance.baseUrl, "POST", "/v1/commands", call).catch(() => undefined);
    return answer !== undefined && answer.status < 300 ? answer.body : undefined;
  }

  /** Sells on one terminal, and voids now and then, until it is stopped. */
  async function sell(nth: number, ends: { now: boolean }): Promise<void> {
    for (let count = 0; !ends.now; count += 1) {
      const token = tokens[(nth + count) % tokens.length];
      const sold = await run(nth + count, sale({ tid: `T000000${nth + 1}`, card: { token } }));
      if (sold?.["status"] === "SUCCESS" && count % 3 === 0) {
        await run(nth + count, { command: "VOID", reqId: crypto.randomUUID(), transactionId: sold["id"] });
      }
    }
  }

  interface Row {
    readonly command: string;
    readonly state: string;
    readonly reversal: string | null;
    readonly tid: string;
    readonly id: string;
    readonly originalId: string | null;
  }

  async function transactions(): Promise<readonly Row[]> {
    const rows: Row[] = [];
    for (let after = ""; ; ) {
      const { body } = await (instances[0] as Instance).operator(
        "GET",
        `/operator/v1/transactions?limit=500${after === "" ? "" : `&after=${after}`}`,
      );
      rows.push(...(body["items"] as readonly Row[]));
      if (body["next"] === null) return rows;
      after = String(body["next"]);
    }
  }

  test("the host's books hold exactly the transactions that were reported as successful", async () => {
    const ends = { now: false };
    const callers = Array.from({ length: callersAtOnce }, (_, nth) => sell(nth, ends));
    for (let kill = 0; kill < kills; kill += 1) {
      await eventually("sales on the host's books", async () => {
        const [books = ""] = await host.order("books");
        return books.split(";").length > (kill + 1) * 20 ? true : undefined;
      });
      const gone = instances[kill % instances.length] as Instance;
      gone.signal("SIGKILL");
      await gone.exited;
      instances[kill % instances.length] = await start();
    }
    ends.now = true;
    await Promise.all(callers);
    const ended = await eventually("every command and Reversal to end", async () => {
      const rows = await transactions();
      return rows.some(({ state, reversal }) => state === "INIT" || reversal === "pending") ? undefined : rows;
    });
    const [line = ""] = await host.order("books");
    const standing = line.split(";").filter((one) => / SALE \d+ 00 stands$/.test(one));
    const voided = new Set(
      ended.flatMap(({ command, state, originalId }) =>
        command === "VOID" && state === "SUCCESS" ? [originalId] : [],
      ),
    );
    const reported = ended.filter(({ command, state, reversal, id }) => {
      return command === "SALE" && state === "SUCCESS" && reversal !== "done" && !voided.has(id);
    });
    const counted = (tids: readonly string[]) =>
      Object.entries(Object.groupBy(tids, (tid) => tid))
        .map(([tid, all]) => `${tid} ${all?.length}`)
        .sort();
    const tidIn = (key: string) => /T000000\d/.exec(key)?.[0] ?? "";
    expect(counted(standing.map(tidIn))).toEqual(counted(reported.map(({ tid }) => tid)));
    expect(ended.filter(({ reversal }) => reversal === "done").length).toBeGreaterThan(0);
    for (const [nth] of callers.entries()) {
      const tid = `T000000${nth + 1}`;
      const settled = await run(0, { command: "SETTLEMENT", reqId: crypto.randomUUID(), tid, mid: "M00000000000001" });
      const own = reported.filter((row) => row.tid === tid);
      expect(settled).toMatchObject({ status: "SUCCESS", quantity: String(own.length) });
    }
  });
});
