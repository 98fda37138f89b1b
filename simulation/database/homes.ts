import type { CircuitStore } from "../../packages/server/src/delivery/circuit.ts";
import type { DeliveryStore } from "../../packages/server/src/delivery/store.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import { homeOf, shardOf } from "../../packages/server/src/shard.ts";
import type { World } from "../world.ts";

interface OfPartner {
  readonly partnerId: PartnerId;
}

/** The one home that a statement is about. */
function homeFor<One>(world: World, homes: readonly One[], shards: readonly number[]): One {
  const asked = new Set(shards.map((shard) => homeOf(shard, homes.length)));
  if (asked.size > 1) world.violated(0, `a statement is about ${asked.size} homes`);
  const [first = 0] = asked;
  // Every shard has one.
  return homes[first] as One;
}

export function deliveriesOf(world: World, homes: readonly DeliveryStore[]): DeliveryStore {
  const of = (...some: readonly OfPartner[]) =>
    homeFor(
      world,
      homes,
      some.map(({ partnerId }) => shardOf(partnerId)),
    );
  return {
    read: (reads) => of(...reads).read(reads),
    look: (look) => of(look).look(look),
    heads: (shards) => homeFor(world, homes, shards).heads(shards),
    preceding: (deliveries) => of(...deliveries).preceding(deliveries),
    record: (outcome) => of(outcome).record(outcome),
    postpone: (deliveries) => of(...deliveries).postpone(deliveries),
    park: (deliveries, reason) => of(...deliveries).park(deliveries, reason),
  };
}

export function circuitsOf(world: World, homes: readonly CircuitStore[]): CircuitStore {
  return {
    load: (shards) => homeFor(world, homes, shards).load(shards),
    loadChangedByHand: (shards) => homeFor(world, homes, shards).loadChangedByHand(shards),
  };
}
