import { expect, onTestFinished, vi } from "vitest";
import type { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { PostgresTransactions } from "../../packages/server/src/store/transactions/transactions.ts";

export interface HeldAnswers {
  /** Resolves once so many commands of this process were begun, or found to be repeats. */
  begun(commands: number): Promise<void>;
  go(): void;
}

/** Holds what these acquirers are asked until the test lets it go, so that what must happen meanwhile does. */
export function holdAnswers(...acquirers: readonly SimulatedAcquirer[]): HeldAnswers {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const held = acquirers.map((acquirer) => {
    const ask = acquirer.ask.bind(acquirer);
    return vi.spyOn(acquirer, "ask").mockImplementation((...question) => gone.then(() => ask(...question)));
  });
  const begin = vi.spyOn(PostgresTransactions.prototype, "begin");
  const go = () => {
    resolve();
    for (const spy of [...held, begin]) spy.mockRestore();
  };
  onTestFinished(go);
  return {
    begun: (commands) =>
      expect.poll(() => begin.mock.settledResults.filter(({ type }) => type === "fulfilled")).toHaveLength(commands),
    go,
  };
}
