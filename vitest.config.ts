import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { leftOutGlobs, leftOutVariable } from "./scripts/tests/tiers.ts";

// Rules and shapes: nothing of them outlives a test. One process for many of these files spares each the start and the
// loading of what they share. Measured: 46 of them took 28 s of processor time, and 11 so.
const pure = [
  "packages/contract/src/**/*.test.ts",
  "packages/server/src/{acquirer,commands,ipn,partners}/**/*.test.ts",
];
const all = [
  "packages/*/src/**/*.test.ts",
  "packages/*/test/**/*.test.ts",
  "test/**/*.test.ts",
  "scripts/**/*.test.ts",
  "bench/**/*.test.ts",
  "simulation/**/*.test.ts",
  "faults/**/*.test.ts",
  "fuzz/**/*.test.ts",
];
// Needs three servers: `npm run citus` starts them.
const isOnCitus = process.env["PAYBELL_TEST_CITUS"] !== undefined;
const citus = isOnCitus ? [] : ["test/citus/**"];
// Ends tests that hang: no test depends on these times, and a machine with other work takes ten times as long. Citus
// copies databases of thousands of files on each node before a service starts.
const endsMs = isOnCitus ? 600_000 : 120_000;
const never = ["**/node_modules/**", "scripts/fixtures/**", ...citus, ...leftOutGlobs(process.env[leftOutVariable])];

export default defineConfig({
  // Packages find each other's sources, not dist/: the same condition that `npm start` runs with.
  resolve: { conditions: ["paybell-source"] },
  ssr: { resolve: { conditions: ["paybell-source"], externalConditions: ["paybell-source"] } },
  test: {
    projects: [
      { extends: true, test: { name: "pure", include: pure, exclude: never, isolate: false } },
      {
        extends: true,
        test: {
          name: "whole",
          include: all,
          exclude: [...never, ...pure],
          globalSetup: ["test/support/global-setup.ts"],
        },
      },
    ],
    pool: "forks",
    // Many tests wait for leases, time limits and answers: with a file for each of two cores, a third of them is idle.
    maxWorkers: availableParallelism() + 1,
    execArgv: ["--conditions=paybell-source"],
    testTimeout: endsMs,
    hookTimeout: endsMs,
    // On a shared machine a test may meet a pause of seconds. A second run passes then, and the report says "retry x1".
    retry: process.env["CI"] === undefined ? 0 : 1,
    setupFiles: ["test/support/leaks.ts"],
  },
});
