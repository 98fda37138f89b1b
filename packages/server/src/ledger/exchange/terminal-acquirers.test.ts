import { expect, test, vi } from "vitest";
import type { Acquirers } from "../../acquirer/acquirer.ts";
import { newId } from "../../ids.ts";
import { TerminalAcquirers } from "./terminal-acquirers.ts";

test("terminals of two partners with one tid have each their own acquirer, which is read once", async () => {
  const [one, other] = [newId<"partner">(), newId<"partner">()];
  const acquirerOf = vi.fn(async (partnerId: string) => (partnerId === one ? "first" : "second"));
  const acquirers = new TerminalAcquirers({ acquirerOf }, { names: () => ["first", "second"] } as unknown as Acquirers);
  for (const partnerId of [one, other, one])
    expect(await acquirers.of(partnerId, "T1")).toBe(partnerId === one ? "first" : "second");
  expect(acquirerOf).toHaveBeenCalledTimes(2);
});
