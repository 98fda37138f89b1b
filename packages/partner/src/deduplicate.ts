import { Misused } from "./misused.ts";
import { type ChainOrder, chainOf, knownFrom, orderOf } from "./order.ts";
import type { ReceivedIpn } from "./receiver.ts";
import type { SeenStore } from "./stores/store.ts";

/**
 * What you do with an IPN that was not processed before.
 *
 * @param tx writes in the same transaction that remembers the IPN, with PostgreSQL and SQLite; else undefined
 * @param order how it stands in its chain: a Sale may come after its Void
 */
export type OnceIpn<Tx> = (received: ReceivedIpn, tx: Tx, order: ChainOrder) => unknown;

/**
 * Runs a function once for each IPN, however often it comes: retries, redeliveries, duplicates at the same moment,
 * crashes. An IPN is told by its `id`, which every redelivery and the pull API repeat. When the function throws,
 * nothing is remembered and the next delivery runs it again.
 *
 * @returns give it your function; what it gives back is for a handler, or for what `catchUp` yields
 * @throws Misused (also from what is given back) when that is no store, or no function
 */
export function deduplicate<Tx>(
  store: SeenStore<Tx>,
): (onIpn: OnceIpn<Tx>) => (received: ReceivedIpn) => Promise<"processed" | "duplicate"> {
  if (store instanceof Promise) throw new Misused("missing_await", "deduplicate()'s store");
  if (typeof (store as Partial<SeenStore<Tx>> | undefined)?.once !== "function")
    throw new Misused("no_store", "deduplicate()");
  return (onIpn) => {
    // A handler would call it with an IPN, take the answer for success, and nobody would have processed anything.
    if (typeof onIpn !== "function") throw new Misused("no_function", "deduplicate(store)(…)");
    return async (received) => {
      const { id } = received.ipn;
      // Every one without would be a duplicate of the first.
      if (id === "")
        throw new Misused("no_id", "The IPN", { meaning: "has no id: nothing tells whether it was processed before" });
      const facts = knownFrom(received);
      return await store.once({ id, chain: chainOf(received), facts }, (tx, known) =>
        onIpn(received, tx, orderOf(facts, known)),
      );
    };
  };
}
