import { expect, test } from "vitest";
import { NoAnswer } from "../../acquirer.ts";
import type { IsoMessage } from "../message/codec.ts";
import { Exchanges } from "./exchanges.ts";

test("an answer goes to a repeat that is still known, past those that are too long ago", async () => {
  let nowMs = 0;
  const exchanges = new Exchanges({ monotonicMs: () => nowMs, nowMs: () => nowMs });
  const late: string[] = [];
  const answer: IsoMessage = { mti: "0410", fields: new Map() };
  for (const name of ["first", "repeat"]) {
    const onLateAnswer = () => late.push(name);
    const { answer: ended } = exchanges.open("one key", { timeoutMs: 60_000, owner: exchanges, onLateAnswer });
    exchanges.giveUp(exchanges, "the connection broke");
    await expect(ended).rejects.toBeInstanceOf(NoAnswer);
    nowMs += 500_000;
  }
  expect(exchanges.settle("one key", answer)).toBe("settled");
  expect(exchanges.settle("one key", answer)).toBe("repeated");
  expect(exchanges.settle("one key", { ...answer, mti: "0411" })).toBe("unknown");
  expect(late).toEqual(["repeat"]);
});
