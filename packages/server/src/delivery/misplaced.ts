import { notifiedCommands } from "@paybell/contract";
import type { Partner } from "../partners/partner.ts";
import { registeredQueue, urlOfQueue } from "../registered-url.ts";
import type { DeliveryStore, QueueKey, QueuePosition } from "./store.ts";

/**
 * Moves deliveries to the queue of the URL that is registered for their command by now, out of queues whose endpoint
 * accepts nothing. From other queues each is moved when it is at the head.
 */
export class Misplaced {
  readonly #store: Pick<DeliveryStore, "moveMisplaced">;
  /** The registered URLs by which each queue was looked at before, and whether all of it was sorted by them. */
  #seen = new Map<string, { readonly urls: string; readonly isSorted: boolean }>();

  constructor(store: Pick<DeliveryStore, "moveMisplaced">) {
    this.#store = store;
  }

  /**
   * Sorts each queue once after a change of its partner's URLs. It begins in the round after the one that sees the
   * change: other instances may hold the older ones for some seconds.
   *
   * @param shut the partner of a queue whose endpoint accepts nothing
   * @returns the queues that have more now
   */
  async sort(queues: readonly QueueKey[], shut: (key: QueueKey) => Partner | undefined): Promise<readonly QueueKey[]> {
    const before = this.#seen;
    this.#seen = new Map();
    const filled: QueueKey[] = [];
    for (const key of queues) {
      const { partnerId, queue } = key;
      const settings = shut(key)?.settings;
      if (settings === undefined || urlOfQueue(settings, queue) === undefined) continue;
      const name = `${partnerId} ${queue}`;
      const known = before.get(name);
      const urls = JSON.stringify([settings.callBackUrl, settings.callBackUrlByCommand]);
      const isDue = known?.urls === urls && !known.isSorted;
      const targets = new Map(notifiedCommands.map((command) => [command, registeredQueue(settings, command)]));
      const others = [...new Set(targets.values())].filter((target) => target !== queue);
      if (isDue && others.length > 0 && (await this.#sortOne(key, targets)) > 0) {
        filled.push(...others.map((target) => ({ partnerId, queue: target })));
      }
      this.#seen.set(name, { urls, isSorted: known?.urls === urls });
    }
    return filled;
  }

  async #sortOne(key: QueueKey, queues: ReadonlyMap<(typeof notifiedCommands)[number], string>): Promise<number> {
    let moved = 0;
    let after: QueuePosition | undefined;
    do {
      const looked = await this.#store.moveMisplaced({ ...key, after, queues });
      moved += looked.moved;
      after = looked.after;
    } while (after !== undefined);
    return moved;
  }
}
