import type { PartnerId } from "../../ids.ts";
import type { Delivery, Hint } from "../store.ts";
import type { WorkerSupervisor } from "./supervisor.ts";

export interface HintsParts {
  /** The workers of this process. */
  readonly workers: readonly Pick<WorkerSupervisor, "owns" | "offer" | "hint" | "notify">[];
  /** Notifies the other processes; the message may be lost. */
  readonly announce: (payload: string) => Promise<void>;
  /** A delivery was passed on within this process. */
  readonly onOffered?: () => void;
  readonly onTrouble: (error: unknown) => void;
}

/** The limit of a NOTIFY: 8,000 bytes in PostgreSQL. */
const payloadCharsMax = 7_000;
const announceEveryMs = 5;
/** Maximum number of announcements in flight. Beyond it, hints are collected until one is answered. */
const announcingMax = 4;
/** Maximum number of queues to announce while the database is slow. The rest is left to the sweep. */
const namesMax = 10_000;

/**
 * Passes on hints: to the worker of this process that owns the partner, with the content, otherwise to the other
 * processes, by name only: at once, then every 5 ms. Any hint may be lost; the owner's sweep finds the row.
 */
export class Hints {
  readonly #parts: HintsParts;
  /** Hints to announce, by partner and queue. */
  #hints = new Map<string, Hint>();
  #announcing = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: HintsParts) {
    this.#parts = parts;
  }

  /** Passes on a delivery that was just made durable. @param begunMs by the monotonic clock, before it was written */
  offer(delivery: Delivery, begunMs: number): void {
    const owner = this.#ownerOf(delivery.partnerId);
    const { partnerId, queue, scheduleStartMs: sinceMs } = delivery;
    if (owner === undefined) {
      this.#announce({ partnerId, queue, sinceMs });
      return;
    }
    owner.offer(delivery, begunMs);
    this.#parts.onOffered?.();
  }

  /** Something of the partner is due. */
  due(hint: Hint): void {
    const owner = this.#ownerOf(hint.partnerId);
    if (owner !== undefined) owner.hint(hint);
    else this.#announce(hint);
  }

  /** Another process sent this. */
  received(payload: string): void {
    const hints = readPayload(payload);
    if (hints === undefined) for (const worker of this.#parts.workers) worker.notify("due");
    for (const hint of hints ?? []) this.#ownerOf(hint.partnerId)?.hint(hint);
  }

  #ownerOf(partnerId: PartnerId) {
    return this.#parts.workers.find((worker) => worker.owns(partnerId));
  }

  #announce(hint: Hint): void {
    const name = `${hint.partnerId} ${hint.queue}`;
    const before = this.#hints.get(name);
    if (before === undefined && this.#hints.size >= namesMax) return;
    this.#hints.set(name, before === undefined ? hint : earlier(before, hint));
    if (this.#timer !== undefined) return;
    this.#send();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#send();
    }, announceEveryMs);
  }

  #send(): void {
    if (this.#announcing >= announcingMax) return;
    let payload = "";
    for (const { partnerId, queue, sinceMs } of this.#hints.values()) {
      const key = JSON.stringify([partnerId, queue, sinceMs].filter((part) => part !== undefined));
      if (payload.length + key.length > payloadCharsMax) {
        this.#announceOne(payload);
        payload = "";
      }
      payload += payload === "" ? key : `,${key}`;
    }
    this.#hints = new Map();
    if (payload !== "") this.#announceOne(payload);
  }

  #announceOne(hints: string): void {
    this.#announcing += 1;
    this.#parts
      .announce(`[${hints}]`)
      .catch(this.#parts.onTrouble)
      .finally(() => {
        this.#announcing -= 1;
        if (this.#timer === undefined) this.#send();
      });
  }
}

/** Merges two hints to one queue. If one does not know since when, the result does not either. */
function earlier(one: Hint, other: Hint): Hint {
  if (one.sinceMs === undefined) return one;
  return other.sinceMs === undefined || other.sinceMs < one.sinceMs ? other : one;
}

function readPayload(payload: string): readonly Hint[] | undefined {
  try {
    const hints = JSON.parse(payload) as readonly (readonly [PartnerId, string?, number?])[];
    return hints.map(([partnerId, queue, sinceMs]) => ({
      partnerId,
      ...(queue !== undefined && { queue }),
      ...(sinceMs !== undefined && { sinceMs }),
    }));
  } catch {
    return undefined;
  }
}
