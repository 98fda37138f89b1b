import { describe, expect, test } from "vitest";
import { newId, type PartnerId } from "../ids.ts";
import { KeyExhausted, type SealAlert, SealBudget, sealsAlert, sealsMax, sealsReserved } from "./seal-budget.ts";

const partnerId: PartnerId = newId();

/** The database's count, kept as the store keeps it. */
class Counts {
  seals: number;
  calls = 0;
  failing = false;

  constructor(seals: number) {
    this.seals = seals;
  }

  addSeals(_partnerId: PartnerId, keyId: string, count: number): Promise<number | undefined> {
    this.calls += 1;
    if (this.failing) return Promise.reject(new Error("no database"));
    if (keyId === "missing") return Promise.resolve(undefined);
    this.seals += count;
    return Promise.resolve(this.seals);
  }
}

function budgetOver(counts: Counts, alert: SealAlert = () => undefined): SealBudget {
  return new SealBudget(counts, alert);
}

async function take(budget: SealBudget, times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await budget.spend(partnerId, "key");
}

describe("seals", () => {
  test("are counted in the database before they are used, at any time", async () => {
    const counts = new Counts(0);
    const budget = budgetOver(counts);
    for (let taken = 1; taken <= 3 * sealsReserved; taken += 1) {
      await budget.spend(partnerId, "key");
      if (counts.seals < taken) throw new Error(`${taken} taken, ${counts.seals} counted`);
    }
    expect(counts.seals).toBeLessThanOrEqual(4 * sealsReserved);
  });

  test("are taken without waiting from a reserved block", async () => {
    const budget = budgetOver(new Counts(0));
    await take(budget, 1);
    expect(budget.spend(partnerId, "key")).toBeUndefined();
  });

  test("of many who wait share one reservation", async () => {
    const counts = new Counts(0);
    const budget = budgetOver(counts);
    await Promise.all(Array.from({ length: 500 }, () => budget.spend(partnerId, "key")));
    expect(counts.calls).toBe(1);
  });

  test("of each key version are counted for themselves, and a restart begins a new block", async () => {
    const counts = new Counts(0);
    await take(budgetOver(counts), 1);
    await take(budgetOver(counts), 1);
    expect(counts.seals).toBe(2 * sealsReserved);
  });

  test("raise one alert from 2^31 on", async () => {
    const alerts: number[] = [];
    const budget = budgetOver(new Counts(sealsAlert - 2 * sealsReserved), ({ seals }) => alerts.push(seals));
    await take(budget, 1);
    expect(alerts).toEqual([]);
    await take(budget, 3 * sealsReserved);
    expect(alerts).toEqual([sealsAlert]);
  });

  test("are refused at 2^32, the last block used up to its end", async () => {
    const counts = new Counts(sealsMax - sealsReserved);
    const budget = budgetOver(counts);
    await take(budget, sealsReserved);
    await expect(take(budget, 1)).rejects.toThrow(KeyExhausted);
    await expect(take(budget, 1)).rejects.toMatchObject({ code: "key_exhausted" });
    await expect(take(budgetOver(counts), 1)).rejects.toThrow(KeyExhausted);
  });

  test("wait for the database when there is none left, and go on when it is back", async () => {
    const counts = new Counts(0);
    const budget = budgetOver(counts);
    counts.failing = true;
    await expect(take(budget, 1)).rejects.toThrow("no database");
    counts.failing = false;
    await take(budget, 1);
  });

  test("of a key that is gone are refused", async () => {
    await expect(budgetOver(new Counts(0)).spend(partnerId, "missing")).rejects.toThrow(/no key version/);
  });
});
