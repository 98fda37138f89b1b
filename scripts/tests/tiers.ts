import { join, relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests of one thing that take long. CI runs them when what they test has changed; the core it runs always. */
export interface Tier {
  readonly name: string;
  /** Its test files, and folders that hold nothing but its tests. */
  readonly tests: readonly string[];
  /** Files and folders whose change can make it fail, in addition to its tests and `sharedInputs`. */
  readonly inputs: readonly string[];
}

/** Whatever a tier tests is installed, configured and started by these. */
const sharedInputs: readonly string[] = [
  ".ci",
  ".npmrc",
  "package.json",
  "package-lock.json",
  "scripts/pages.js",
  "scripts/test.ts",
  "scripts/tests",
  "test/support",
  "tsconfig.base.json",
  "vitest.config.ts",
];

/** Of the link to a host: tests and benchmarks connect by it. */
const profile = "docs/operator/acquirer-profile.json";

const service = ["packages/cli", "packages/contract", "packages/partner", "packages/server"];

const server = (...folders: string[]) => folders.map((folder) => `packages/server/src/${folder}`);

/** Every tier but the core. A test file that none of them names belongs to the core. */
export const tiers: readonly Tier[] = [
  {
    name: "checkers",
    tests: ["scripts/checkers.test.ts", "test/support"],
    inputs: [
      ...[".dependency-cruiser.js", ".markdownlint-cli2.mjs", "biome.json", "knip.json", "scripts", "tsconfig.json"],
      ...[...server("clock.ts", "ids.ts", "postgres", "store/database"), "docs/internals/testing.md"],
    ],
  },
  {
    name: "languages",
    tests: ["test/languages"],
    inputs: [
      ...["clients", "docs/partner", "packages/contract", "packages/partner"],
      ...["scripts/build/clients.ts", "scripts/sources"],
    ],
  },
  {
    name: "packages",
    tests: ["scripts/supply.test.ts", "test/packages"],
    inputs: [
      ...[...service, "packages/console", "scripts", "test/certify", "tsconfig.json", "README.md", "LICENSE"],
      // What a release writes, and what the tests of the supply read.
      ...["bench/peers", "clients", "ops/helm/paybell/Chart.yaml", "docs/decisions/dependencies.md"],
      ...["docs/operator/deploy.md", "docs/operator/production.md", "docs/partner/quickstart-java.md"],
      ...["docs/partner/quickstart-php.md", "docs/partner/quickstart-python.md", "docs/partner/vectors.json"],
    ],
  },
  {
    name: "partner",
    tests: ["packages/partner/test"],
    inputs: ["docs", "packages/contract", "packages/partner", "packages/server", "README.md", "scripts/sources"],
  },
  {
    name: "documents",
    tests: ["test/examples.test.ts", "test/guides.test.ts", "test/tutorial.test.ts", "test/what-to-book.test.ts"],
    inputs: [
      ...[...service, "docs", "ops", "packages/console", "README.md", "scripts"],
      ...["test/console/browser.ts", "test/packages"],
    ],
  },
  {
    name: "postgres",
    tests: [
      ...server("postgres", "store/schema"),
      "test/database-password.test.ts",
      "test/no-acquirer.test.ts",
      "test/sandbox.test.ts",
      "test/sandbox-ending.test.ts",
      "test/taken-port.test.ts",
    ],
    inputs: [...service, profile],
  },
  {
    // Statements on tables of the size that they have after years.
    name: "large-tables",
    tests: server(
      "ledger/large-batch.test.ts",
      "store/notifications/plans.test.ts",
      "store/plans.test.ts",
      "store/terminals/sequences.test.ts",
      "store/transactions/plans-by-key.test.ts",
    ),
    inputs: ["packages/contract", "packages/server"],
  },
  {
    // Whole services whose endpoints, instances and circuits change over time.
    name: "delivery",
    tests: [
      "test/acquirer-session.test.ts",
      "test/acquirer-ambiguous.test.ts",
      "test/backpressure.test.ts",
      "test/callback-routes.test.ts",
      "test/endpoints.test.ts",
      "test/fairness.test.ts",
      "test/retries.test.ts",
      "test/roles.test.ts",
    ],
    inputs: [...service, profile, "docs/operator/runbook.md"],
  },
  { name: "operations", tests: ["test/ops", "test/traces.test.ts"], inputs: [...service, "docs", "ops"] },
  {
    name: "systems",
    tests: ["packages/partner/src/stores/redis.test.ts", "test/systems"],
    inputs: [...service, "bench/redis.ts", "docs/operator/deploy.md", "ops", "test/cli", "test/ops"],
  },
  {
    name: "browser",
    tests: [...server("http/console/oidc.test.ts"), "test/console", "test/sign-out.test.ts"],
    inputs: [...service, "packages/console", profile],
  },
  {
    name: "cli",
    tests: ["test/certify", "test/cli"],
    inputs: [...service, "docs/partner/certify.md", "docs/partner/what-to-book.md", "scripts/sources", profile],
  },
  { name: "acquirer-host", tests: ["test/acquirer-host"], inputs: [...service, "bench", "faults", profile] },
  { name: "intake", tests: ["test/intake"], inputs: [...service, profile] },
  { name: "faults", tests: ["faults", "test/faults"], inputs: [...service, "bench"] },
  { name: "upgrade", tests: ["test/upgrade"], inputs: [...service, "scripts"] },
  {
    name: "simulation",
    tests: ["simulation/mutants.test.ts"],
    inputs: ["faults/random.ts", "packages/contract", "packages/server", "simulation"],
  },
  { name: "fuzz", tests: ["fuzz"], inputs: [...service, "faults/random.ts", "scripts/generate", "scripts/sources"] },
  { name: "bench", tests: ["bench"], inputs: [...service, profile] },
];

/** The tier of a test file; undefined for one of the core. */
export function tierOf(path: string): Tier | undefined {
  return tiers.find(({ tests }) => isWithin(path, tests));
}

/** Whether a change of this file can make a test of the tier fail. The test files of others cannot. */
export function isInput({ tests, inputs }: Tier, path: string): boolean {
  return isWithin(path, tests) || (!isTestFile(path) && isWithin(path, [...inputs, ...sharedInputs]));
}

function isTestFile(path: string): boolean {
  return /\.test\.tsx?$/.test(path);
}

function isWithin(path: string, places: readonly string[]): boolean {
  return places.some((place) => path === place || path.startsWith(`${place}/`));
}

/** Names the tiers that `vitest.config.ts` leaves out. */
export const leftOutVariable = "TEST_TIERS_LEFT_OUT";

/** Globs of the test files that a run leaves out, by the value of {@link leftOutVariable}. */
export function leftOutGlobs(value = ""): string[] {
  const names = value.split(",");
  const places = tiers.filter(({ name }) => names.includes(name)).flatMap(({ tests }) => tests);
  return places.map((place) => (place.endsWith(".ts") ? place : `${place}/**`));
}

const root = join(import.meta.dirname, "../..");

/**
 * Files of tiers take long, and most of them wait. Vitest knows durations of earlier runs, but a fresh clone has none:
 * it begins with the largest file, and one of these would run alone at the end.
 */
export class TiersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => (tierOf(relative(root, moduleId)) === undefined ? 1 : 0);
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
