import { Client } from "pg";
import { openDrained } from "./backlog.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { closeService } from "./service-rows.ts";
import { type StatementCost, Statements } from "./statements.ts";

export interface OpenTransactionPlan {
  readonly pending: number;
  readonly holdMs: number;
  readonly windowMs: number;
}

export interface OpenTransactionWindow {
  /** Since the transaction began. */
  readonly fromMs: number;
  readonly perS: number;
  /** One claim, mean, in milliseconds; what the rows it brought cost together. */
  readonly claimMs: number;
  readonly rowsPerClaim: number;
  /** Rows of `pending` that are gone, and that nobody may clear away. */
  readonly dead: number;
}

export interface OpenTransactionResult {
  readonly pending: number;
  readonly heldMs: number;
  /** Accepted a second before somebody opened a transaction. */
  readonly beforePerS: number;
  readonly windows: readonly OpenTransactionWindow[];
  /** The rate of the last window, divided by the rate before. */
  readonly lastOfBefore: number;
  /** When the transaction has ended: the first window after it. */
  readonly afterPerS: number;
}

/** Below this, more rows are written, because the measurement needs a backlog. */
const fewestLeft = 0.3;

/**
 * A backlog is drained while somebody else's transaction stays open, as a dump's does. Nothing that was deleted since
 * may be cleared away, neither from `pending` nor from its indexes.
 */
export async function measureOpenTransaction(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: OpenTransactionPlan,
  note: (line: string) => void,
): Promise<OpenTransactionResult> {
  const statements = await Statements.open(around.postgres.superuserConnectionString);
  cleanup.add(() => statements.close());
  const { name, service, rows } = await openDrained("open-transaction", around, cleanup, statements);
  note(`open transaction: writing ${plan.pending} pending notifications`);
  await rows.add(plan.pending);
  let left = plan.pending;
  await service.process.ask("sending", { to: service.at.partners.map(({ id }) => id), on: true });

  let openedMs = 0;
  const window = async (): Promise<OpenTransactionWindow> => {
    if (left < plan.pending * fewestLeft) {
      note("open transaction: writing more");
      await rows.add(plan.pending - left);
      left = plan.pending;
    }
    await statements.forget();
    const fromMs = performance.now();
    const before = await service.process.ask("standing", undefined);
    await new Promise((resolve) => setTimeout(resolve, plan.windowMs));
    const after = await service.process.ask("standing", undefined);
    const elapsedMs = performance.now() - fromMs;
    const accepted = after.attempts - before.attempts;
    left -= accepted;
    const claim = claimOf(await statements.of(name));
    return {
      fromMs: fromMs - openedMs,
      perS: (accepted / elapsedMs) * 1_000,
      claimMs: claim === undefined ? Number.NaN : claim.totalMs / claim.calls,
      rowsPerClaim: claim === undefined ? Number.NaN : claim.rows / claim.calls,
      dead: await rows.deadPending(),
    };
  };

  const warmUp = await window();
  if (Number.isNaN(warmUp.claimMs)) throw new Error("No claim was found among PostgreSQL's statements.");
  const { perS: beforePerS } = await window();
  const holder = new Client({ connectionString: service.databaseUrl });
  await holder.connect();
  cleanup.add(() => holder.end());
  await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await holder.query("SELECT pg_current_xact_id()");
  openedMs = performance.now();
  const windows: OpenTransactionWindow[] = [];
  while (performance.now() - openedMs < plan.holdMs) {
    const one = await window();
    windows.push(one);
    note(
      `open transaction: ${((one.fromMs + plan.windowMs) / 1_000).toFixed(0)} s, ${one.perS.toFixed(0)} a second, ` +
        `claim ${one.claimMs.toFixed(1)} ms, ${one.dead} dead`,
    );
  }
  const heldMs = performance.now() - openedMs;
  await holder.query("COMMIT");
  await holder.end();
  // One for the vacuum, which looks every ten seconds.
  await window();
  const { perS: afterPerS } = await window();
  await rows.close();
  await closeService(service);
  return {
    pending: plan.pending,
    heldMs,
    beforePerS,
    windows,
    lastOfBefore: (windows.at(-1)?.perS ?? Number.NaN) / beforePerS,
    afterPerS,
  };
}

/** The claim reads `notifications` along with what it takes; nothing else that skips locked rows does. */
function claimOf(costs: readonly StatementCost[]): StatementCost | undefined {
  return costs.find(({ query }) => query.includes("SKIP LOCKED") && query.includes("JOIN notifications"));
}
