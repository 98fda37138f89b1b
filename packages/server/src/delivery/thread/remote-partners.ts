import type { Clock } from "../../clock.ts";
import type { PartnerId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { PartnerSource } from "../worker.ts";
import type { PartnerAnswer } from "./messages.ts";

/** Older ones are not used: the same bound as the directory's. */
const ageMaxMs = 5_000;
/** A partner in use is requested again after this time. */
const renewAfterMs = 2_500;
const askEveryMs = 500;
/** A partner that is not used for this long is forgotten, as in the directory. */
const forgottenAfterMs = 60_000;

interface Entry {
  partner: Partner | undefined;
  confirmedMs: number;
  askedMs: number;
  usedMs: number;
}

/**
 * Partners in a worker's thread, received from the main thread: only that one has the master key, and opens their keys.
 * Every partner in use is kept: forgetting one in the middle of its deliveries would delay them.
 */
export class RemotePartners implements PartnerSource {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #ask: (id: PartnerId, isKnown: boolean) => void;
  readonly #entries = new Map<PartnerId, Entry>();
  #forgotMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonicMs">, ask: (id: PartnerId, isKnown: boolean) => void) {
    this.#clock = clock;
    this.#ask = ask;
  }

  peek(id: PartnerId): Partner | undefined {
    const nowMs = this.#clock.monotonicMs();
    const entry = this.#entries.get(id) ?? this.#begin(id, nowMs);
    entry.usedMs = nowMs;
    if (nowMs - entry.confirmedMs > renewAfterMs && nowMs - entry.askedMs > askEveryMs) {
      entry.askedMs = nowMs;
      this.#ask(id, entry.partner !== undefined);
    }
    return nowMs - entry.confirmedMs <= ageMaxMs ? entry.partner : undefined;
  }

  /** Partners in memory. */
  get count(): number {
    return this.#entries.size;
  }

  /** @returns whether it has changed */
  received({ id, partner, confirmedMs }: PartnerAnswer): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined || confirmedMs < entry.confirmedMs) return false;
    const nowMs = this.#clock.monotonicMs();
    const wasKnown = entry.partner !== undefined && nowMs - entry.confirmedMs <= ageMaxMs;
    if (partner !== "same") entry.partner = partner;
    entry.confirmedMs = confirmedMs;
    return partner !== "same" || !wasKnown;
  }

  #begin(id: PartnerId, nowMs: number): Entry {
    if (nowMs - this.#forgotMs >= forgottenAfterMs) {
      this.#forgotMs = nowMs;
      for (const [one, { usedMs }] of this.#entries) if (nowMs - usedMs >= forgottenAfterMs) this.#entries.delete(one);
    }
    const never = Number.NEGATIVE_INFINITY;
    const entry = { partner: undefined, confirmedMs: never, askedMs: never, usedMs: nowMs };
    this.#entries.set(id, entry);
    return entry;
  }
}
