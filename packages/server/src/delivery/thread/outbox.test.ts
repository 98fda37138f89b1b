import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Outbox } from "./outbox.ts";

function posting() {
  const posted: string[][] = [];
  const outbox = new Outbox<{ words: string[] }>(
    () => ({ words: [] }),
    ({ words }) => posted.push(words),
  );
  return { outbox, posted };
}

test("everything written in one turn of the event loop is one message", async () => {
  const { outbox, posted } = posting();
  outbox.message.words.push("a");
  outbox.message.words.push("b");
  await Promise.resolve();
  outbox.message.words.push("c");
  expect(posted).toEqual([]);
  await turn();
  expect(posted).toEqual([["a", "b", "c"]]);
  outbox.message.words.push("d");
  await turn();
  expect(posted).toEqual([["a", "b", "c"], ["d"]]);
});

test("nothing is posted while nothing is written", async () => {
  const { posted } = posting();
  await turn();
  expect(posted).toEqual([]);
});

test("a message that was flushed is not posted again", async () => {
  const { outbox, posted } = posting();
  outbox.message.words.push("last");
  outbox.flush();
  expect(posted).toEqual([["last"]]);
  await turn();
  expect(posted).toEqual([["last"]]);
});
