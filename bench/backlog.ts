import { BacklogRows } from "./backlog-rows.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { type BenchService, closeService, openService } from "./service-rows.ts";
import { type StatementCost, Statements } from "./statements.ts";
import { type Spread, spread } from "./statistics.ts";

export interface BacklogPlan {
  /** Pending in the one database; the other has what one round drains. */
  readonly pending: number;
  readonly rounds: number;
  readonly rowsPerRound: number;
}

/** The cost of one statement with few pending rows and with many, in milliseconds per call. */
export interface GrownStatement {
  readonly query: string;
  readonly fewMs: number;
  readonly manyMs: number;
}

export interface BacklogResult {
  readonly pending: number;
  readonly rowsPerRound: number;
  /** Accepted a second. */
  readonly fewPerS: Spread;
  readonly manyPerS: Spread;
  /** Round by round. */
  readonly manyOfFew: Spread;
  /** Peak memory with many pending minus peak memory with few, in bytes. */
  readonly memoryGrowth: number;
  /** Each statement that took a visible share of the drains. */
  readonly statements: readonly GrownStatement[];
  /** The statements among them that take half as long again with many pending. */
  readonly grown: readonly GrownStatement[];
}

/** Below this share of the whole time, and below this difference, a statement's mean says nothing. */
const visibleShare = 0.01;
const visibleMs = 0.2;
const grownBy = 1.5;

interface Drained {
  readonly name: string;
  readonly service: BenchService;
  readonly rows: BacklogRows;
}

/** Two databases, one with hardly anything pending and one with a great deal, drained in turns. */
export async function measureBacklog(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: BacklogPlan,
  note: (line: string) => void,
): Promise<BacklogResult> {
  const statements = await Statements.open(around.postgres.superuserConnectionString);
  cleanup.add(() => statements.close());
  const few = await openDrained("backlog-few", around, cleanup, statements);
  const many = await openDrained("backlog-many", around, cleanup, statements);
  note(`backlog: writing ${plan.pending} pending notifications`);
  await many.rows.add(plan.pending);
  // Otherwise its last rows would be drained with fewer and fewer POSTs in flight.
  await few.rows.add(plan.rowsPerRound / 4);
  const ratesOf = new Map<Drained, number[]>([
    [few, []],
    [many, []],
  ]);
  for (let round = 0; round <= plan.rounds; round += 1) {
    if (round === 1) await statements.forget();
    for (const [one, rates] of ratesOf) {
      await one.rows.add(plan.rowsPerRound);
      const { count, elapsedMs } = await one.service.process.ask("drain", { rows: plan.rowsPerRound });
      if (round > 0) rates.push((count / elapsedMs) * 1_000);
    }
    note(round === 0 ? "backlog: warmed up" : `backlog: round ${round} of ${plan.rounds}`);
  }
  const [fewRates = [], manyRates = []] = ratesOf.values();
  const compared = compare(await statements.of(few.name), await statements.of(many.name));
  const [fewHeld, manyHeld] = await Promise.all(
    [few, many].map(async ({ service }) => (await service.process.ask("standing", undefined)).memory.rss),
  );
  for (const { service, rows } of [few, many]) {
    await rows.close();
    await closeService(service);
  }
  return {
    pending: plan.pending,
    rowsPerRound: plan.rowsPerRound,
    fewPerS: spread(fewRates),
    manyPerS: spread(manyRates),
    manyOfFew: spread(manyRates.map((rate, round) => rate / (fewRates[round] ?? Number.NaN))),
    memoryGrowth: (manyHeld ?? Number.NaN) - (fewHeld ?? Number.NaN),
    statements: compared,
    grown: compared.filter(({ fewMs, manyMs }) => manyMs > fewMs * grownBy && manyMs - fewMs > visibleMs),
  };
}

/** A service that sends to nobody yet, and one row of each of its partners to copy. */
export async function openDrained(
  name: string,
  around: BenchEnvironment,
  cleanup: Cleanup,
  statements: Statements,
): Promise<Drained> {
  const databaseUrl = await around.newDatabase(name);
  await statements.watch(name);
  const service = await openService(around, cleanup, name, { databaseUrl });
  const rows = await BacklogRows.open(service.databaseUrl, service.at.masterKey);
  cleanup.add(() => rows.close());
  const to = service.at.partners.map(({ id }) => id);
  await service.process.ask("sending", { to, on: false });
  await service.process.ask("reportEach", to);
  await rows.takeAsTemplates();
  return { name, service, rows };
}

function compare(few: readonly StatementCost[], many: readonly StatementCost[]): readonly GrownStatement[] {
  const allMs = many.reduce((sum, { totalMs }) => sum + totalMs, 0);
  return many.flatMap(({ query, calls, totalMs }) => {
    const before = few.find((one) => one.query === query);
    // The statements of the bench itself run once per round.
    if (before === undefined || totalMs < allMs * visibleShare || query.includes("template_")) return [];
    return [{ query: query.slice(0, 80), fewMs: before.totalMs / before.calls, manyMs: totalMs / calls }];
  });
}
