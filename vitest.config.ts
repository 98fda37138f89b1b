import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Packages find each other's sources, not dist/: the same condition that `npm start` runs with.
  resolve: { conditions: ["paybell-source"] },
  ssr: { resolve: { conditions: ["paybell-source"], externalConditions: ["paybell-source"] } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "packages/*/test/**/*.test.ts",
      "test/**/*.test.ts",
      "scripts/**/*.test.ts",
      "bench/**/*.test.ts",
    ],
    exclude: ["**/node_modules/**", "scripts/fixtures/**"],
    pool: "forks",
    // By itself vitest leaves a core free, and on two cores that is half of the time: many tests wait for leases.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    execArgv: ["--conditions=paybell-source"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/leaks.ts"],
  },
});
