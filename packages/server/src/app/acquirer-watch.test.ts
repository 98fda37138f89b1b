import { expect, test } from "vitest";
import type { Acquirer, AcquirerHealth } from "../acquirer/acquirer.ts";
import { type Acquirers, onlyAcquirer } from "../acquirer/acquirers.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { AcquirerWatch, acquirerDetails, acquirerLinks } from "./acquirer-watch.ts";

const up: AcquirerHealth = { ok: true, detail: "signed on at host:5000 for 3 s" };
const down: AcquirerHealth = { ok: false, detail: "host:5000: ECONNREFUSED" };

function withHealth(health: () => AcquirerHealth): Acquirer {
  return Object.assign(new SimulatedAcquirer(), { health });
}

function toldOf(states: readonly AcquirerHealth[]): string[] {
  const told: string[] = [];
  let state = up;
  const watch = new AcquirerWatch(onlyAcquirer(withHealth(() => state)), {
    record: ({ kind, detail }) => void told.push(`${kind}: ${detail["detail"]}`),
  });
  for (const next of states) {
    state = next;
    watch.check();
  }
  return told;
}

test("an acquirer that becomes unreachable is reported once, and so is its return", () => {
  expect(toldOf([up, down, down, down, up, up, up])).toEqual([
    "acquirer_down: host:5000: ECONNREFUSED",
    "acquirer_up: signed on at host:5000 for 3 s",
  ]);
});

test("a connection that is re-established immediately is not reported", () => {
  expect(toldOf([up, down, up, down, up, up])).toEqual([]);
});

test("one that is unreachable from the start is reported", () => {
  expect(toldOf([down, down])).toEqual(["acquirer_down: host:5000: ECONNREFUSED"]);
});

function several(acquirers: Readonly<Record<string, Acquirer>>): Acquirers {
  return {
    of: (name) => acquirers[name] ?? new SimulatedAcquirer(),
    has: (name) => Object.hasOwn(acquirers, name),
    names: () => Object.keys(acquirers),
  };
}

test("/readyz names the acquirer, and warns if it is unreachable", () => {
  const detailOf = (name: string, acquirer: Acquirer | null) =>
    acquirerDetails(name, onlyAcquirer(acquirer)).get("acquirer");
  expect(detailOf("simulator", new SimulatedAcquirer())).toBe("simulator");
  expect(detailOf("none: commands are refused", null)).toBe("none: commands are refused");
  const bank = withHealth(() => up);
  expect(detailOf("iso8583, bank", bank)).toBe("iso8583, bank: signed on at host:5000 for 3 s");
  const away = withHealth(() => down);
  expect(detailOf("iso8583, bank", away)).toBe("warning: iso8583, bank: host:5000: ECONNREFUSED");
});

test("each registered acquirer has its own state in /readyz, metrics and events", () => {
  const acquirers = several({
    "": new SimulatedAcquirer(),
    first: withHealth(() => up),
    second: withHealth(() => down),
  });
  expect([...acquirerDetails("simulator", acquirers)]).toEqual([
    ["acquirer", "simulator"],
    ["acquirer first", "iso8583: signed on at host:5000 for 3 s"],
    ["acquirer second", "warning: iso8583: host:5000: ECONNREFUSED"],
  ]);
  expect(Object.fromEntries(acquirerLinks(acquirers))).toEqual({ default: true, first: true, second: false });
  const told: unknown[] = [];
  const watch = new AcquirerWatch(acquirers, { record: ({ kind, detail }) => void told.push([kind, detail]) });
  watch.check();
  watch.check();
  expect(told).toEqual([["acquirer_down", { acquirer: "second", detail: "host:5000: ECONNREFUSED" }]]);
});
