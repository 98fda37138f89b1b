import { expect, test } from "vitest";
import type { Acquirers } from "../acquirer/acquirer.ts";
import { newId } from "../ids.ts";
import { TerminalAcquirers } from "./terminal-acquirers.ts";

test("terminals of two partners with one tid have each their own acquirer", async () => {
  const [one, other] = [newId<"partner">(), newId<"partner">()];
  const store = { acquirerOf: async (partnerId: string) => (partnerId === one ? "first" : "second") };
  const acquirers = new TerminalAcquirers(store, { names: () => ["first", "second"] } as unknown as Acquirers);
  for (const partnerId of [one, other, one])
    expect(await acquirers.of(partnerId, "T1")).toBe(partnerId === one ? "first" : "second");
});

test("the acquirers of the terminals that were read first are forgotten beyond 50,000", async () => {
  const partnerId = newId<"partner">();
  const read: string[] = [];
  const store = {
    acquirerOf: async (_: string, tid: string) => {
      read.push(tid);
      return "bank";
    },
  };
  const acquirers = new TerminalAcquirers(store, { names: () => ["bank"] } as unknown as Acquirers);
  for (let nth = 0; nth <= 50_000; nth += 1) await acquirers.of(partnerId, `T${nth}`);
  read.length = 0;
  expect(await acquirers.of(partnerId, "T50000")).toBe("bank");
  expect(read).toEqual([]);
  await acquirers.of(partnerId, "T0");
  expect(read).toEqual(["T0"]);
});
