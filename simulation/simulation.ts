import { setImmediate } from "node:timers/promises";
import { homeOf } from "../packages/server/src/ids.ts";
import { Lease } from "../packages/server/src/leases/lease.ts";
import { checkAllOwned, checkEvenlyOwned, checksOf } from "./checks/checks.ts";
import { checkBehindBlocked, checkProgress } from "./checks/progress.ts";
import type { FaultsOf, SimulationContext, SimulationPlan } from "./context.ts";
import { Line, Session, SimulatedDatabase } from "./database/database.ts";
import { SimulatedLeases } from "./database/shards.ts";
import { Tables } from "./database/tables.ts";
import { stormFaults } from "./faults.ts";
import { Merchant } from "./outside/merchant.ts";
import { simulatedOperators } from "./outside/operators.ts";
import { EventLoop, largestDrift, usualDrift } from "./service/event-loop.ts";
import { type Instance, SimulatedNotifications, SimulatedProcess } from "./service/instance.ts";
import { commandChains } from "./service/producer.ts";
import { type Violation, World } from "./world.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly steps: number;
  readonly faults?: FaultsOf;
}

export interface SimulationResult {
  readonly steps: number;
  readonly simulatedMs: number;
  readonly violation: Violation | undefined;
  /** The last recorded events. */
  readonly tail: (lines: number, about?: RegExp) => readonly string[];
}

/** In a calm, by the design: all shards are owned again, all are even, and everything has left. */
const ownedWithinMs = 9_000;
/** The same for the shards of a process that can do nothing but renew its lease, once its attempts have ended. */
const givenUpWithinMs = 15_000;
/** The dead are found later by slow clocks, whose timers are late, too. */
const laterByDriftMs = 2_500;
const brokenForMs = 30_000;
/** While a home is away, those of the others go on. */
const awayForMs = 35_000;
/** It has a backlog when it is back, and attempts at endpoints that hang end first where slots are few. */
const caughtUpWithinMs = 15_000;
/** What could not be written in a storm rests for 30 s. */
const restsWithinMs = 45_000;
const evenWithinMs = 60_000;
const quietAfterMs = 35_000;
const calmMs = 70_000;

/** A whole world: storms and calms in turn, until the steps are done or an invariant is broken. */
export async function simulate({ seed, steps, faults: kind = "all" }: SimulationOptions): Promise<SimulationResult> {
  const world = new World(seed);
  const { agenda, random } = world;
  const isAlone = kind === "leases";
  const plan = { ...planOf(world), ...(isAlone && { services: 1 }) };
  const merchants = Array.from({ length: plan.merchants }, (_, number) => new Merchant(number, random));
  const database = new SimulatedDatabase(world);
  const tables = new Tables(merchants, () => world.nowMs);
  const instances = new Set<Instance>();
  const checks = checksOf({ world, plan, tables, database, instances });
  const homeLines = Array.from({ length: plan.homes }, () => new Line());
  const notifications = new SimulatedNotifications(world, instances);
  const parts = { world, plan, database, tables, notifications, checks, faults: kind, instances, homeLines };
  const context: SimulationContext = { ...parts, isStormy: false, loadFactor: 1 };
  const chains = commandChains(world, tables);
  const services = Array.from(
    { length: plan.services },
    (_, number) => new SimulatedProcess(context, chains, `p${number}`),
  );
  const faults = stormFaults(context, services);
  const people = simulatedOperators(context);
  let away: { readonly home: number; readonly untilMs: number } | undefined;
  if (isAlone) startReaper();
  for (const service of services) agenda.after(random.between(0, 2_000), () => service.start());

  const onRejection = (error: unknown) => world.broke(error);
  process.on("unhandledRejection", onRejection);
  try {
    people.start();
    agenda.after(12_000, () => storm());
    while (world.steps < steps && world.violation === undefined && world.step()) {
      // Everything that follows from this event in the turn of the event loop.
      await setImmediate();
      checks.afterStep();
    }
  } finally {
    process.off("unhandledRejection", onRejection);
  }
  const { violation, nowMs: simulatedMs } = world;
  return { steps: world.steps, simulatedMs, violation, tail: (lines, about) => world.tail(lines, about) };

  /** A process that delivers nothing: its lease deletes those of the dead. */
  function startReaper(): void {
    const loop = new EventLoop(world, "reaper", plan.drift);
    const { clock, timers } = loop;
    const store = new SimulatedLeases(new Session(context, loop, new Line()), () => undefined);
    const onTrouble = (error: unknown) => world.broke(error);
    new Lease({ store, clock, timers, onTrouble }).start().catch(onTrouble);
  }

  function storm(): void {
    world.note("storm");
    context.isStormy = true;
    context.loadFactor = random.pick([0.3, 1, 1, 2]);
    faults.go();
    agenda.after(random.between(15_000, 60_000), () => calm());
  }

  function calm(): void {
    world.note("calm");
    context.isStormy = false;
    context.loadFactor = 0.2;
    faults.heal();
    people.settle();
    agenda.after(100, () => faults.heal());
    const fault = isAlone ? "none" : random.pick(["none", "none", "beats", "home"]);
    const atMs = random.between(200, 2_000);
    if (fault === "home" && plan.homes > 1)
      agenda.after(atMs, () => {
        away = faults.breakHome(awayForMs);
      });
    // A worker that is fit again gets its share, a few shards a second.
    const healedMs = fault === "beats" ? atMs + brokenForMs : 0;
    if (fault === "beats") agenda.after(atMs, () => ask(() => breakAllButBeats()));
    else {
      const lastFaultMs = fault === "home" ? atMs : 0;
      const checkAll = () => checkAllOwned(context);
      agenda.after(lastFaultMs + byDrift(ownedWithinMs) + 100, () => ask(checkAll));
    }
    const checkEven = () => checkEvenlyOwned(context);
    agenda.after(healedMs + evenWithinMs + 100, () => ask(checkEven));
    const endMs = healedMs + calmMs;
    agenda.after(endMs - 1_000, () => ask(() => checkBehindBlocked(context)));
    agenda.after(healedMs + quietAfterMs, () => {
      context.loadFactor = 0;
    });
    for (let ms = 20_000; ms < endMs; ms += 1_000)
      agenda.after(ms, () => ask(() => checkCalm(ms < healedMs + restsWithinMs)));
    agenda.after(endMs, () => storm());
  }

  /** The one fault of a calm. */
  function breakAllButBeats(): void {
    const service = faults.breakAllButBeats(brokenForMs);
    const { attemptTimeoutMs } = plan;
    agenda.after(byDrift(givenUpWithinMs + attemptTimeoutMs), () =>
      ask(() => checkAllOwned(context, service.instance?.lease.current())),
    );
  }

  function byDrift(ms: number): number {
    return plan.drift === largestDrift ? ms + laterByDriftMs : ms;
  }

  function ask(check: () => void): void {
    if (!context.isStormy) check();
  }

  function checkCalm(mayRest: boolean): void {
    const { home, untilMs } = away ?? { home: -1, untilMs: 0 };
    const isAway = ({ shard }: Merchant) =>
      homeOf(shard, plan.homes) === home && world.nowMs < untilMs + caughtUpWithinMs + plan.attemptTimeoutMs;
    checkProgress(context, isAway, mayRest);
    for (const worker of instances) checks.sweeps.check(worker);
  }
}

function planOf({ random }: World): SimulationPlan {
  return {
    services: random.pick([2, 3, 3, 4]),
    merchants: random.pick([6, 10, 16]),
    slotsMax: random.pick([4, 8, 24, 64]),
    bytesInFlightMax: random.pick([64_000, 1_000_000, 16_000_000]),
    attemptTimeoutMs: random.pick([1_500, 4_000, 8_000]),
    load: random.pick([20, 60, 120]),
    homes: random.pick([1, 1, 2, 4]),
    drift: random.pick([usualDrift, largestDrift]),
  };
}
