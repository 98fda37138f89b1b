import fc from "fast-check";
import type { Pool } from "pg";
import { describe, expect, test } from "vitest";
import { type PartnerId, shardOf } from "../../ids.ts";
import { type Home, Homes, homesFor } from "./homes.ts";

const noPool = {} as Pool;
const homesOf = (count: number) =>
  new Homes(
    Array.from({ length: count }, (): Home => ({ pool: noPool, engine: noPool, ddl: noPool, handsRowsOn: false })),
  );
const partnerAt = (shard: number) =>
  `00000000-0000-7000-8000-0000000000${shard.toString(16).padStart(2, "0")}` as PartnerId;
const counts = fc.integer({ min: 0, max: 8 }).map((power) => 2 ** power);
const partners = fc.array(fc.integer({ min: 0, max: 255 }).map((shard) => ({ partnerId: partnerAt(shard) })));

describe("homes", () => {
  test("share the shards evenly, neighbours together", () => {
    const homes = homesOf(8);
    const holders = Array.from({ length: 256 }, (_, shard) => homes.all.indexOf(homes.of(partnerAt(shard))));
    expect(holders).toEqual(Array.from({ length: 256 }, (_, shard) => shard >> 5));
  });

  test("are each asked about their own alone, and the answers come in the order of what was asked about", async () => {
    await fc.assert(
      fc.asyncProperty(counts, partners, async (count, asked) => {
        const homes = homesOf(count);
        const answers = await homes.ask(asked, async (home, some) => {
          expect(some.every(({ partnerId }) => homes.of(partnerId) === home)).toBe(true);
          return some.map(({ partnerId }) => `about ${partnerId}`);
        });
        expect(answers).toEqual(asked.map(({ partnerId }) => `about ${partnerId}`));
      }),
    );
  });

  test("answer all together where there may be fewer answers than questions", async () => {
    await fc.assert(
      fc.asyncProperty(counts, partners, async (count, asked) => {
        const homes = homesOf(count);
        const shardOfAsked = ({ partnerId }: { partnerId: PartnerId }) => shardOf(partnerId);
        const odd = (one: { partnerId: PartnerId }) => shardOfAsked(one) % 2 === 1;
        const answers = await homes.askAbout(asked, shardOfAsked, async (_, some) => some.filter(odd));
        const ids = (some: readonly { partnerId: PartnerId }[]) => some.map(({ partnerId }) => partnerId).sort();
        expect(ids(answers)).toEqual(ids(asked.filter(odd)));
      }),
    );
  });

  test("each have one of a kind, and give their share of what may be taken", () => {
    const homes = homesOf(4);
    const numbers = homes.each((home) => homes.all.indexOf(home));
    expect([0, 63, 64, 255].map((shard) => numbers.of(partnerAt(shard)))).toEqual([0, 0, 1, 3]);
    expect(homes.share(10)).toBe(3);
  });

  test("are four for each node, in a number that divides the shards", () => {
    expect([1, 2, 3, 5, 64, 1_000].map(homesFor)).toEqual([4, 8, 16, 32, 256, 256]);
    expect(() => homesFor(0)).toThrow("citus_add_node");
  });
});
