import type { Clock } from "../../clock.ts";
import type { PartnerId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { PartnerSource } from "../attempting.ts";
import type { PartnerAnswer } from "./messages.ts";

/** Older ones are not relied on: the same bound as the directory's. */
const ageMaxMs = 5_000;
/** One that is in use is asked for again in time. */
const renewAfterMs = 2_500;
const askEveryMs = 500;
/** Beyond, the one that was asked for first is forgotten, and asked for again when it is needed. */
const partnersMax = 10_000;

interface Entry {
  partner: Partner | undefined;
  confirmedMs: number;
  askedMs: number;
}

/** Partners in a worker's thread, as the main thread told them: it alone has the master key, and opens their keys. */
export class RemotePartners implements PartnerSource {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #ask: (id: PartnerId, isKnown: boolean) => void;
  readonly #entries = new Map<PartnerId, Entry>();

  constructor(clock: Pick<Clock, "monotonicMs">, ask: (id: PartnerId, isKnown: boolean) => void) {
    this.#clock = clock;
    this.#ask = ask;
  }

  peek(id: PartnerId): Partner | undefined {
    const nowMs = this.#clock.monotonicMs();
    const entry = this.#entries.get(id) ?? this.#begin(id);
    if (nowMs - entry.confirmedMs > renewAfterMs && nowMs - entry.askedMs > askEveryMs) {
      entry.askedMs = nowMs;
      this.#ask(id, entry.partner !== undefined);
    }
    return nowMs - entry.confirmedMs <= ageMaxMs ? entry.partner : undefined;
  }

  /** @returns whether it is another now than it was */
  told({ id, partner, confirmedMs }: PartnerAnswer): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined || confirmedMs < entry.confirmedMs) return false;
    const nowMs = this.#clock.monotonicMs();
    const wasKnown = entry.partner !== undefined && nowMs - entry.confirmedMs <= ageMaxMs;
    if (partner !== "same") entry.partner = partner;
    entry.confirmedMs = confirmedMs;
    return partner !== "same" || !wasKnown;
  }

  #begin(id: PartnerId): Entry {
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= partnersMax && oldest !== undefined) this.#entries.delete(oldest);
    const never = Number.NEGATIVE_INFINITY;
    const entry = { partner: undefined, confirmedMs: never, askedMs: never };
    this.#entries.set(id, entry);
    return entry;
  }
}
