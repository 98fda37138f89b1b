import { expect, test } from "vitest";
import { Backpressure } from "./backpressure.ts";

function backpressure({ isBusy = true } = {}) {
  const state = { isBusy, nowMs: 0, timer: undefined as (() => void) | undefined };
  const after = (_ms: number, work: () => void) => {
    state.timer = work;
    return () => {
      state.timer = undefined;
    };
  };
  const pressure = new Backpressure({
    isBusy: () => state.isBusy,
    rowsMax: 10,
    clock: { monotonicMs: () => state.nowMs },
    timers: { after },
  });
  void pressure.waitForTurn();
  const handOver = (rows: number) => {
    for (let row = 0; row < rows; row += 1) pressure.handedOver();
  };
  /** Asks for a turn. @returns whether the batch may begin at once, and whether it has begun since */
  const ask = () => {
    const asked = { mayBegin: false };
    const turn = pressure.waitForTurn();
    if (turn === undefined) asked.mayBegin = true;
    else
      void turn.then(() => {
        asked.mayBegin = true;
      });
    return asked;
  };
  return { state, pressure, handOver, ask };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("intake continues at once while it is not too far ahead", () => {
  const { handOver, ask, state } = backpressure();
  handOver(10);
  expect(ask()).toEqual({ mayBegin: true });
  expect(state.timer).toBeUndefined();
});

test("too far ahead, every batch waits until enough outcomes are recorded", async () => {
  const { handOver, ask, pressure, state } = backpressure();
  handOver(15);
  const asked = [ask(), ask()];
  pressure.recorded(4);
  await settled();
  expect(asked).toEqual([{ mayBegin: false }, { mayBegin: false }]);
  pressure.recorded(1);
  await settled();
  expect(asked).toEqual([{ mayBegin: true }, { mayBegin: true }]);
  expect(state.timer).toBeUndefined();
  expect(ask()).toEqual({ mayBegin: true });
});

test("while the event loop is not busy, delivery waits for partners, and intake does not wait", () => {
  const { handOver, ask } = backpressure({ isBusy: false });
  handOver(1_000);
  expect(ask()).toEqual({ mayBegin: true });
});

test("a notification not recorded after two seconds waits for its partner, and is no longer counted", () => {
  const { handOver, ask, state } = backpressure();
  handOver(1_000);
  state.nowMs = 1_500;
  expect(ask()).toEqual({ mayBegin: false });
  state.timer?.();
  state.nowMs = 2_600;
  expect(ask()).toEqual({ mayBegin: true });
  handOver(1_000);
  state.nowMs = 4_700;
  expect(ask()).toEqual({ mayBegin: true });
});

test("an outcome counts for a notification of the period before first, and then for one of this period", async () => {
  const { handOver, ask, pressure, state } = backpressure();
  handOver(9);
  state.nowMs = 1_500;
  expect(ask()).toEqual({ mayBegin: true });
  handOver(9);
  const asked = ask();
  pressure.recorded(8);
  await settled();
  expect(asked).toEqual({ mayBegin: true });
  pressure.recorded(4);
  handOver(4);
  expect(ask()).toEqual({ mayBegin: true });
  handOver(1);
  expect(ask()).toEqual({ mayBegin: false });
});

test("a batch waits for a bounded time although nothing is recorded, and so does the next one", async () => {
  const { handOver, ask, state } = backpressure();
  handOver(1_000);
  const asked = ask();
  state.timer?.();
  await settled();
  expect(asked).toEqual({ mayBegin: true });
  expect(ask()).toEqual({ mayBegin: false });
});

test("recording notifications that were read from the database gives no credit beyond those handed over", () => {
  const { handOver, ask, pressure } = backpressure();
  pressure.recorded(1_000);
  handOver(11);
  expect(ask()).toEqual({ mayBegin: false });
});
