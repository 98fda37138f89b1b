import { expect, test } from "vitest";
import type { Acquirer, AcquirerHealth } from "../acquirer/acquirer.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { AcquirerWatch, acquirerDetail } from "./acquirer-watch.ts";

const up: AcquirerHealth = { ok: true, detail: "signed on at host:5000 for 3 s" };
const down: AcquirerHealth = { ok: false, detail: "host:5000: ECONNREFUSED" };

function withHealth(health: () => AcquirerHealth): Acquirer {
  return Object.assign(new SimulatedAcquirer(), { health });
}

function toldOf(states: readonly AcquirerHealth[]): string[] {
  const told: string[] = [];
  let state = up;
  const watch = new AcquirerWatch(
    withHealth(() => state),
    { record: ({ kind, detail }) => void told.push(`${kind}: ${detail["detail"]}`) },
  );
  for (const next of states) {
    state = next;
    watch.check();
  }
  return told;
}

test("an acquirer that can no more be asked is told of once, and so is its return", () => {
  expect(toldOf([up, down, down, down, up, up, up])).toEqual([
    "acquirer_down: host:5000: ECONNREFUSED",
    "acquirer_up: signed on at host:5000 for 3 s",
  ]);
});

test("a connection that is made anew at once is told to nobody", () => {
  expect(toldOf([up, down, up, down, up, up])).toEqual([]);
});

test("one that cannot be asked from the start on is told of", () => {
  expect(toldOf([down, down])).toEqual(["acquirer_down: host:5000: ECONNREFUSED"]);
});

test("/readyz says what stands behind the commands, and warns where it cannot be asked", () => {
  expect(acquirerDetail("simulator", new SimulatedAcquirer())).toBe("simulator");
  expect(
    acquirerDetail(
      "iso8583, bank",
      withHealth(() => up),
    ),
  ).toBe("iso8583, bank: signed on at host:5000 for 3 s");
  expect(
    acquirerDetail(
      "iso8583, bank",
      withHealth(() => down),
    ),
  ).toBe("warning: iso8583, bank: host:5000: ECONNREFUSED");
});
