import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { leftOutGlobs, leftOutVariable, TiersFirst } from "./scripts/tests/tiers.ts";

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
const endsMs = isOnCitus ? 1_800_000 : 900_000;
const never = ["**/node_modules/**", ...citus, ...leftOutGlobs(process.env[leftOutVariable])];

export default defineConfig({
  // Packages find each other's sources, not dist/: the same condition that `npm start` runs with.
  resolve: { conditions: ["paybell-source"] },
  // In which vitest runs the global set-up.
  environments: { __vitest__: { resolve: { conditions: ["paybell-source"], externalConditions: ["paybell-source"] } } },
  ssr: { resolve: { conditions: ["paybell-source"], externalConditions: ["paybell-source"] } },
  test: {
    include: all,
    exclude: never,
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // A process runs many files, which spares each the start and the loading of the service: measured, of 570 s of the
    // core's processor time 140. Open resources and the time of ids (test/support/leaks.ts) do not outlive a file.
    isolate: false,
    // Many tests wait for leases, time limits and answers: with a file for each of two cores, a third of them is idle.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: TiersFirst },
    execArgv: ["--conditions=paybell-source"],
    testTimeout: endsMs,
    hookTimeout: endsMs,
    // By default a second, which a machine with other work needs for nothing at all.
    expect: { poll: { timeout: endsMs / 2, interval: 25 } },
    setupFiles: ["test/support/leaks.ts", "test/support/properties.ts"],
  },
});
