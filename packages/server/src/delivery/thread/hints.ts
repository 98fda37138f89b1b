import type { PartnerId } from "../../ids.ts";
import type { Delivery } from "../store.ts";
import type { Hint } from "./messages.ts";
import type { WorkerSupervisor } from "./supervisor.ts";

export interface HintsParts {
  /** The workers of this process. */
  readonly workers: readonly Pick<WorkerSupervisor, "owns" | "offer" | "hint" | "tell">[];
  /** Tells the other processes; what it says may be lost. */
  readonly announce: (payload: string) => Promise<void>;
  readonly onTrouble: (error: unknown) => void;
}

/** What a NOTIFY may hold: 8,000 bytes in PostgreSQL. */
const payloadCharsMax = 7_000;
const announceEveryMs = 5;
/** Announcements under way: beyond them, what comes is gathered until one is answered. */
const announcingMax = 4;
/** Queues to be announced, while the database is slow. What is beyond them is left to the sweep. */
const keysMax = 10_000;

/**
 * Passes on what is due: to the worker of this process that owns the partner, with its content, else to the other
 * processes, by name alone: at once, then every 5 ms. Any hint may be lost; the owner's sweep finds the row.
 */
export class Hints {
  readonly #parts: HintsParts;
  #keys = new Set<string>();
  #announcing = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: HintsParts) {
    this.#parts = parts;
  }

  /** A delivery that was just made durable. */
  offer(delivery: Delivery): void {
    const owner = this.#ownerOf(delivery.partnerId);
    if (owner !== undefined) owner.offer(delivery);
    else this.#announce(delivery);
  }

  /** Something of the partner is due. */
  due(hint: Hint): void {
    const owner = this.#ownerOf(hint.partnerId);
    if (owner !== undefined) owner.hint(hint);
    else this.#announce(hint);
  }

  /** Another process said so. */
  heard(payload: string): void {
    const hints = readPayload(payload);
    if (hints === undefined) for (const worker of this.#parts.workers) worker.tell("due");
    for (const hint of hints ?? []) this.#ownerOf(hint.partnerId)?.hint(hint);
  }

  #ownerOf(partnerId: PartnerId) {
    return this.#parts.workers.find((worker) => worker.owns(partnerId));
  }

  #announce({ partnerId, queue }: Hint): void {
    if (this.#keys.size >= keysMax) return;
    this.#keys.add(JSON.stringify(queue === undefined ? [partnerId] : [partnerId, queue]));
    if (this.#timer !== undefined) return;
    this.#say();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#say();
    }, announceEveryMs);
  }

  #say(): void {
    if (this.#announcing >= announcingMax) return;
    let payload = "";
    for (const key of this.#keys) {
      if (payload.length + key.length > payloadCharsMax) {
        this.#announceOne(payload);
        payload = "";
      }
      payload += payload === "" ? key : `,${key}`;
    }
    this.#keys = new Set();
    if (payload !== "") this.#announceOne(payload);
  }

  #announceOne(keys: string): void {
    this.#announcing += 1;
    this.#parts
      .announce(`[${keys}]`)
      .catch(this.#parts.onTrouble)
      .finally(() => {
        this.#announcing -= 1;
        if (this.#timer === undefined) this.#say();
      });
  }
}

function readPayload(payload: string): readonly Hint[] | undefined {
  try {
    const keys = JSON.parse(payload) as readonly (readonly [PartnerId, string?])[];
    return keys.map(([partnerId, queue]) => (queue === undefined ? { partnerId } : { partnerId, queue }));
  } catch {
    return undefined;
  }
}
