import type { AttemptOptions } from "../../packages/server/src/delivery/attempt.ts";
import type { LoadedCircuit } from "../../packages/server/src/delivery/circuit.ts";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import type { OwnedShard } from "../../packages/server/src/delivery/ownership.ts";
import { jitter, mayAskToWait } from "../../packages/server/src/delivery/schedule.ts";
import type { DeliveryOutcome, Hint, QueueRead, Recorded } from "../../packages/server/src/delivery/store.ts";
import type { NotificationId, PartnerId } from "../../packages/server/src/ids.ts";
import type { SimulationPlan } from "../context.ts";
import type { SimulatedDatabase } from "../database/database.ts";
import type { NotificationStart, SimulatedNotification } from "../database/notification.ts";
import type { Tables } from "../database/tables.ts";
import type { Reception } from "../outside/endpoint.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";
import { checkBounds } from "./bounds.ts";
import { CompletenessCheck } from "./complete.ts";
import { checkBelievers } from "./owners.ts";
import { ReadsCheck } from "./reads.ts";
import { StartChecks } from "./starts.ts";
import { SweepsCheck } from "./sweeps.ts";

/** Steps between two looks at what is not checked where it happens. */
const boundsEvery = 16;
const believersEvery = 64;
const completeEvery = 256;
const surplusMax = 8;

/** The invariants: reported events are checked at once, the rest every few steps. */
export class Checks {
  readonly #world: World;
  readonly #plan: SimulationPlan;
  readonly #tables: Tables;
  readonly #instances: ReadonlySet<Instance>;
  readonly #starts: StartChecks;
  readonly #complete: CompletenessCheck;
  readonly #reads: ReadsCheck;
  readonly #sweeps: SweepsCheck;

  constructor(
    world: World,
    plan: SimulationPlan,
    tables: Tables,
    database: SimulatedDatabase,
    instances: ReadonlySet<Instance>,
  ) {
    this.#world = world;
    this.#plan = plan;
    this.#tables = tables;
    this.#instances = instances;
    this.#starts = new StartChecks(world, tables, plan);
    this.#reads = new ReadsCheck(world);
    this.#sweeps = new SweepsCheck(world);
    this.#complete = new CompletenessCheck(world, tables, database);
  }

  get startedMs(): ReadonlyMap<string, number> {
    return this.#starts.startedMs;
  }

  /** The time until an attempt ends, if the partner's owner had no free slot since then; otherwise 0. */
  slotWaitMs(partnerId: PartnerId, sinceMs: number): number {
    const owner = this.#ownerOf(partnerId);
    return owner !== undefined && this.#starts.fullMs(owner) >= sinceMs ? this.#plan.attemptTimeoutMs : 0;
  }

  rests(partnerId: PartnerId, id: NotificationId): boolean {
    return this.#ownerOf(partnerId)?.worker.queues.rests(id) ?? false;
  }

  #ownerOf(partnerId: PartnerId): Instance | undefined {
    return [...this.#instances].find(({ worker }) => worker.ownership.epochOf(partnerId) !== undefined);
  }

  afterStep(): void {
    const { steps } = this.#world;
    if (steps % boundsEvery === 0) for (const worker of this.#instances) checkBounds(this.#world, this.#plan, worker);
    if (steps % believersEvery === 0) checkBelievers(this.#world, this.#tables, this.#instances);
    if (steps % completeEvery === 0) for (const worker of this.#instances) this.#complete.check(worker);
  }

  attemptBegins(worker: Instance, delivery: Delivery, url: string, isRegistered: boolean): void {
    this.#starts.attemptBegins(worker, delivery, url, isRegistered);
    this.#reads.begins(worker, delivery.partnerId);
  }

  attemptEnds(worker: Instance, delivery: Delivery, url: string): void {
    this.#starts.attemptEnds(worker, delivery, url);
  }

  /** It is not sent, and rests like one whose outcome could not be stored. */
  unhandled({ id, round, attemptsMade }: Delivery): void {
    const rest = { deadlineMs: this.#world.nowMs, isEnded: true, mayRepeat: true };
    const start = { round, attemptsMade, leaseId: "" as never, epoch: undefined, ...rest };
    this.#tables.notifications.get(id)?.starts.push(start);
  }

  firstByte(worker: Instance, delivery: Delivery, options: AttemptOptions, begunMs: number): NotificationStart {
    return this.#starts.firstByte(worker, delivery, options, begunMs);
  }

  received({ id, round }: Delivery, reception: Reception): void {
    const isAccepted =
      reception.kind === "answer" ? reception.status === 204 : reception.kind === "reset" && reception.isAccepted;
    if (isAccepted) this.#tables.notifications.get(id)?.acceptedRounds.add(round);
  }

  circuitsLoaded(worker: Instance, loaded: readonly LoadedCircuit[]): void {
    const shardOf = (id: string) => this.#tables.merchants.find((one) => one.id === id)?.shard ?? -1;
    for (const { partnerId, queue, circuit, controlNo } of loaded) {
      this.#world.note(worker.name, "loads", partnerId, queue, circuit.state, circuit.probeInMs ?? "", controlNo);
    }
    this.#starts.circuitsOf(worker).loaded(loaded, (id) => this.#tables.shards[shardOf(id)]?.epoch ?? 0);
  }

  /** An outcome is on its way to the database. */
  async recorded(worker: Instance, outcome: DeliveryOutcome, recording: Promise<Recorded>): Promise<Recorded> {
    const known = this.#starts.circuitsOf(worker);
    for (const change of outcome.circuits) {
      const { state, probeInMs } = change.circuit;
      this.#world.note(
        worker.name,
        "changes",
        change.partnerId,
        change.queue,
        state,
        probeInMs ?? "",
        change.controlNo,
      );
      known.changed(change);
    }
    try {
      const recorded = await recording;
      this.#world.note(worker.name, "recorded", outcome.id, outcome.next.kind, recorded);
      return recorded;
    } catch (error) {
      this.#world.note(worker.name, "could not record", outcome.id);
      for (const change of outcome.circuits) known.withdrawn(change);
      for (const start of this.#tables.notifications.get(outcome.id)?.starts ?? []) start.mayRepeat = true;
      throw error;
    }
  }

  /** Invariants 1, 9 and 20: asked of every outcome that changes a row, as it is committed. */
  applied(outcome: DeliveryOutcome, before: SimulatedNotification, one: SimulatedNotification): void {
    const { id, round, attemptsMade, next } = outcome;
    const isLater = before.round > round || (next.kind !== "accepted" && before.attemptsMade !== attemptsMade);
    if (isLater)
      this.#world.violated(9, `an outcome of ${id}, round ${round}, attempt ${attemptsMade}, changes a later one`);
    if (next.kind === "accepted" && !one.acceptedRounds.has(round)) {
      this.#world.violated(1, `${id} ends as accepted, and nobody accepted it in round ${round}`);
    }
    if (next.kind === "retry") this.#checkStep(outcome, next.delayMs, before, one);
  }

  /** An attempt that a person asked for is no step of the schedule, unless it was read before that. */
  #checkStep(
    { id, attempt }: DeliveryOutcome,
    delayMs: number,
    before: SimulatedNotification,
    one: SimulatedNotification,
  ) {
    const steps =
      this.#tables.merchants.find((merchant) => merchant.id === one.partnerId)?.partner.settings.retry ?? [];
    const made = before.attemptsMade + 1 - one.sentNow;
    if (before.isAsked) one.sentNow += 1;
    const stepS = steps[Math.max(1, made) - 1] ?? 0;
    if (made >= steps.length || mayAskToWait(attempt.httpStatus ?? 0) || delayMs <= stepS * 1_000 * (1 + jitter))
      return;
    this.#world.violated(20, `${id} waits ${delayMs} ms after ${made} steps, of which the last is ${stepS} s`);
  }

  swept(worker: Instance, shards: readonly number[]): void {
    this.#sweeps.swept(worker, shards);
  }

  sweeps(): void {
    for (const worker of this.#instances) this.#sweeps.check(worker);
  }

  /** Invariant 16. Fewer shards at a time are released to other workers that have too few. */
  releases(worker: Instance, shards: readonly OwnedShard[]): void {
    if (!worker.drains || shards.length <= surplusMax) return;
    const { slots } = worker.worker.status;
    const unrecorded = worker.outcomes.reduce((sum, { unwritten }) => sum + unwritten, 0);
    if (slots + unrecorded === 0) return;
    const left = `${slots} attempts on the wire and ${unrecorded} unrecorded outcomes`;
    this.#world.violated(16, `${worker.name} stops with ${left}, although it has time for them`);
  }

  readBegins(worker: Instance, reads: readonly QueueRead[]): void {
    for (const read of reads) {
      const { partnerId, queue, after } = read;
      this.#reads.count(worker, read);
      this.#world.note(worker.name, "reads", partnerId, queue, after === undefined ? "from the head" : after.id);
    }
    this.#complete.readBegins(worker, reads);
  }

  told(worker: Instance, one: SimulatedNotification): void {
    this.#world.note(worker.name, "is offered", one.id);
    this.#complete.told(worker, one);
  }

  woken(worker: Instance, hint: Hint): void {
    this.#world.note(worker.name, "is woken", hint.partnerId, hint.queue ?? "");
    this.#complete.woken(worker, hint);
  }
}
