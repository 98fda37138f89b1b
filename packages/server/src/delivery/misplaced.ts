import { notifiedCommands } from "@paybell/contract";
import type { Partner } from "../partners/partner.ts";
import { queueOf, urlOfQueue } from "../registered-url.ts";
import type { DeliveryStore, MisplacedLook, QueueKey, QueuePosition } from "./store.ts";

/**
 * Moves deliveries out of the queues of registered URLs that accept nothing, if another URL is registered for them by
 * now. From other queues each is moved when it is at the head.
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
      const isMixed = notifiedCommands.some((command) => queueOf({ command, callBackUrl: null }, settings) !== queue);
      if (isDue && isMixed) filled.push(...(await this.#sortOne(key, (addressed) => queueOf(addressed, settings))));
      this.#seen.set(name, { urls, isSorted: known?.urls === urls });
    }
    return filled;
  }

  async #sortOne(key: QueueKey, queueOf: MisplacedLook["queueOf"]): Promise<readonly QueueKey[]> {
    const filled = new Set<string>();
    let after: QueuePosition | undefined;
    do {
      const looked = await this.#store.moveMisplaced({ ...key, after, queueOf });
      for (const queue of looked.filled) filled.add(queue);
      after = looked.after;
    } while (after !== undefined);
    return [...filled].map((queue) => ({ partnerId: key.partnerId, queue }));
  }
}
