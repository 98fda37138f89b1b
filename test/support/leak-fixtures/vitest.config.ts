import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Run by ../leaks.test.ts alone: each file here but "clean" and "cleared" has to fail.
export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ["*.fixture.ts"],
    pool: "forks",
    // They only wait for resources that never close, so all run at once.
    maxWorkers: 6,
    setupFiles: [join(import.meta.dirname, "../leaks.ts")],
    // As for all tests: a machine with other work takes ten times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // A leaked handle would otherwise hold the worker at its end.
    teardownTimeout: 1_000,
  },
});
