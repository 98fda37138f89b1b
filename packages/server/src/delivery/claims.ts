import type { Logger } from "pino";
import type { PartnerId } from "../ids.ts";
import type { Instance, Lease } from "../instance.ts";
import type { Admission, Allowance } from "./admission.ts";
import type { Claimed, DeliveryStore } from "./store.ts";

export interface ClaimsParts {
  readonly store: Pick<DeliveryStore, "claim">;
  readonly lease: Pick<Lease, "current">;
  readonly admission: Admission;
  readonly log: Logger;
  readonly probeLeaseMs: number;
  /** How many may be taken before outcomes are durable. */
  readonly unrecordedFree: () => number;
  readonly onClaimed: (claimed: Claimed, instance: Instance) => void;
  /** A claim was refused: it may have taken rows all the same. */
  readonly onRefused: () => void;
}

/** A claim takes many rows at once: one for each freed place would cost a statement a POST. */
const claimRowsMax = 256;
const claimPauseMs = 10;
/** Tokens that come one by one are waited for together. */
const ratePauseMinMs = 50;

/** When what is due is claimed, one claim at a time, and who has something due. */
export class Claims {
  readonly #parts: ClaimsParts;
  /** Partners with due rows that nobody holds: what comes new must not overtake them. */
  readonly #backlog = new Set<PartnerId>();
  /** The last claim brought as many rows as were asked for: there are more. */
  #more = false;
  /** What is due may be too large for the bytes that are free: it is looked for when some are given back. */
  #lacksBytes = false;
  #again = false;
  #claiming: Promise<void> | undefined;
  #claimTimer: NodeJS.Timeout | undefined;
  #rateTimer: NodeJS.Timeout | undefined;
  #stopped = true;

  constructor(parts: ClaimsParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#stopped = false;
    this.wake();
  }

  /** Resolves when the claim that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#claimTimer);
    clearTimeout(this.#rateTimer);
    await this.#claiming;
  }

  /** Whether anybody has due rows, as far as is known. */
  get hasBacklog(): boolean {
    return this.#backlog.size > 0;
  }

  hasBacklogOf(partnerId: PartnerId): boolean {
    return this.#backlog.has(partnerId);
  }

  /** A row of the partner is due, or about to be. */
  addBacklog(partnerId: PartnerId): void {
    this.#backlog.add(partnerId);
  }

  /** A row of the partner is due: claims it as soon as there is room for it. */
  wakeFor(partnerId: PartnerId): void {
    this.#backlog.add(partnerId);
    if (this.#parts.admission.isLimited(partnerId)) this.wakeForToken(partnerId);
    // Else the places that it gives back wake us.
    else if (this.#mayClaim(partnerId)) this.wake();
  }

  /** Something may be due: claims as soon as a place is free. */
  wake(): void {
    this.#schedule(0);
  }

  /** A place of the partner was given back. */
  placeGiven(partnerId: PartnerId): void {
    // A moment later, so that one claim fills many places.
    if (this.#more || this.#lacksBytes || this.#mayClaim(partnerId)) this.#schedule(claimPauseMs);
  }

  /** Claims again when the partner has a token. The other partners' claims do not wait for it. */
  wakeForToken(partnerId: PartnerId): void {
    if (this.#stopped) return;
    this.#rateTimer ??= setTimeout(() => {
      this.#rateTimer = undefined;
      this.wake();
    }, this.tokenPauseMs(partnerId));
  }

  tokenPauseMs(partnerId: PartnerId): number {
    return Math.ceil(Math.max(ratePauseMinMs, this.#parts.admission.tokenInMs(partnerId)));
  }

  /** Whether it has due rows, and room for some of them. */
  #mayClaim(partnerId: PartnerId): boolean {
    return this.#backlog.has(partnerId) && this.#parts.admission.claimableOf(partnerId) > 0;
  }

  #schedule(pauseMs: number): void {
    if (this.#stopped || this.#claimTimer || this.#parts.admission.claimable === 0) return;
    if (this.#claiming !== undefined) {
      // What became due meanwhile may have come too late for it.
      this.#again = true;
      return;
    }
    this.#claimTimer = setTimeout(() => {
      this.#claimTimer = undefined;
      if (this.#stopped) return;
      this.#claiming = this.#claim().finally(() => {
        this.#claiming = undefined;
        if (this.#more || this.#again) this.#schedule(claimPauseMs);
      });
    }, pauseMs);
  }

  async #claim(): Promise<void> {
    const { admission, lease, store, log, probeLeaseMs } = this.#parts;
    this.#more = false;
    this.#again = false;
    const instance = lease.current();
    const unrecordedFree = this.#parts.unrecordedFree();
    if (instance === undefined || admission.claimable === 0 || unrecordedFree <= 0) return;
    const { bytesFree } = admission;
    this.#lacksBytes = bytesFree === 0;
    if (this.#lacksBytes) return;
    const allowance = admission.allowance();
    const { without, rowsPerPartnerMax, rowsMaxOf } = allowance;
    const rowsMax = Math.min(allowance.rowsMax, claimRowsMax, unrecordedFree);
    for (const partnerId of this.#backlog) if (admission.isLimited(partnerId)) this.wakeForToken(partnerId);
    try {
      const claimed = await store.claim(instance, {
        rowsMax,
        rowsPerPartnerMax,
        rowsMaxOf,
        bytesMax: bytesFree,
        oversizeAllowed: admission.bytes === 0,
        without: [...without],
        probeLeaseMs,
      });
      this.#more = claimed.length === rowsMax;
      // Then something large may have been left behind.
      this.#lacksBytes = claimed.reduce((sum, { content }) => sum + content.length, 0) * 2 > bytesFree;
      const full = this.#noteBacklog(claimed, allowance);
      for (const one of claimed) this.#parts.onClaimed(one, instance);
      // A partner may have room for more than one share.
      if (full.some((partnerId) => this.#mayClaim(partnerId))) this.#again = true;
    } catch (error) {
      log.warn({ err: error }, "could not claim what is due");
      this.#parts.onRefused();
    }
  }

  /**
   * A partner that gave less than its share has nothing more that is due.
   *
   * @returns those that gave their share
   */
  #noteBacklog(
    claimed: readonly Claimed[],
    { without, rowsPerPartnerMax, rowsMaxOf }: Allowance,
  ): readonly PartnerId[] {
    if (!this.#more) {
      for (const partnerId of this.#backlog) if (!without.has(partnerId)) this.#backlog.delete(partnerId);
    }
    const counts = new Map<PartnerId, number>();
    for (const { partnerId } of claimed) counts.set(partnerId, (counts.get(partnerId) ?? 0) + 1);
    const full = [...counts.keys()].filter(
      (partnerId) => (counts.get(partnerId) ?? 0) >= (rowsMaxOf.get(partnerId) ?? rowsPerPartnerMax),
    );
    for (const partnerId of full) this.#backlog.add(partnerId);
    return full;
  }
}
