import { beforeEach, expect, test } from "vitest";
import { newId } from "../ids.ts";
import type { Taken } from "./store.ts";
import { Strays } from "./strays.ts";

const instance = { id: newId<"instance">(), epoch: 1 };
const looksMs = 3_000;

let nowMs: number;
let held: Taken[];
let strays: Strays;
beforeEach(() => {
  nowMs = 0;
  held = [];
  const store = {
    held: async () => held,
    giveBack: async (_: unknown, taken: readonly Taken[]) => {
      held = held.filter((one) => !taken.includes(one));
    },
  };
  strays = new Strays(store, () => nowMs);
});

function row(): Taken {
  const taken = { partnerId: newId<"partner">(), id: newId<"notification">(), claimNo: 1 };
  held.push(taken);
  return taken;
}

async function lookLater(): Promise<number> {
  nowMs += looksMs;
  return strays.look(instance);
}

test("a row that nobody here has at two looks is made due; one that is in hand is not", async () => {
  const mine = row();
  strays.take(mine);
  row();
  strays.doubt();
  expect(await strays.look(instance)).toBe(0);
  expect(await lookLater()).toBe(1);
  expect(held).toEqual([mine]);
  strays.leave(mine);
  expect(await lookLater()).toBe(0);
  expect(await lookLater()).toBe(1);
  expect(held).toEqual([]);
});

test("what was written and is handed over between two looks is left alone", async () => {
  const written = row();
  strays.doubt();
  await strays.look(instance);
  strays.take(written);
  expect(await lookLater()).toBe(0);
  expect(held).toEqual([written]);
});

test("the same notification under another claim is another one", async () => {
  const taken = row();
  strays.take(taken);
  held = [{ ...taken, claimNo: 2 }];
  strays.doubt();
  await strays.look(instance);
  expect(await lookLater()).toBe(1);
});

test("without trouble nobody looks, nor half a minute after one", async () => {
  row();
  expect(await lookLater()).toBe(0);
  strays.doubt();
  nowMs += 30_000;
  expect(await strays.look(instance)).toBe(0);
  expect(held).toHaveLength(1);
});
