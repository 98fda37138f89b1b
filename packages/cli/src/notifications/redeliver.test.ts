import { expect, test } from "vitest";
import type { Api } from "../client/api.ts";
import { redeliverShares } from "./redeliver.ts";

test("a redelivery of several partners is one, whose progress counts them all", async () => {
  const posted: unknown[] = [];
  const post = async (path: string, body: unknown) => {
    posted.push([path, body]);
    return { id: "r-1", matched: 2, redelivered: 2, held: { paused: 1, order: 2 } };
  };
  const shares = [
    { partner: "p-1", matched: 2 },
    { partner: "p-2", matched: 3 },
  ];
  const done: number[] = [];
  const operator = { api: { post } as unknown as Api, role: "operator" } as const;
  const sum = await redeliverShares(operator, shares, { state: "parked" }, "original", (count) => done.push(count));
  expect(sum).toEqual({ id: "r-1", redelivered: 4, held: { paused: 2, order: 4 } });
  expect(done).toEqual([2, 5]);
  const path = "/operator/v1/redeliveries";
  expect(posted).toEqual([
    [path, { filter: { state: "parked", partner: "p-1" }, to: "original" }],
    [path, { filter: { state: "parked", partner: "p-2" }, to: "original", redelivery: "r-1" }],
  ]);
});
