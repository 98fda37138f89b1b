import type { SimulationContext } from "./context.ts";
import { fairWeather } from "./database/database.ts";
import { largestDrift } from "./service/event-loop.ts";
import type { Instance, SimulatedProcess } from "./service/instance.ts";

const restartAfterMs = 100;
/** After its beats are answered again, a worker has a lease, and shards that nobody claimed meanwhile. */
const backAfterMs = 3_000;

/** The faults of a storm. Everything that began ends by itself, or with `heal`. */
export function stormFaults(context: SimulationContext, services: readonly SimulatedProcess[]) {
  const { world, plan, database, notifications, instances, homeLines } = context;
  const { random, agenda } = world;

  /** Makes faults while it is stormy: one now and then, or where clocks drift, half of the time, beats alone. */
  function go(): void {
    const { faults } = context;
    if (faults === "leases" || (plan.drift === largestDrift && random.chance(0.5))) onlyBeats();
    else all();
  }

  function all(): void {
    agenda.after(random.between(50, 2_500), () => {
      if (!context.isStormy) return;
      one();
      all();
    });
  }

  /** One lease after the other is deleted while its holder works: that shows for how long it believes in it. */
  function onlyBeats(): void {
    agenda.after(random.between(500, 3_000), () => {
      if (!context.isStormy) return;
      const forMs = cutBeats(random.pick(services));
      agenda.after(forMs, () => onlyBeats());
    });
  }

  function heal(): void {
    Object.assign(database.weather, fairWeather);
    for (const line of homeLines) line.isBroken = false;
    notifications.lossChance = 0;
    notifications.lateChance = 0;
    for (const service of services) {
      const { instance } = service;
      instance?.loop.runOn();
      service.line.heal();
      service.beatLine.heal();
      if (instance !== undefined) {
        setUnstorable([instance], 0);
        setSlow(instance, 0);
      }
      // A stop that takes long would outlast the calm's beginning.
      if (service.isStopping) service.kill();
      service.start();
    }
  }

  /**
   * From now on nothing that a process asks is answered, although its beats are. @returns the process
   */
  function breakAllButBeats(forMs: number): SimulatedProcess {
    const service = random.pick(services);
    world.note("fault", "nothing is answered but beats", service.instance?.name);
    service.line.isBroken = true;
    agenda.after(forMs, () => {
      service.line.isBroken = false;
    });
    return service;
  }

  /** From now on nothing in one home is answered. @returns the home, and when it is back */
  function breakHome(forMs: number): { readonly home: number; readonly untilMs: number } {
    const home = Math.floor(random.between(0, plan.homes));
    const line = homeLines[home];
    world.note("fault", "a home is away", home);
    if (line !== undefined) line.isBroken = true;
    agenda.after(forMs, () => {
      if (line !== undefined) line.isBroken = false;
    });
    return { home, untilMs: world.nowMs + forMs };
  }

  function one(): void {
    const service = random.pick(services);
    if (context.faults === "crashes") {
      crash(service);
      return;
    }
    const faults = [
      () => breakHome(random.between(50, random.chance(0.5) ? 2_000 : 12_000)),
      () => kill(service),
      () => stop(service),
      () => stop(service),
      () => crash(service),
      () => freeze(service),
      () => stall(service),
      () => cut(service),
      () => cut(service),
      () => badWeather(),
      () => badWeather(),
      () => stepClocks(service),
      () => badNotifications(),
      () => cutBeats(service),
      () => cutBeats(service),
    ];
    random.pick(faults)();
  }

  function kill(service: SimulatedProcess): void {
    service.kill();
    after(200, 9_000, () => service.start());
  }

  /** An error ends the process, and it is started again at once. */
  function crash(service: SimulatedProcess): void {
    service.kill();
    agenda.after(restartAfterMs, () => service.start());
  }

  function stop(service: SimulatedProcess): void {
    const { instance } = service;
    if (instance !== undefined && random.chance(0.7)) setSlow(instance, random.between(600, 3_000));
    void service.stop(random.pick([1_000, 5_000, 10_000])).then(() => after(500, 6_000, () => service.start()));
  }

  /** SIGSTOP, or a machine that is suspended. */
  function freeze(service: SimulatedProcess): void {
    const loop = service.instance?.loop;
    if (loop === undefined) return;
    const isSuspended = random.chance(0.4) && loop.maySuspend;
    world.note("fault", isSuspended ? "suspend" : "freeze", loop.name);
    if (isSuspended) loop.suspend();
    else loop.freeze();
    after(20, either(0.5, 3_000, 14_000), () => loop.runOn());
  }

  function stall(service: SimulatedProcess): void {
    const loop = service.instance?.loop;
    if (loop === undefined) return;
    world.note("fault", "stall", loop.name);
    loop.stall();
    after(10, either(0.5, 1_000, 25_000), () => loop.runOn());
  }

  function cut(service: SimulatedProcess): void {
    const { line, beatLine } = service;
    const lines = random.pick([[line], [beatLine], [line, beatLine]]);
    const isOneWay = random.chance(0.5);
    world.note("fault", isOneWay ? "answers lost" : "cut off", service.instance?.name, lines.length);
    for (const line of lines) {
      if (isOneWay) line.losesAnswers = true;
      else line.losesStatements = true;
    }
    after(50, either(0.5, 2_000, 12_000), () => {
      for (const line of lines) line.heal();
    });
  }

  /**
   * Its beats are not answered until its lease is deleted, while everything else is; half of the time outcomes are
   * recorded so slowly that some are of the lease before. @returns for how long
   */
  function cutBeats({ beatLine, instance }: SimulatedProcess): number {
    const forMs = random.between(6_500, 9_000);
    world.note("fault", "beats cut off", instance?.name);
    beatLine.losesStatements = true;
    agenda.after(forMs, () => beatLine.heal());
    if (instance !== undefined && random.chance(0.5)) {
      setSlow(instance, random.between(600, 4_000));
      agenda.after(forMs + backAfterMs, () => setSlow(instance, 0));
    }
    return forMs;
  }

  function badWeather(): void {
    const { weather } = database;
    const kinds = ["isDown", "failChance", "unknownChance", "slowChance", "slowness", "unstorable"] as const;
    const kind = random.pick(kinds);
    world.note("fault", "database", kind);
    if (kind === "isDown") weather.isDown = true;
    else if (kind === "slowness") weather.slowness = random.between(2, 40);
    else if (kind === "unstorable") setUnstorable(instances, 0.05);
    else weather[kind] = random.between(0.01, 0.2);
    after(50, either(0.6, 2_000, 12_000), () => {
      if (kind === "unstorable") setUnstorable(instances, 0);
      else Object.assign(weather, { [kind]: fairWeather[kind] });
    });
  }

  function stepClocks(service: SimulatedProcess): void {
    const ms = random.between(-40_000, 40_000);
    world.note("fault", "clock steps", ms);
    if (random.chance(0.5)) service.instance?.loop.stepWallClock(ms);
    else database.stepClock(ms);
  }

  function badNotifications(): void {
    notifications.lossChance = random.pick([0, 0.1, 0.9]);
    notifications.lateChance = random.pick([0, 0.1, 0.5]);
    after(1_000, 10_000, () => {
      notifications.lossChance = 0.02;
      notifications.lateChance = 0.02;
    });
  }

  function after(leastMs: number, mostMs: number, work: () => void): void {
    agenda.after(random.between(leastMs, mostMs), work);
  }

  function either(chance: number, ms: number, otherMs: number): number {
    return random.chance(chance) ? ms : otherMs;
  }

  return { go, heal, breakAllButBeats, breakHome };
}

function setSlow({ outcomes }: Instance, slowMs: number): void {
  for (const one of outcomes) one.slowMs = slowMs;
}

function setUnstorable(workers: Iterable<Instance>, chance: number): void {
  for (const { outcomes } of workers) for (const one of outcomes) one.unstorableChance = chance;
}
