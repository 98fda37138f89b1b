import { describe, expect, test } from "vitest";
import { mutants } from "./mutants.ts";
import { simulate } from "./simulation.ts";

/** A world of its own for each seed, so that a change elsewhere does not hide a mutant behind one quiet run. */
const stepsPerWorld = 200_000;
const worldsMax = 6;

describe("the simulation finds", () => {
  test.each(mutants.map((mutant) => [mutant.name, mutant] as const))("%s", async (_, mutant) => {
    const repair = mutant.sabotage();
    try {
      for (let seed = mutant.seed; seed < mutant.seed + worldsMax; seed += 1) {
        const { faults = "all" } = mutant;
        const { violation } = await simulate({ seed, steps: stepsPerWorld, faults });
        if (violation === undefined) continue;
        // Not because the mutant itself breaks: an invariant says what is wrong.
        expect(violation.invariant, violation.text).toBeGreaterThan(0);
        return;
      }
      throw new Error(`nothing was found in ${worldsMax} worlds`);
    } finally {
      repair();
    }
  });
});
