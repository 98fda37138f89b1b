import { Misused } from "../errors/misused.ts";
import type { SeenStore } from "../stores/store.ts";
import { type ChainOrder, chainOf, knownFrom, orderOf } from "./order.ts";
import type { ReceivedIpn } from "./receiver.ts";

/**
 * Your function for an IPN that was not processed before.
 *
 * @param tx the transaction that also records the IPN, with PostgreSQL and SQLite; otherwise undefined
 * @param order a Sale may arrive after its Void
 */
export type OnceIpn<Tx> = (received: ReceivedIpn, tx: Tx, order: ChainOrder) => unknown;

/**
 * Runs a function once for each IPN `id`, however often it arrives, also concurrently or after a crash. If it throws,
 * nothing is recorded, and the next delivery runs it again.
 *
 * @returns a function that takes yours. Its result is for a handler, or for the items that `catchUp` yields
 * @throws Misused, also from that function, if it does not get a store, or a function
 */
export function deduplicate<Tx>(
  store: SeenStore<Tx>,
): (onIpn: OnceIpn<Tx>) => (received: ReceivedIpn) => Promise<"processed" | "duplicate"> {
  if (store instanceof Promise) throw new Misused("missing_await", "deduplicate()'s store");
  if (typeof (store as Partial<SeenStore<Tx>> | undefined)?.once !== "function")
    throw new Misused("no_store", "deduplicate()");
  return (onIpn) => {
    // A handler would call it with an IPN and take the result for success, although nothing was processed.
    if (typeof onIpn !== "function") throw new Misused("no_function", "deduplicate(store)(…)");
    return async (received) => {
      const { id } = received.ipn;
      // Every IPN without an id would be a duplicate of the first one.
      if (id === "")
        throw new Misused("no_id", "The IPN", { meaning: "has no id: nothing tells whether it was processed before" });
      const facts = knownFrom(received);
      return await store.once({ id, chain: chainOf(received), facts }, (tx, known) =>
        onIpn(received, tx, orderOf(facts, known)),
      );
    };
  };
}
