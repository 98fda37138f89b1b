import type { Logger } from "pino";
import type { PartnerId } from "../ids.ts";
import type { Instance, Lease } from "../instance.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { Slots } from "./slots.ts";
import type { Attempt, Claimed, DeliveryStore, Outcome, Taken } from "./store.ts";

/** Makes one POST of a notification. Never rejects: whatever goes wrong is an attempt with its reason. */
export type Attempting = (claimed: Claimed, partner: Partner) => Promise<Attempted>;

export interface Attempted {
  readonly attempt: Attempt;
  readonly next: Outcome["next"];
}

export interface DispatcherParts {
  readonly store: DeliveryStore;
  readonly directory: PartnerDirectory;
  readonly lease: Lease;
  readonly attempt: Attempting;
  readonly log: Logger;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  readonly drainTimeoutMs: number;
  /** Longer than an attempt can last. */
  readonly probeLeaseMs: number;
  readonly onOutcome?: (claimed: Claimed, attempted: Attempted) => void;
}

const tickMs = 1_000;
/** A claim takes many rows at once: one for each freed place would cost a statement a POST. */
const claimRowsMax = 256;
const claimPauseMs = 10;
/** For a partner whose settings are not at hand. */
const partnerMaxUnknown = 32;
const retryLookupMs = 1_000;

/** What is handed over right after its commit, without a claim. */
export interface Handoff {
  readonly instance: Instance;
  send(claimed: Claimed): void;
  release(): void;
}

/**
 * Sends what is pending: what this instance wrote itself, handed over at commit, and what is due in the database, claimed.
 * Whatever it holds is leased to this instance; when the lease is lost it starts no further POST, and others take over.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly slots: Slots;
  /** Partners with due rows that nobody holds: what comes new must not overtake them. */
  readonly #backlog = new Set<PartnerId>();
  readonly #recording = new Set<Promise<void>>();
  #disowned: Taken[] = [];
  /** The last claim brought as many rows as were asked for: there are more. */
  #more = false;
  #again = false;
  #claiming: Promise<void> | undefined;
  #claimTimer: NodeJS.Timeout | undefined;
  #tickTimer: NodeJS.Timeout | undefined;
  #announceTimer: NodeJS.Timeout | undefined;
  #stopping = true;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.slots = new Slots({ slotsMax: parts.slotsMax, bytesMax: parts.bytesInFlightMax });
  }

  start(): void {
    this.#stopping = false;
    this.#tickTimer = setInterval(() => void this.#tick(), tickMs);
    this.wake();
  }

  /**
   * Asks for a place before a row is written. Undefined when there is none, or when the partner has due rows already: then
   * the row is to be born due.
   */
  reserve(partnerId: PartnerId, bytes: number): Handoff | undefined {
    const instance = this.#parts.lease.current();
    const partner = this.#parts.directory.peek(partnerId);
    if (this.#stopping || instance === undefined || partner?.state !== "active") return undefined;
    if (this.#backlog.has(partnerId)) return undefined;
    if (!this.slots.take(partnerId, bytes, partner.settings.maxInFlight)) return undefined;
    return {
      instance,
      send: (claimed) => void this.#run(claimed, instance, bytes),
      release: () => this.#give(partnerId, bytes),
    };
  }

  /** A row was left due: by this instance, or by another that says so. */
  bornDue(partnerId: PartnerId): void {
    this.#backlog.add(partnerId);
    this.wake();
    // Others are told only of what stays: ten times a second at most.
    this.#announceTimer ??= setTimeout(() => {
      this.#announceTimer = undefined;
      if (this.#backlog.size === 0 || this.#stopping) return;
      this.#parts.store.announceDue().catch((error: unknown) => this.#parts.log.warn({ err: error }, "NOTIFY failed"));
    }, 100);
  }

  /** Rows that may stand under our lease although their write was refused: given back as soon as the database answers. */
  disown(taken: Taken): void {
    this.#disowned.push(taken);
  }

  /** Something may be due: claims as soon as a place is free. */
  wake(): void {
    this.#scheduleClaim(0);
  }

  /**
   * Starts no further POST, waits for those in flight (bounded), and makes the rest due for other instances.
   *
   * @returns how many were still in flight when the time was over; they are sent again by whoever takes them
   */
  async stop(): Promise<number> {
    this.#stopping = true;
    clearInterval(this.#tickTimer);
    clearTimeout(this.#claimTimer);
    clearTimeout(this.#announceTimer);
    await this.#claiming;
    const { promise: timedOut, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#parts.drainTimeoutMs);
    await Promise.race([this.slots.empty(), timedOut]);
    const left = this.slots.taken;
    await Promise.race([Promise.all(this.#recording), timedOut]);
    clearTimeout(timer);
    return left;
  }

  async #tick(): Promise<void> {
    try {
      const instance = this.#parts.lease.current();
      if (this.#disowned.length > 0 && instance) {
        const disowned = this.#disowned.slice(0, 1_000);
        await this.#parts.store.giveBack(instance, disowned, 0);
        this.#disowned = this.#disowned.slice(disowned.length);
      }
      const released = await this.#parts.store.releaseDead(5_000);
      if (released > 0) this.#parts.log.warn({ released }, "took over the deliveries of an instance that is gone");
    } catch (error) {
      this.#parts.log.warn({ err: error }, "could not look for deliveries of instances that are gone");
    }
    this.wake();
  }

  #scheduleClaim(pauseMs: number): void {
    if (this.#stopping || this.#claimTimer || this.slots.free === 0) return;
    if (this.#claiming !== undefined) {
      // What became due meanwhile may have come too late for it.
      this.#again = true;
      return;
    }
    this.#claimTimer = setTimeout(() => {
      this.#claimTimer = undefined;
      if (this.#stopping) return;
      this.#claiming = this.#claim().finally(() => {
        this.#claiming = undefined;
        if (this.#more || this.#again) this.#scheduleClaim(claimPauseMs);
      });
    }, pauseMs);
  }

  async #claim(): Promise<void> {
    this.#more = false;
    this.#again = false;
    const instance = this.#parts.lease.current();
    const rowsMax = Math.min(this.slots.free, claimRowsMax);
    if (instance === undefined || rowsMax === 0) return;
    const without = [...this.slots.full((partnerId) => this.#maxInFlight(partnerId))];
    try {
      const claimed = await this.#parts.store.claim(instance, {
        rowsMax,
        rowsPerPartnerMax: partnerMaxUnknown,
        bytesMax: this.slots.bytesFree,
        without,
        probeLeaseMs: this.#parts.probeLeaseMs,
      });
      this.#more = claimed.length === rowsMax;
      this.#noteBacklog(claimed, new Set(without));
      for (const one of claimed) this.#take(one, instance);
    } catch (error) {
      this.#parts.log.warn({ err: error }, "could not claim what is due");
    }
  }

  /** A partner that gave less than its share has nothing more that is due. */
  #noteBacklog(claimed: readonly Claimed[], without: ReadonlySet<PartnerId>): void {
    if (!this.#more) {
      for (const partnerId of this.#backlog) if (!without.has(partnerId)) this.#backlog.delete(partnerId);
    }
    const counts = new Map<PartnerId, number>();
    for (const { partnerId } of claimed) counts.set(partnerId, (counts.get(partnerId) ?? 0) + 1);
    for (const [partnerId, count] of counts) if (count >= partnerMaxUnknown) this.#backlog.add(partnerId);
  }

  #take(claimed: Claimed, instance: Instance): void {
    const bytes = claimed.content.length;
    if (this.slots.take(claimed.partnerId, bytes, this.#maxInFlight(claimed.partnerId))) {
      void this.#run(claimed, instance, bytes);
      return;
    }
    this.#backlog.add(claimed.partnerId);
    this.#keep(this.#giveBack(claimed, instance, 0));
  }

  async #run(claimed: Claimed, instance: Instance, bytes: number): Promise<void> {
    const recorded = this.#attemptOnce(claimed, instance).catch((error: unknown) => {
      this.#parts.log.error(
        { err: error, notification: claimed.id },
        "a delivery broke; it is sent again when the lease is over",
      );
    });
    this.#keep(recorded);
    await recorded;
    this.#give(claimed.partnerId, bytes);
  }

  async #attemptOnce(claimed: Claimed, instance: Instance): Promise<void> {
    const partner =
      this.#parts.directory.peek(claimed.partnerId) ??
      (await this.#parts.directory.find(claimed.partnerId).catch(() => undefined));
    if (partner === undefined) return this.#giveBack(claimed, instance, retryLookupMs);
    // Paused since it was taken: kept, and not sent.
    if (partner.state !== "active") return this.#giveBack(claimed, instance, 0);
    if (this.#parts.lease.current()?.epoch !== instance.epoch) return;
    const attempted = await this.#parts.attempt(claimed, partner);
    this.#parts.onOutcome?.(claimed, attempted);
    await this.#parts.store.record({
      partnerId: claimed.partnerId,
      id: claimed.id,
      claimNo: claimed.claimNo,
      instance,
      attemptsMade: claimed.attemptsMade + 1,
      ...attempted,
    });
  }

  async #giveBack(claimed: Claimed, instance: Instance, delayMs: number): Promise<void> {
    try {
      await this.#parts.store.giveBack(instance, [claimed], delayMs);
    } catch (error) {
      this.#parts.log.warn({ err: error, notification: claimed.id }, "could not give a delivery back");
    }
  }

  #keep(work: Promise<void>): void {
    this.#recording.add(work);
    void work.finally(() => this.#recording.delete(work));
  }

  #give(partnerId: PartnerId, bytes: number): void {
    this.slots.give(partnerId, bytes);
    // A moment later, so that one claim fills many places.
    if (this.#more || this.#backlog.has(partnerId)) this.#scheduleClaim(claimPauseMs);
  }

  #maxInFlight(partnerId: PartnerId): number {
    return this.#parts.directory.peek(partnerId)?.settings.maxInFlight ?? partnerMaxUnknown;
  }
}
