import { join, relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The files of tiers that take half a minute or more (measured, with others beside them), the longest first. Most of
 * them wait. Vitest knows durations of earlier runs, but a fresh clone has none: it begins with the largest file, and
 * one of these would run alone at the end.
 */
export const longest: readonly string[] = [
  "test/upgrade/migration.test.ts",
  "faults/quick.test.ts",
  "test/upgrade/rolling.test.ts",
  "bench/smoke.test.ts",
  "test/packages/packages.test.ts",
  "simulation/mutants.test.ts",
  "test/intake/kafka.test.ts",
  "test/console/working-day.test.ts",
  "test/ledger/simulator-settings.test.ts",
  "test/console/console.test.ts",
  "test/callback-routes.test.ts",
  "test/tutorial.test.ts",
  "test/packages/install.test.ts",
  "test/ops/image.test.ts",
  "test/cli/command-line.test.ts",
  "test/systems/proxies.test.ts",
  "test/console/actions.test.ts",
  "test/traces.test.ts",
  "test/systems/restore.test.ts",
  "test/faults/alone.test.ts",
  "test/examples.test.ts",
];

const root = join(import.meta.dirname, "../..");

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = longest.indexOf(relative(root, moduleId));
      return at === -1 ? longest.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
