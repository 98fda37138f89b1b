import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import { Backpressure } from "../../packages/server/src/delivery/limits/backpressure.ts";
import type { CircuitStore } from "../../packages/server/src/delivery/limits/circuits.ts";
import type { DeliveryOutcome, Hint, Recorded } from "../../packages/server/src/delivery/store.ts";
import { Hints } from "../../packages/server/src/delivery/worker/hints.ts";
import { DeliveryWorker } from "../../packages/server/src/delivery/worker/worker.ts";
import { homeOf, type LeaseId, type PartnerId, shardOf } from "../../packages/server/src/ids.ts";
import { Lease, type LeaseHolder } from "../../packages/server/src/leases/lease.ts";
import type { SimulationContext } from "../context.ts";
import { simulatedCircuits } from "../database/circuits.ts";
import { homeSessions, Line, Session, SimulatedFailure } from "../database/database.ts";
import { OutcomeCommits, SimulatedDeliveries } from "../database/deliveries.ts";
import { SimulatedLeases, SimulatedShards } from "../database/shards.ts";
import { type SimulatedPartners, simulatedPartners } from "../outside/merchant.ts";
import type { World } from "../world.ts";
import { SimulatedAttempts } from "./attempt.ts";
import { EventLoop } from "./event-loop.ts";
import { type Chains, producerOf } from "./producer.ts";

/** One life of a process: its event loop, its lease, its delivery, and the hints to it; wired as in the service. */
export class Instance {
  readonly name: string;
  readonly loop: EventLoop;
  readonly partners: SimulatedPartners;
  readonly worker: DeliveryWorker;
  readonly hints: Hints;
  readonly backpressure: Backpressure;
  readonly lease: LeaseHolder;
  /** One for each home. */
  readonly outcomes: readonly OutcomeCommits[];
  readonly #context: SimulationContext;
  readonly #lease: Lease;
  #isStopping = false;
  #drainsUntilMs = Number.POSITIVE_INFINITY;

  constructor(context: SimulationContext, name: string, { line, beatLine }: SimulatedProcess) {
    const { world, plan, checks } = context;
    this.name = name;
    this.#context = context;
    const loop = new EventLoop(world, name, plan.drift);
    this.loop = loop;
    const { clock, timers } = loop;
    const session = new Session(context, loop, line);
    const beats = new Session(context, loop, beatLine);
    const lines = context.homeLines.map((home) => new Line([line, home]));
    const homes = homeSessions(
      context,
      lines.map((one) => new Session(context, loop, one)),
    );
    this.#lease = new Lease({
      store: new SimulatedLeases(beats, (id) => this.#removes(id)),
      clock,
      timers,
      onTrouble: (error) => this.#trouble("lease", error),
    });
    this.backpressure = new Backpressure({ isBusy: () => context.isStormy, rowsMax: plan.slotsMax, clock, timers });
    this.lease = { current: () => this.currentLease(), remainingMs: () => this.#lease.remainingMs() };
    this.outcomes = homes.all.map((home) => new OutcomeCommits(world, home, (outcome) => this.#carryOut(outcome)));
    const onLoaded = (loaded: Awaited<ReturnType<CircuitStore["load"]>>) => checks.circuitsLoaded(this, loaded);
    this.partners = simulatedPartners(session, (id) => this.worker.partnerChanged(id));
    const attempts = new SimulatedAttempts(context, this);
    this.worker = new DeliveryWorker({
      store: new SimulatedDeliveries({
        homes,
        record: (outcome) => checks.recorded(this, outcome, this.#record(outcome)),
        onRead: (reads) => checks.readBegins(this, reads),
        onHeads: (shards) => checks.sweeps.swept(this, shards),
      }),
      shards: new SimulatedShards(session, beats, {
        onReleases: (shards) => checks.releases(this, shards),
        onGiven: (given) => {
          world.note(name, "gave", given.join(" "));
          context.notifications.shardsChanged();
        },
      }),
      circuits: simulatedCircuits(homes, onLoaded),
      homes: plan.homes,
      lease: this.lease,
      partners: this.partners,
      attempt: attempts.attempt,
      abort: () => attempts.abort(),
      clock,
      timers,
      inNextTurn: (work) => void timers.after(0, work),
      random: world.random.next,
      slotsMax: plan.slotsMax,
      bytesInFlightMax: plan.bytesInFlightMax,
      onFitness: () => {
        world.note(name, this.worker.isFit ? "is fit" : "is not fit");
        this.#lease.kindChanged();
      },
      onTrouble: (message, error) => this.#trouble(message, error),
    });
    this.hints = new Hints({
      worker: {
        owns: (id) => this.worker.owns(id),
        offer: (delivery, begunMs) => this.offer(delivery, begunMs),
        wake: (hint) => this.#wake(hint),
        tick: () => this.worker.tick(),
      },
      timers,
      announce: (payload) => context.notifications.announce(session, payload),
      onOffered: () => this.backpressure.handedOver(),
      onTrouble: (error) => this.#trouble("hints", error),
    });
  }

  /** Whether it stops, and has no time left for attempts that have not ended. */
  get isOutOfTime(): boolean {
    return this.loop.clock.monotonicMs() >= this.#drainsUntilMs;
  }

  /** The lease as the worker knows it. */
  currentLease(): LeaseId | undefined {
    return this.#lease.current();
  }

  /** Rejects when no lease can be had. */
  async start(): Promise<void> {
    await this.#lease.start({
      kind: () => (this.worker.isFit && !this.#isStopping ? "delivery" : "api"),
      onLost: () => this.worker.leaseLost(),
      onReaped: (ids) => {
        this.#context.world.note(this.name, "reaped", ids.join(" "));
        this.worker.tick();
        this.#context.notifications.shardsChanged();
      },
    });
    this.#context.instances.add(this);
    this.worker.start();
  }

  partnerChanged(id: PartnerId): void {
    this.partners.changed(id);
  }

  /** It gives everything up, and ends. */
  async stop(drainMs: number): Promise<void> {
    this.#isStopping = true;
    this.#lease.kindChanged();
    this.#drainsUntilMs = this.loop.clock.monotonicMs() + drainMs;
    await this.worker.stop(drainMs);
    await this.#lease.stop();
    this.end();
  }

  /** Nothing runs in it from now on. */
  end(): void {
    this.#context.instances.delete(this);
    this.loop.end();
  }

  /** A committed notification, from a command. */
  passOn(delivery: Delivery, begunMs: number): void {
    this.hints.offer(delivery, begunMs);
  }

  /** In a storm, an error in delivery keeps it from a few: the sweep finds them. */
  offer(delivery: Delivery, begunMs: number): void {
    const { world, isStormy } = this.#context;
    if (isStormy && world.random.chance(0.002)) throw new SimulatedFailure("delivery has an error");
    this.worker.offer(delivery, begunMs);
    // A late one may be of a round that is over.
    const one = this.#context.tables.notifications.get(delivery.id);
    if (one?.state === "pending" && one.round === delivery.round) this.#context.checks.offered(this, one);
  }

  #record(outcome: DeliveryOutcome): Promise<Recorded> {
    // Every partner has one.
    const outcomes = this.outcomes[homeOf(shardOf(outcome.partnerId), this.outcomes.length)] as OutcomeCommits;
    return outcomes.record(outcome).finally(() => this.backpressure.recorded(1));
  }

  #carryOut(outcome: DeliveryOutcome): Recorded {
    const { tables, database, checks } = this.#context;
    const one = tables.notifications.get(outcome.id);
    const before = one && { ...one };
    const recorded = tables.carryOut(outcome, database.nowUs());
    if (one !== undefined && before !== undefined && recorded === "applied") checks.applied(outcome, before, one);
    return recorded;
  }

  #wake(hint: Hint): void {
    this.worker.wake(hint);
    this.#context.checks.woken(this, hint);
  }

  /** Invariant 17. */
  #removes(id: LeaseId): void {
    if (!this.#isStopping) this.#context.world.violated(17, `${this.name} gives up its lease ${id}, and goes on`);
  }

  #trouble(message: string, error: unknown): void {
    const { world } = this.#context;
    if (error instanceof SimulatedFailure) world.note(this.name, message, error.message);
    else world.broke(error);
  }
}

const refusedRestartAfterMs = 1_000;

/** One process of the service, from one life to the next: it runs commands and delivers. */
export class SimulatedProcess {
  readonly #context: SimulationContext;
  readonly #chains: Chains;
  readonly #name: string;
  readonly line = new Line();
  /** Beats have a connection of their own. */
  readonly beatLine = new Line();
  #lives = 0;
  /** Its present life. */
  instance: Instance | undefined;
  #isStopping = false;

  constructor(context: SimulationContext, chains: Chains, name: string) {
    this.#context = context;
    this.#chains = chains;
    this.#name = name;
  }

  get isStopping(): boolean {
    return this.instance !== undefined && this.#isStopping;
  }

  start(): void {
    if (this.instance !== undefined) return;
    this.#lives += 1;
    this.#isStopping = false;
    const instance = new Instance(this.#context, `${this.#name}.${this.#lives}`, this);
    this.#context.world.note(instance.name, "process starts");
    this.instance = instance;
    producerOf(this.#context, this.#chains, instance).start();
    instance.start().catch((error: unknown) => {
      if (!(error instanceof SimulatedFailure)) return this.#context.world.broke(error);
      if (this.instance !== instance) return;
      this.kill();
      this.#context.world.agenda.after(refusedRestartAfterMs, () => this.start());
    });
  }

  /** kill -9, or an error that ends the process. */
  kill(): void {
    this.#context.world.note(this.instance?.name, "process is killed");
    this.instance?.end();
    this.#forget();
  }

  /** A clean stop. @param drainMs the time that attempts and their outcomes have */
  async stop(drainMs: number): Promise<void> {
    const instance = this.instance;
    if (instance === undefined || this.#isStopping) return;
    this.#isStopping = true;
    this.#context.world.note(instance.name, "process stops");
    await instance.stop(drainMs);
    if (this.instance === instance) this.#forget();
  }

  #forget(): void {
    this.instance = undefined;
    this.line.heal();
    this.beatLine.heal();
  }
}

/** NOTIFY of the database, to all processes. Any of them may be lost, late, or duplicated. */
export class SimulatedNotifications {
  readonly #world: World;
  readonly #instances: ReadonlySet<Instance>;
  lossChance = 0;
  lateChance = 0;

  constructor(world: World, instances: ReadonlySet<Instance>) {
    this.#world = world;
    this.#instances = instances;
  }

  /** Hints at what is due. */
  async announce(session: Session, payload: string): Promise<void> {
    await session.read(() => this.#all(({ hints }) => hints.received(payload)));
  }

  partnerChanged(id: PartnerId): void {
    this.#all((instance) => instance.partnerChanged(id));
  }

  circuitsChanged(): void {
    this.#all(({ worker }) => worker.circuitsChanged());
  }

  shardsChanged(): void {
    this.#all(({ worker }) => worker.tick());
  }

  #all(work: (instance: Instance) => void): void {
    const { random, agenda } = this.#world;
    for (const instance of this.#instances) {
      const afterMs = this.#isLate() ? random.between(10, 5_000) : random.between(0.2, 2);
      if (this.lossChance > 0 && random.chance(this.lossChance)) continue;
      agenda.after(afterMs, () => instance.loop.enter(() => work(instance)));
      if (!this.#isLate()) continue;
      agenda.after(afterMs + random.between(0, 300), () => instance.loop.enter(() => work(instance)));
    }
  }

  #isLate(): boolean {
    return this.lateChance > 0 && this.#world.random.chance(this.lateChance);
  }
}
