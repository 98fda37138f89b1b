import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { Misplaced } from "./misplaced.ts";
import type { MisplacedLook, QueuePosition } from "./store.ts";

const partnerId = newId<"partner">();
const queue = { partnerId, queue: "" };
const callBackUrl = "https://shop.example/ipn";
const plain = partnerSnapshot({ callBackUrl });
const routed = partnerSnapshot({ callBackUrl, callBackUrlByCommand: { SETTLEMENT: "https://books.example/ipn" } });

function misplaced(pages: readonly (QueuePosition | undefined)[] = [undefined]) {
  const looks: MisplacedLook[] = [];
  const moveMisplaced = async (look: MisplacedLook) => {
    const after = pages[looks.length % pages.length];
    looks.push(look);
    return { filled: new Set([look.queueOf({ command: "SETTLEMENT", callBackUrl: null })]), after };
  };
  return { looks, sorter: new Misplaced({ moveMisplaced }) };
}

test("a queue that accepts nothing is sorted to its end, once, in the round after a change was seen", async () => {
  const next = { dueAtUs: 7, id: newId<"notification">() };
  const { looks, sorter } = misplaced([next, undefined]);
  for (let round = 0; round < 3; round += 1) await sorter.sort([queue], () => plain);
  expect(looks).toEqual([]);
  expect(await sorter.sort([queue], () => routed)).toEqual([]);
  expect(looks).toEqual([]);
  expect(await sorter.sort([queue], () => ({ ...routed }))).toEqual([{ partnerId, queue: "SETTLEMENT" }]);
  expect(looks.map(({ after }) => after)).toEqual([undefined, next]);
  expect(looks[0]?.queueOf({ command: "SALE", callBackUrl: null })).toBe("");
  await sorter.sort([queue], () => routed);
  expect(looks).toHaveLength(2);
});

test("the queue of a removed URL is sorted into that of callBackUrl", async () => {
  const { looks, sorter } = misplaced();
  const removed = { partnerId, queue: "SETTLEMENT" };
  await sorter.sort([removed], () => routed);
  await sorter.sort([removed], () => plain);
  expect(await sorter.sort([removed], () => plain)).toEqual([queue]);
  expect(looks).toHaveLength(1);
});

test("an open queue, and one of a command's own URL, are left alone", async () => {
  const { looks, sorter } = misplaced();
  for (let round = 0; round < 3; round += 1) {
    await sorter.sort([queue], () => undefined);
    await sorter.sort([{ partnerId, queue: "https://own.example" }], () => routed);
  }
  expect(looks).toEqual([]);
});
