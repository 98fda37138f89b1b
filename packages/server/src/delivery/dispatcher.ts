import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { PartnerId } from "../ids.ts";
import type { Instance, Lease } from "../instance.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { Admission, type SeatLimit } from "./admission.ts";
import { Claims } from "./claims.ts";
import { Endpoints, originQueue, urlQueue } from "./endpoints.ts";
import type { EndpointStore, ScheduleLength } from "./endpoints-store.ts";
import { Returns } from "./returns.ts";
import { scheduleLengthMs } from "./schedule.ts";
import type { Place } from "./slots.ts";
import type { Attempt, Claimed, DeliveryStore, Outcome, Taken } from "./store.ts";
import { Strays } from "./strays.ts";
import { callbackUrlOf } from "./target.ts";
import type { Seat, Waiting } from "./waiting-room.ts";

/** Makes one POST of a notification. Never rejects: whatever goes wrong is an attempt with its reason. */
export type Attempting = (claimed: Claimed, partner: Partner) => Promise<Attempted | PutOff>;

/** Nothing was sent: due again after `putOffMs`, and no attempt is counted. */
export interface PutOff {
  readonly putOffMs: number;
}

export interface Attempted {
  readonly attempt: Attempt;
  readonly next: Outcome["next"];
  /** What a 429 or 503 asked to wait. */
  readonly retryAfterMs?: number;
}

export interface DispatcherParts {
  readonly store: DeliveryStore;
  readonly endpoints: EndpointStore;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly directory: PartnerDirectory;
  readonly lease: Lease;
  readonly attempt: Attempting;
  readonly log: Logger;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  readonly drainTimeoutMs: number;
  /** Longer than an attempt can last. */
  readonly probeLeaseMs: number;
  readonly onNoSeat?: (limit: SeatLimit) => void;
  readonly onOutcome?: (claimed: Claimed, attempted: Attempted) => void;
  readonly onOverdue?: (parked: number) => void;
}

const tickMs = 1_000;
/** What waits for an open endpoint is parked so much after its schedule's end at most. */
const overdueEveryTicks = 10;
const overdueRowsMax = 500;
const livingEveryTicks = 10;
const unrecordedPerSlot = 4;
const retryLookupMs = 1_000;
/** What another instance knows of an endpoint by then, this one knows too. */
const blockedPauseMs = 1_000;
/** Until what had no place after all is looked at again. */
const noPlacePauseMs = 250;
/** So many partners that have no token, or no bytes, are passed over for those that have. */
const lackingMax = 3;
/** What had no place for so long is due for any instance. */
const waitMaxMs = 2_000;

/** @param ended whether an attempt was made, and ended before its deadline */
type GivesPlace = (ended?: boolean) => void;

/** What is handed over right after its commit, without a claim. */
export interface Handoff {
  readonly instance: Instance;
  send(claimed: Claimed): void;
  release(): void;
}

/**
 * Sends what is pending: what this instance wrote itself, handed over at commit, and what is due in the database,
 * claimed. Whatever it holds is leased to this instance; when the lease is lost it starts no further POST, and others
 * take over.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly admission: Admission;
  readonly endpoints: Endpoints;
  readonly #returns: Returns;
  readonly #strays: Strays;
  readonly #claims: Claims;
  readonly #recording = new Set<Promise<void>>();
  /** POSTs under way, and answered ones whose outcome is not durable yet: a slow database stops the sending. */
  readonly #unrecordedMax: number;
  #disowned: Taken[] = [];
  #ticks = 0;
  #ticking: Promise<void> | undefined;
  #tickTimer: NodeJS.Timeout | undefined;
  #announceTimer: NodeJS.Timeout | undefined;
  #stopping = true;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.admission = new Admission({ ...parts, nowMs: () => parts.clock.monotonicMs() });
    this.#unrecordedMax = parts.slotsMax * unrecordedPerSlot;
    this.#strays = new Strays(parts.store, () => parts.clock.monotonicMs());
    const warnReturn = this.#warn("deliveries could not be given back");
    this.#returns = new Returns(parts.store, (error) => {
      warnReturn(error);
      this.#strays.doubt();
    });
    this.#claims = new Claims({
      ...parts,
      admission: this.admission,
      unrecordedFree: () => this.#unrecordedMax - this.#recording.size,
      onClaimed: (claimed, instance) => this.#take(claimed, instance),
      onRefused: () => this.#strays.doubt(),
    });
    this.endpoints = new Endpoints({
      store: parts.endpoints,
      onTrouble: this.#warn("could not read which endpoints are open"),
      onClosed: (partnerId) => this.bornDue(partnerId),
    });
  }

  /** POSTs under way, and answered ones whose outcome is not durable yet. */
  get unrecorded(): number {
    return this.#recording.size;
  }

  start(): void {
    this.#stopping = false;
    this.#tickTimer = setInterval(() => {
      this.#ticking ??= this.#tick().finally(() => {
        this.#ticking = undefined;
      });
    }, tickMs);
    this.endpointsChanged();
    this.#claims.start();
  }

  /**
   * Asks for a seat before a row is written: for its time until there is a place. Undefined when there is none, when
   * the partner has due rows already, or when nothing is to be sent to its endpoint now: then the row is to be born
   * due.
   *
   * @param callBackUrl the command's own; null: the one registered
   */
  reserve(partnerId: PartnerId, bytes: number, callBackUrl: string | null): Handoff | undefined {
    const instance = this.#parts.lease.current();
    const partner = this.#parts.directory.peek(partnerId);
    if (this.#stopping || instance === undefined || partner?.state !== "active") return undefined;
    if (this.#recording.size >= this.#unrecordedMax) return undefined;
    if (this.#claims.hasBacklogOf(partnerId) || !this.endpoints.known) return undefined;
    if (this.endpoints.blocked(partnerId, callBackUrl ?? partner.settings.callBackUrl) !== undefined) return undefined;
    const seat = this.admission.seat(partner, bytes);
    return (
      seat && {
        instance,
        send: (claimed) => this.#stand(seat, claimed, instance),
        release: () => this.admission.unseat(seat),
      }
    );
  }

  /**
   * A row was left due: by this instance, or by another that says so.
   *
   * @param callBackUrl its own; null: the one registered; undefined: not known
   */
  bornDue(partnerId: PartnerId, callBackUrl?: string | null): void {
    const settings = this.#parts.directory.peek(partnerId)?.settings;
    const url = callBackUrl === null ? (settings?.callBackUrl ?? null) : callBackUrl;
    // No claim takes it before its endpoint is closed again, and that wakes us.
    if (url !== undefined && this.endpoints.blocked(partnerId, url) !== undefined) return;
    this.#claims.wakeFor(partnerId);
    // Others are told only of what stays: ten times a second at most.
    this.#announceTimer ??= setTimeout(() => {
      this.#announceTimer = undefined;
      if (!this.#claims.hasBacklog || this.#stopping) return;
      this.#parts.store.announceDue().catch(this.#warn("NOTIFY failed"));
    }, 100);
  }

  /** Rows that may stand under our lease although their write was refused: given back when the database answers. */
  disown(taken: Taken): void {
    this.#disowned.push(taken);
    // It may come to stand there even after that.
    this.#strays.doubt();
  }

  /** An endpoint was opened or closed, here or elsewhere. */
  endpointsChanged(): void {
    if (this.#stopping) return;
    this.#keep(this.endpoints.refresh().then(() => this.wake()));
  }

  /** Something may be due: claims as soon as a place is free. */
  wake(): void {
    this.#claims.wake();
  }

  /**
   * Starts no further POST, waits for those in flight (bounded), and makes the rest due for other instances.
   *
   * @returns how many were still in flight when the time was over; they are sent again by whoever takes them
   */
  async stop(): Promise<number> {
    this.#stopping = true;
    const claimed = this.#claims.stop();
    clearInterval(this.#tickTimer);
    clearTimeout(this.#announceTimer);
    const { promise: timedOut, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#parts.drainTimeoutMs);
    await Promise.race([Promise.all([claimed, this.#ticking]), timedOut]);
    await Promise.race([this.admission.slots.empty(), timedOut]);
    const left = this.admission.slots.taken;
    await Promise.race([Promise.all(this.#recording), timedOut]);
    clearTimeout(timer);
    return left;
  }

  async #tick(): Promise<void> {
    for (const waiting of this.admission.waitingRoom.overdue(waitMaxMs)) this.#leaveRoom(waiting);
    try {
      const instance = this.#parts.lease.current();
      if (this.#disowned.length > 0 && instance) {
        const disowned = this.#disowned.slice(0, 1_000);
        await this.#parts.store.giveBack(instance, disowned, 0);
        this.#disowned = this.#disowned.slice(disowned.length);
      }
      const strays = instance === undefined ? 0 : await this.#strays.look(instance);
      if (strays > 0) this.#parts.log.warn({ strays }, "gave back deliveries under our lease that nobody here had");
      const released = await this.#parts.store.releaseDead(5_000);
      if (released > 0) this.#parts.log.warn({ released }, "took over the deliveries of an instance that is gone");
      // Where nobody is limited it does not matter now how many they are. Whoever is next should find a true count.
      const { rates } = this.admission;
      if (rates.inUse || this.#ticks % livingEveryTicks === 0)
        rates.shareAmong(await this.#parts.endpoints.livingInstances());
      await this.endpoints.refresh();
      if (this.#ticks % overdueEveryTicks === 0) await this.#parkOverdue();
      this.#ticks += 1;
    } catch (error) {
      this.#parts.log.warn({ err: error }, "could not look after what is pending");
    }
    this.wake();
  }

  /** No claim takes what waits for an open endpoint: its schedule ends all the same. */
  async #parkOverdue(): Promise<void> {
    const lengths: ScheduleLength[] = [];
    for (const partnerId of this.endpoints.blockedPartners()) {
      const partner = await this.#parts.directory.find(partnerId);
      if (partner !== undefined) lengths.push({ partnerId, lengthMs: scheduleLengthMs(partner.settings.retry) });
    }
    if (lengths.length === 0) return;
    const parked = await this.#parts.endpoints.parkOverdue(lengths, overdueRowsMax);
    if (parked > 0) this.#parts.onOverdue?.(parked);
  }

  #take(claimed: Claimed, instance: Instance): void {
    const { partnerId } = claimed;
    this.#strays.take(claimed);
    const isLimited = this.admission.isLimited(partnerId);
    const place = this.admission.place(partnerId, claimed.content.length);
    if (place !== undefined) {
      void this.#run(claimed, instance, place);
      return;
    }
    // Nobody else tries an open endpoint again as long as a probe waits.
    if (!claimed.isProbe && this.admission.waitFor(claimed, instance)) return;
    this.#claims.addBacklog(partnerId);
    if (isLimited) this.#claims.wakeForToken(partnerId);
    // Taken by what was handed over since the claim was sent. Not at once again: it might have no place again.
    const pauseMs = isLimited ? this.#claims.tokenPauseMs(partnerId) : noPlacePauseMs;
    this.#keep(this.#giveUp(claimed, instance, pauseMs));
  }

  /** It is written: from its seat to a place, or to wait for one. */
  #stand(seat: Seat, claimed: Claimed, instance: Instance): void {
    this.#strays.take(claimed);
    const place = this.admission.stand(seat, claimed, instance);
    if (place !== undefined) void this.#run(claimed, instance, place);
  }

  #sendNext(partnerId: PartnerId): void {
    const lacking: PartnerId[] = [];
    // What one lacks, a token or bytes, others might lack too: a few are enough until another place is given back.
    while (lacking.length < lackingMax) {
      const waiting = this.#stopping ? undefined : this.admission.next(partnerId, lacking);
      if (waiting === undefined) return;
      const { claimed, instance, seat } = waiting;
      const place = this.admission.place(seat.partnerId, seat.bytes);
      if (place !== undefined) void this.#run(claimed, instance, place);
      else {
        lacking.push(seat.partnerId);
        this.#leaveRoom(waiting);
      }
    }
  }

  /** It goes on as a row that is due: any instance may have a place for it. */
  #leaveRoom({ claimed, instance }: Waiting): void {
    this.#claims.addBacklog(claimed.partnerId);
    this.#keep(this.#giveUp(claimed, instance, 0).then(() => this.wake()));
  }

  /** It had no place. */
  async #giveUp(claimed: Claimed, instance: Instance, delayMs: number): Promise<void> {
    await this.#giveBack(claimed, instance, delayMs);
    this.#strays.leave(claimed);
    await this.#passProbeOn(claimed, delayMs);
  }

  async #run(claimed: Claimed, instance: Instance, place: Place): Promise<void> {
    let isGiven = false;
    // As soon as the answer is there: what is left is to write it down, and nobody's POST should wait for that.
    const givePlace = (ended = false) => {
      if (!isGiven) this.#give(place, ended);
      isGiven = true;
    };
    const recorded = this.#attemptOnce(claimed, instance, place, givePlace).catch((error: unknown) => {
      this.#parts.log.error({ err: error, notification: claimed.id }, "a delivery broke; it is sent again");
      this.#strays.doubt();
    });
    this.#keep(recorded);
    await recorded;
    this.#strays.leave(claimed);
    givePlace();
  }

  async #attemptOnce(claimed: Claimed, instance: Instance, place: Place, givePlace: GivesPlace): Promise<void> {
    const partner =
      this.#parts.directory.peek(claimed.partnerId) ??
      (await this.#parts.directory.find(claimed.partnerId).catch(() => undefined));
    // Paused since it was taken, or not to be had now: kept, and not sent.
    if (partner?.state !== "active") {
      this.admission.unsent(place);
      await this.#giveBack(claimed, instance, partner === undefined ? retryLookupMs : 0);
      return this.#passProbeOn(claimed);
    }
    const url = callbackUrlOf(claimed, partner);
    const blocked = this.endpoints.blocked(partner.id, url);
    if (blocked === "gone" || (blocked === "open" && !claimed.isProbe)) {
      this.admission.unsent(place);
      return this.#hold(claimed, instance, url, blocked);
    }
    if (this.#parts.lease.current()?.epoch !== instance.epoch) {
      // If the lease is renewed after all, it stands under it still.
      this.#strays.doubt();
      return this.admission.unsent(place);
    }
    if (!this.admission.mayLeave(place, partner.settings.maxPerSecond)) {
      this.#claims.addBacklog(partner.id);
      this.#claims.wakeForToken(partner.id);
      await this.#giveBack(claimed, instance, this.#claims.tokenPauseMs(partner.id));
      return this.#passProbeOn(claimed);
    }
    const attempted = await this.#parts.attempt(claimed, partner);
    if ("putOffMs" in attempted) {
      this.admission.unsent(place);
      givePlace();
      await this.#giveBack(claimed, instance, attempted.putOffMs);
      return this.#passProbeOn(claimed);
    }
    const { attempt, next, retryAfterMs = null } = attempted;
    const { partnerId, isProbe } = claimed;
    // Before the place is given: what leaves next is not to go where nothing may be sent any more.
    const sightings = this.endpoints.sightings({ partnerId, attempt, retryAfterMs, isProbe });
    givePlace(attempt.reason !== "timeout" && attempt.reason !== "connect_timeout");
    this.#parts.onOutcome?.(claimed, attempted);
    const outcome = {
      partnerId,
      id: claimed.id,
      claimNo: claimed.claimNo,
      instance,
      attemptsMade: claimed.attemptsMade + 1,
      attempt,
      next,
      sightings,
    };
    await this.#parts.store.record(outcome).finally(() => this.endpoints.recorded(sightings));
  }

  /** Nothing is to be sent there now: it waits, and no attempt is counted. */
  async #hold(claimed: Claimed, instance: Instance, url: string | null, blocked: "open" | "gone"): Promise<void> {
    const ofItsOwn = blocked === "gone" && url !== null && !claimed.toRegistered && claimed.callBackUrl !== null;
    const { partnerId, id, claimNo } = claimed;
    const taken = { partnerId, id, claimNo, ...(ofItsOwn && { queue: urlQueue(url) }) };
    await this.#giveBack(taken, instance, blockedPauseMs);
    await this.#passProbeOn(claimed);
  }

  /**
   * The one delivery that was to try an open endpoint again did not: another may.
   *
   * @param delayMs until then
   */
  async #passProbeOn(claimed: Claimed, delayMs = 0): Promise<void> {
    if (!claimed.isProbe) return;
    const { partnerId } = claimed;
    try {
      const partner = await this.#parts.directory.find(partnerId);
      const url = partner && callbackUrlOf(claimed, partner);
      if (url) await this.#parts.endpoints.releaseProbe({ partnerId, queue: originQueue(url) }, delayMs);
    } catch (error) {
      this.#warn("a probe could not be passed on")(error);
    }
  }

  #giveBack({ partnerId, id, claimNo, queue }: Taken, instance: Instance, delayMs: number): Promise<void> {
    const taken = { partnerId, id, claimNo, ...(queue !== undefined && { queue }) };
    return this.#returns.add(instance, taken, delayMs);
  }

  #keep(work: Promise<void>): void {
    this.#recording.add(work);
    void work.finally(() => this.#recording.delete(work));
  }

  #give(place: Place, ended: boolean): void {
    const { partnerId } = place;
    this.admission.leave(place, ended);
    this.#sendNext(partnerId);
    this.#claims.placeGiven(partnerId);
  }

  #warn(message: string): (error: unknown) => void {
    return (error) => this.#parts.log.warn({ err: error }, message);
  }
}
