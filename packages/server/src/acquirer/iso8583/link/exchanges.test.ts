import { afterEach, expect, test } from "vitest";
import { NoAnswer } from "../../acquirer.ts";
import type { IsoMessage } from "../message/codec.ts";
import { Exchanges, type Turn, Turns } from "./exchanges.ts";

test("an answer goes to a repeat that is still known, past those that are too long ago", async () => {
  let nowMs = 0;
  const exchanges = new Exchanges({ monotonicMs: () => nowMs, nowMs: () => nowMs });
  const late: string[] = [];
  const answer: IsoMessage = { mti: "0410", fields: new Map() };
  for (const [key, name] of [
    ["one key", "first"],
    ["one key", "repeat"],
    ["another", "other"],
  ] as const) {
    nowMs += 310_000;
    const onLateAnswer = () => late.push(name);
    const { answer: ended } = exchanges.open(key, { timeoutMs: 60_000, owner: exchanges, onLateAnswer });
    exchanges.giveUp(exchanges, "the connection broke");
    await expect(ended).rejects.toBeInstanceOf(NoAnswer);
  }
  expect(exchanges.settle("one key", answer)).toBe("settled");
  expect(exchanges.settle("one key", answer)).toBe("repeated");
  expect(exchanges.settle("one key", { ...answer, mti: "0411" })).toBe("unknown");
  expect(late).toEqual(["repeat"]);
});

const patientMs = 600_000;
const opened: Turns[] = [];
afterEach(() => {
  for (const turns of opened.splice(0)) turns.close();
});

function turnsOf(oneAtATime = false) {
  const turns = new Turns({ oneAtATime });
  opened.push(turns);
  const order: string[] = [];
  /** Takes it, and notes when it is there. */
  async function take(key: string, request: string, waitMs = patientMs): Promise<Turn | undefined> {
    const turn = await turns.take(key, request, waitMs);
    if (turn !== undefined) order.push(request);
    return turn;
  }
  return { turns, order, take };
}

test("different requests under one key have their turns in order, and a repeat shares its key", async () => {
  const { order, take } = turnsOf();
  const [first, repeat] = [await take("key", "sale 1"), await take("key", "sale 1")];
  const second = take("key", "sale 2");
  const third = take("key", "sale 3");
  await take("other key", "sale 4");
  first?.end();
  first?.end();
  await Promise.resolve();
  expect(order).toEqual(["sale 1", "sale 1", "sale 4"]);
  repeat?.end();
  (await second)?.end();
  await third;
  expect(order.slice(3)).toEqual(["sale 2", "sale 3"]);
});

test("a request gets no turn if it waits too long, or when the link is closed", async () => {
  const { turns, take } = turnsOf();
  await take("key", "sale 1");
  expect(await take("key", "sale 2", 1)).toBeUndefined();
  const waiting = take("key", "sale 3");
  turns.close();
  expect(await waiting).toBeUndefined();
});

test("the key of an unanswered request is free when no answer can come, or has come late", async () => {
  const { order, take } = turnsOf();
  (await take("key", "sale 1"))?.endUnanswered(1);
  await take("key", "sale 2").then((turn) => {
    turn?.endUnanswered(patientMs);
    setImmediate(() => turn?.end());
  });
  await take("key", "sale 3");
  expect(order).toEqual(["sale 1", "sale 2", "sale 3"]);
});

test("one at a time, none has its turn while a request of an earlier process may be answered", async () => {
  const { turns, order, take } = turnsOf(true);
  turns.begin(patientMs);
  expect(await take("key", "sale 1", 1)).toBeUndefined();
  turns.begin(1);
  (await take("key", "sale 2"))?.end();
  expect(order).toEqual(["sale 2"]);
});

test("one at a time, requests exclude each other under any key while they are waited for", async () => {
  const { order, take } = turnsOf(true);
  const first = await take("key 1", "sale 1");
  const second = take("key 2", "sale 2");
  await Promise.resolve();
  expect(order).toEqual(["sale 1"]);
  first?.endUnanswered(patientMs);
  (await second)?.end();
  expect(await take("key 1", "sale 3", 1)).toBeUndefined();
});
