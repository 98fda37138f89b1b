import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import type { Instance } from "../support/instance.ts";
import { callHttp, eventually } from "../support/service.ts";
import { type AtHost, startAtHost } from "./at-host.ts";
import { needsHost } from "./host.ts";

const needed = needsHost();
const kills = 2;
const callersAtOnce = 4;
const tokens = ["tok_approve", "tok_approve", "tok_approve", "tok_decline_51", "tok_timeout", "tok_late"];

describe("the service on a host of ISO 8583 that is killed again and again", needed, () => {
  let at: AtHost;
  beforeAll(async () => {
    at = await startAtHost(2, { PAYBELL_ACQUIRER_TIMEOUT_MS: "250" });
  });
  afterAll(() => at.stop());
  const instanceOf = (nth: number) => at.instances[nth % at.instances.length] as Instance;

  /** The result of a command; undefined if its instance was gone, or refuses now. */
  async function run(nth: number, json: Readonly<Record<string, unknown>>) {
    const call = { key: at.partner.secrets.apiKey, json };
    const answer = await callHttp(instanceOf(nth).baseUrl, "POST", "/v1/commands", call).catch(() => undefined);
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
      const { body } = await instanceOf(0).operator(
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
        const [books = ""] = await at.host.order("books");
        return books.split(";").length > (kill + 1) * 20 ? true : undefined;
      });
      await at.replace(kill % at.instances.length);
    }
    ends.now = true;
    await Promise.all(callers);
    const ended = await eventually("every command and Reversal to end", async () => {
      const rows = await transactions();
      return rows.some(({ state, reversal }) => state === "INIT" || reversal === "pending") ? undefined : rows;
    });
    const [line = ""] = await at.host.order("books");
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
