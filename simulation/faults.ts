import type { SimulationContext } from "./context.ts";
import { fairWeather } from "./database/database.ts";
import { largestDrift } from "./service/event-loop.ts";
import type { Instance, SimulatedProcess } from "./service/instance.ts";

const restartAfterMs = 100;
/** After its beats are answered again, a worker has a lease, and shards that nobody claimed meanwhile. */
const backAfterMs = 3_000;

/** The faults of a storm. Everything that began ends by itself, or with `heal`. */
export class Faults {
  readonly #context: SimulationContext;
  readonly #services: readonly SimulatedProcess[];

  constructor(context: SimulationContext, services: readonly SimulatedProcess[]) {
    this.#context = context;
    this.#services = services;
  }

  /** Makes faults while it is stormy: one now and then, or where clocks drift, half of the time, beats alone. */
  go(): void {
    const { world, plan, faults } = this.#context;
    if (faults === "leases" || (plan.drift === largestDrift && world.random.chance(0.5))) this.#onlyBeats();
    else this.#all();
  }

  #all(): void {
    const { world } = this.#context;
    world.agenda.after(world.random.between(50, 2_500), () => {
      if (!this.#context.isStormy) return;
      this.#one();
      this.#all();
    });
  }

  /** One lease after the other is deleted while its holder works: that shows for how long it believes in it. */
  #onlyBeats(): void {
    const { world } = this.#context;
    world.agenda.after(world.random.between(500, 3_000), () => {
      if (!this.#context.isStormy) return;
      const forMs = this.#cutBeats(world.random.pick(this.#services));
      world.agenda.after(forMs, () => this.#onlyBeats());
    });
  }

  heal(): void {
    const { database, notifications, homeLines } = this.#context;
    Object.assign(database.weather, fairWeather);
    for (const line of homeLines) line.isBroken = false;
    notifications.lossChance = 0;
    notifications.lateChance = 0;
    for (const service of this.#services) {
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
  breakAllButBeats(forMs: number): SimulatedProcess {
    const { world } = this.#context;
    const service = world.random.pick(this.#services);
    world.note("fault", "nothing is answered but beats", service.instance?.name);
    service.line.isBroken = true;
    world.agenda.after(forMs, () => {
      service.line.isBroken = false;
    });
    return service;
  }

  /** From now on nothing in one home is answered. @returns the home, and when it is back */
  breakHome(forMs: number): { readonly home: number; readonly untilMs: number } {
    const { world, homeLines, plan } = this.#context;
    const home = Math.floor(world.random.between(0, plan.homes));
    const line = homeLines[home];
    world.note("fault", "a home is away", home);
    if (line !== undefined) line.isBroken = true;
    world.agenda.after(forMs, () => {
      if (line !== undefined) line.isBroken = false;
    });
    return { home, untilMs: world.nowMs + forMs };
  }

  #one(): void {
    const { random } = this.#context.world;
    const service = random.pick(this.#services);
    if (this.#context.faults === "crashes") {
      this.#crash(service);
      return;
    }
    const faults = [
      () => this.breakHome(random.between(50, random.chance(0.5) ? 2_000 : 12_000)),
      () => this.#kill(service),
      () => this.#stop(service),
      () => this.#stop(service),
      () => this.#crash(service),
      () => this.#freeze(service),
      () => this.#stall(service),
      () => this.#cut(service),
      () => this.#cut(service),
      () => this.#badWeather(),
      () => this.#badWeather(),
      () => this.#stepClocks(service),
      () => this.#badNotifications(),
      () => this.#cutBeats(service),
      () => this.#cutBeats(service),
    ];
    random.pick(faults)();
  }

  #kill(service: SimulatedProcess): void {
    service.kill();
    this.#after(200, 9_000, () => service.start());
  }

  /** An error ends the process, and it is started again at once. */
  #crash(service: SimulatedProcess): void {
    service.kill();
    this.#context.world.agenda.after(restartAfterMs, () => service.start());
  }

  #stop(service: SimulatedProcess): void {
    const { random } = this.#context.world;
    const { instance } = service;
    if (instance !== undefined && random.chance(0.7)) setSlow(instance, random.between(600, 3_000));
    void service.stop(random.pick([1_000, 5_000, 10_000])).then(() => this.#after(500, 6_000, () => service.start()));
  }

  /** SIGSTOP, or a machine that is suspended. */
  #freeze(service: SimulatedProcess): void {
    const loop = service.instance?.loop;
    if (loop === undefined) return;
    const isSuspended = this.#context.world.random.chance(0.4) && loop.maySuspend;
    this.#context.world.note("fault", isSuspended ? "suspend" : "freeze", loop.name);
    if (isSuspended) loop.suspend();
    else loop.freeze();
    this.#after(20, this.#either(0.5, 3_000, 14_000), () => loop.runOn());
  }

  #stall(service: SimulatedProcess): void {
    const loop = service.instance?.loop;
    if (loop === undefined) return;
    this.#context.world.note("fault", "stall", loop.name);
    loop.stall();
    this.#after(10, this.#either(0.5, 1_000, 25_000), () => loop.runOn());
  }

  #cut(service: SimulatedProcess): void {
    const { random } = this.#context.world;
    const { line, beatLine } = service;
    const lines = random.pick([[line], [beatLine], [line, beatLine]]);
    const isOneWay = random.chance(0.5);
    this.#context.world.note("fault", isOneWay ? "answers lost" : "cut off", service.instance?.name, lines.length);
    for (const line of lines) {
      if (isOneWay) line.losesAnswers = true;
      else line.losesStatements = true;
    }
    this.#after(50, this.#either(0.5, 2_000, 12_000), () => {
      for (const line of lines) line.heal();
    });
  }

  /**
   * Its beats are not answered until its lease is deleted, while everything else is; half of the time outcomes are
   * recorded so slowly that some are of the lease before. @returns for how long
   */
  #cutBeats({ beatLine, instance }: SimulatedProcess): number {
    const { world } = this.#context;
    const forMs = world.random.between(6_500, 9_000);
    world.note("fault", "beats cut off", instance?.name);
    beatLine.losesStatements = true;
    world.agenda.after(forMs, () => beatLine.heal());
    if (instance !== undefined && world.random.chance(0.5)) {
      setSlow(instance, world.random.between(600, 4_000));
      world.agenda.after(forMs + backAfterMs, () => setSlow(instance, 0));
    }
    return forMs;
  }

  #badWeather(): void {
    const { database, world, instances } = this.#context;
    const { random } = world;
    const { weather } = database;
    const kinds = ["isDown", "failChance", "unknownChance", "slowChance", "slowness", "unstorable"] as const;
    const kind = random.pick(kinds);
    world.note("fault", "database", kind);
    if (kind === "isDown") weather.isDown = true;
    else if (kind === "slowness") weather.slowness = random.between(2, 40);
    else if (kind === "unstorable") setUnstorable(instances, 0.05);
    else weather[kind] = random.between(0.01, 0.2);
    this.#after(50, this.#either(0.6, 2_000, 12_000), () => {
      if (kind === "unstorable") setUnstorable(instances, 0);
      else Object.assign(weather, { [kind]: fairWeather[kind] });
    });
  }

  #stepClocks(service: SimulatedProcess): void {
    const { random } = this.#context.world;
    const ms = random.between(-40_000, 40_000);
    this.#context.world.note("fault", "clock steps", ms);
    if (random.chance(0.5)) service.instance?.loop.stepWallClock(ms);
    else this.#context.database.stepClock(ms);
  }

  #badNotifications(): void {
    const { notifications, world } = this.#context;
    notifications.lossChance = world.random.pick([0, 0.1, 0.9]);
    notifications.lateChance = world.random.pick([0, 0.1, 0.5]);
    this.#after(1_000, 10_000, () => {
      notifications.lossChance = 0.02;
      notifications.lateChance = 0.02;
    });
  }

  #after(leastMs: number, mostMs: number, work: () => void): void {
    const { agenda, random } = this.#context.world;
    agenda.after(random.between(leastMs, mostMs), work);
  }

  #either(chance: number, ms: number, otherMs: number): number {
    return this.#context.world.random.chance(chance) ? ms : otherMs;
  }
}

function setSlow({ outcomes }: Instance, slowMs: number): void {
  for (const one of outcomes) one.slowMs = slowMs;
}

function setUnstorable(workers: Iterable<Instance>, chance: number): void {
  for (const { outcomes } of workers) for (const one of outcomes) one.unstorableChance = chance;
}
