import { notifiedCommands } from "@paybell/contract";
import type { Clock } from "../../clock.ts";
import type { PartnerId } from "../../ids.ts";
import { registeredUrl, urlOfQueue } from "../../notification.ts";
import type { Partner } from "../../partners/partner.ts";
import { leftOfScheduleMs, postponementMs } from "../attempt/schedule.ts";
import { type Delivery, type FailureReason, type QueueKey, scheduleAgeMs } from "../delivery.ts";
import { type Circuits, isBlocked } from "../limits/circuits.ts";
import { cooldownMs } from "../queues/queue.ts";
import type { Queues } from "../queues/queues.ts";
import { type DeliveryStore, keyOf, leftMs, type QueuePage, type QueuePosition } from "../store.ts";
import type { Ownership } from "./ownership.ts";
import type { PartnerSource } from "./partners.ts";

export interface BlockedQueuesParts {
  readonly store: Pick<DeliveryStore, "postpone" | "park">;
  readonly queues: Queues;
  readonly circuits: Circuits;
  readonly ownership: Ownership;
  readonly partners: PartnerSource;
  readonly homes: number;
  readonly clock: Clock;
  readonly onOverdue?: (partnerId: PartnerId, parked: number) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** A queue that is not read, because the endpoint that it is named for accepts nothing. */
interface BlockedQueue {
  readonly partner: Partner;
  /** The endpoint's last failure. */
  readonly reason: FailureReason | null;
}

/** The last pass of one home. */
interface Pass {
  known: ReadonlyMap<string, Known>;
  /** When the next one may begin. */
  notBeforeMs: number;
}

interface Known {
  /** The position from which it is scanned next. */
  readonly after: QueuePosition | undefined;
  /** The partner's registered URLs by which it was scanned. */
  readonly urls: string;
  /** Scans in a row, each of the whole queue, that found nothing for a URL that accepts; and when the last one was. */
  readonly cleanScans: number;
  readonly wholeMs: number;
}

const pageRows = 500;
const scanEveryMs = 10_000;
/** A pass of a large backlog is a tenth of the time. */
const scanCooldownMaxMs = 300_000;
/** The rest of deliveries that could not be postponed. */
const unwrittenMs = 30_000;
/** Other instances may hold older URLs for some seconds after a change, and commit by them. */
const cleanScansMin = 2;
/** An attempt at another URL that failed, or was postponed, is due again later. */
const wholeEveryMs = 60_000;

/**
 * Scans the queues that are not read, home by home. Their deliveries are parked when their schedule is over. A queue
 * keeps its name when other URLs are registered, so it may also have deliveries whose URL accepts: these are sent. A
 * pass scans one page of each queue; or the whole of it while it has such deliveries, after a change of the URLs, and
 * every minute while they differ.
 */
export class BlockedQueues {
  readonly #parts: BlockedQueuesParts;
  readonly #passes: readonly Pass[];

  constructor(parts: BlockedQueuesParts) {
    this.#parts = parts;
    this.#passes = Array.from({ length: parts.homes }, () => ({ known: new Map(), notBeforeMs: 0 }));
  }

  /** Begins a pass of one home, unless one is under way or the last one was just now. It never rejects. */
  async scan(home: number, queues: readonly QueueKey[]): Promise<void> {
    const { clock, onTrouble } = this.#parts;
    const startedMs = clock.monotonicMs();
    const pass = this.#passes[home];
    if (pass === undefined || startedMs < pass.notBeforeMs) return;
    // However many queues there are, the next pass begins after this one has ended.
    pass.notBeforeMs = Number.POSITIVE_INFINITY;
    await this.#scanAll(pass, queues).catch((error: unknown) =>
      onTrouble("deliveries for endpoints that accept nothing could not be scanned", error),
    );
    const endedMs = clock.monotonicMs();
    pass.notBeforeMs = endedMs + Math.max(scanEveryMs, cooldownMs(endedMs - startedMs, scanCooldownMaxMs));
  }

  /** A queue that is missing in one pass is scanned from its head when it is back. */
  async #scanAll(pass: Pass, queues: readonly QueueKey[]): Promise<void> {
    const before = pass.known;
    const known = new Map<string, Known>();
    pass.known = known;
    for (const key of queues) {
      const blocked = this.#blocked(key);
      if (blocked === undefined) continue;
      const name = `${key.partnerId} ${key.queue}`;
      known.set(name, await this.#scanOne(key, blocked.partner, before.get(name)));
    }
  }

  /** Undefined: it is read, or belongs to another worker. */
  #blocked(key: QueueKey): BlockedQueue | undefined {
    const { partners, ownership, circuits } = this.#parts;
    const partner = partners.cached(key.partnerId);
    if (partner?.state !== "active" || ownership.epochOf(key.partnerId) === undefined) return undefined;
    const gate = circuits.gateOfQueue(key, partner.settings);
    return isBlocked(gate) ? { partner, reason: gate.reason } : undefined;
  }

  /** Puts deliveries off whose URL accepts nothing, while their queue is read. Overdue ones are parked. */
  async postpone(deliveries: readonly Delivery[], partner: Partner, reason: FailureReason | null): Promise<void> {
    const { clock, store, queues, onTrouble } = this.#parts;
    const nowMs = clock.nowMs();
    const sentMs = clock.monotonicMs();
    const leftOf = (delivery: Delivery) => leftOfScheduleMs(partner, delivery, nowMs);
    const overdue = deliveries.filter((delivery) => leftOf(delivery) <= 0);
    const delayed = deliveries
      .filter((delivery) => leftOf(delivery) > 0)
      .map((delivery) => ({ delivery, delayMs: postponementMs(scheduleAgeMs(delivery, nowMs), leftOf(delivery)) }));
    try {
      await this.#park(overdue, reason);
      for (const delivery of overdue) queues.release(delivery);
      if (delayed.length > 0)
        await store.postpone(delayed.map(({ delivery, delayMs }) => ({ ...keyOf(delivery), delayMs })));
      for (const { delivery, delayMs } of delayed) queues.release(delivery, leftMs(delayMs, sentMs, clock));
    } catch (error) {
      onTrouble("deliveries for a URL that accepts nothing could not be postponed", error);
      for (const delivery of deliveries) queues.rest(delivery, unwrittenMs);
    }
  }

  async #park(deliveries: readonly Delivery[], reason: FailureReason | null): Promise<void> {
    const [first] = deliveries;
    if (first === undefined) return;
    const parked = await this.#parts.store.park(deliveries, reason ?? "timeout");
    if (parked > 0) this.#parts.onOverdue?.(first.partnerId, parked);
  }

  async #scanOne(key: QueueKey, { settings }: Partner, known: Known | undefined): Promise<Known> {
    const urls = JSON.stringify([settings.callBackUrl, settings.callBackUrlByCommand]);
    const registered = urlOfQueue(settings, key.queue);
    const mayBeMixed =
      registered !== undefined && notifiedCommands.some((command) => registeredUrl(settings, command) !== registered);
    const startedMs = this.#parts.clock.monotonicMs();
    const unchanged = known?.urls === urls ? known : undefined;
    const { cleanScans = 0, wholeMs = startedMs } = unchanged ?? {};
    const isWhole = mayBeMixed && (cleanScans < cleanScansMin || startedMs - wholeMs >= wholeEveryMs);
    let after = isWhole ? undefined : unchanged?.after;
    let isMixed = false;
    do {
      const blocked = this.#blocked(key);
      if (blocked === undefined) return { after, urls, cleanScans, wholeMs };
      const page = await this.#parts.queues.scan({ ...key, after, rowsMax: pageRows });
      isMixed = (await this.#handle(key, blocked, page)) || isMixed;
      const last = page.due.at(-1);
      after = page.hasMore && last !== undefined ? { dueAtUs: last.dueAtUs, id: last.id } : undefined;
    } while (isWhole && after !== undefined);
    if (isMixed) return { after, urls, cleanScans: 0, wholeMs: startedMs };
    return isWhole
      ? { after, urls, cleanScans: cleanScans + 1, wholeMs: startedMs }
      : { after, urls, cleanScans, wholeMs };
  }

  /** @returns whether some go to a URL that accepts */
  async #handle(key: QueueKey, { partner, reason }: BlockedQueue, { due }: QueuePage): Promise<boolean> {
    const { queues, clock, circuits } = this.#parts;
    const nowMs = clock.nowMs();
    const overdue: Delivery[] = [];
    const elsewhere: QueuePage["due"][number][] = [];
    for (const row of due) {
      const { delivery } = row;
      if (delivery === undefined) continue;
      if (!isBlocked(circuits.gateOf(delivery, partner.settings))) elsewhere.push(row);
      else if (leftOfScheduleMs(partner, delivery, nowMs) <= 0 && !queues.has(delivery.id)) overdue.push(delivery);
    }
    if (elsewhere.length > 0) queues.adopt(key, elsewhere);
    await this.#park(overdue, reason);
    return elsewhere.length > 0;
  }
}
