import { setTimeout as pause } from "node:timers/promises";
import type { FaultContext, InjectedFault, Slowdown } from "./catalogue.ts";
import { type Deployment, slots, unrecordedPerSlot } from "./deployment.ts";
import { merchantTransIdOf } from "./journal.ts";
import type { SeededRandom } from "./random.ts";

/** One fault, and what followed from it. */
export interface Round {
  readonly fault: string;
  /** Its commands: from this number to less than that one. */
  readonly from: number;
  readonly to: number;
  /** From the end of the fault until every partner got a new notification; undefined: some never did. */
  readonly recoveryMs: number | undefined;
  /** From the end of the fault until nothing was owed of all that was accepted before it. */
  readonly drainedMs: number;
  /** Instances were only stopped in order: none of its commands may be declined because of it. */
  readonly isPlanned: boolean;
  /** The bound on repeated IPNs: those in flight where the fault hit. */
  readonly duplicatesMax: number;
  readonly slowdown?: Slowdown | undefined;
}

/** A partner without a notification by then never gets one. */
const recoveryEndsMs = 120_000;
const drainEndsMs = 120_000;
const quotaEndsMs = 300_000;
const lookEveryMs = 50;
/** Each look at what is still owed asks the service for one of them. */
const askEveryMs = 250;
/** The last deliveries may not be in the journal yet. */
const settleMs = 2_000;

export interface RoundPlan {
  readonly fault: InjectedFault;
  /** The total number of commands before the next fault. */
  readonly until: number;
  /** Faults last as short as they can. */
  readonly isQuick: boolean;
}

/** Lets one fault happen in the middle of the load, and waits until everything works again and is delivered. */
export async function runRound(
  stage: Deployment,
  { fault, until, isQuick }: RoundPlan,
  from: number,
  random: SeededRandom,
): Promise<Round> {
  const { journal } = stage;
  await pause(random.within(200, isQuick ? 500 : 1_500));
  const answersLostBefore = stage.answersLost;
  let overAtMs = performance.now();
  const context: FaultContext = {
    stage,
    random,
    over() {
      overAtMs = performance.now();
      stage.recovery = new Recovery(stage.partners.length, journal.size);
    },
    last: (leastMs, mostMs) => pause(isQuick ? leastMs : random.within(leastMs, mostMs)),
  };
  const { instances, isPlanned = false, slowdown } = await fault.happen(context);
  const recoveryMs = await stage.recovery?.within(recoveryEndsMs);
  stage.recovery = undefined;
  const to = journal.size;
  await drained(stage, drainEndsMs, to);
  const drainedMs = performance.now() - overAtMs;
  if (journal.owed(0, to) === 0) await recorded(stage);
  await eventually(quotaEndsMs, () => journal.size >= until);
  const inFlight = instances * slots * (1 + unrecordedPerSlot);
  const duplicatesMax = inFlight + stage.answersLost - answersLostBefore;
  return { fault: fault.name, from, to, recoveryMs, drainedMs, duplicatesMax, isPlanned, slowdown };
}

/**
 * Until nothing is owed of what came before `to`; or until the service itself says that one of them is not pending:
 * that one never comes.
 */
export async function drained(stage: Deployment, boundMs: number, to: number): Promise<void> {
  const { journal } = stage;
  const deadlineMs = performance.now() + boundMs;
  let suspect: number | undefined;
  while (journal.owed(0, to) > 0 && performance.now() < deadlineMs) {
    const [owed = 0] = journal.lost();
    const isPending = owed >= to || (await isStillPending(stage, owed));
    if (!isPending && suspect === owed) return;
    suspect = isPending ? undefined : owed;
    await pause(isPending ? askEveryMs : settleMs);
  }
}

/**
 * Until the outcome of everything that is pending now is recorded. Before that, the next fault could repeat what was
 * delivered in this one.
 */
async function recorded({ primary }: Deployment): Promise<void> {
  // On Citus, each home has one.
  const places = await primary.query("SELECT schemaname FROM pg_tables WHERE tablename = 'pending'", [], "paybell");
  for (const { schemaname } of places) {
    const [last] = await primary.query(`SELECT max(id::text) AS id FROM ${schemaname}.pending`, [], "paybell");
    const upTo = `SELECT 1 FROM ${schemaname}.pending WHERE id <= $1::uuid LIMIT 1`;
    await eventually(drainEndsMs, async () => (await primary.query(upTo, [last?.["id"]], "paybell")).length === 0);
  }
}

/** Whether the operator API shows the notification as pending; without an answer it may be. */
async function isStillPending({ caller, operatorToken }: Deployment, no: number): Promise<boolean> {
  const path = `/operator/v1/notifications?q=${merchantTransIdOf(no)}`;
  const { status, body } = await caller.call("GET", path, operatorToken);
  const items = status === 200 ? (body["items"] as readonly { state: string }[]) : [];
  // A command that is still INIT has none yet.
  return items.length === 0 || items.some(({ state }) => state === "pending");
}

/** The operator API's view of all notifications. */
export async function isNothingPending({ caller, operatorToken }: Deployment): Promise<boolean> {
  const path = "/operator/v1/notifications?state=pending&limit=1";
  const { status, body } = await caller.call("GET", path, operatorToken);
  return status === 200 && (body["items"] as readonly unknown[]).length === 0;
}

/** Until it holds; what does not hold by the bound is judged at the end. */
export async function eventually(boundMs: number, holds: () => boolean | Promise<boolean>): Promise<boolean> {
  const deadlineMs = performance.now() + boundMs;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) return false;
    await pause(lookEveryMs);
  }
  return true;
}

/**
 * Measures how long after a fault every partner is notified again: of a command sent after the fault had ended, so that
 * earlier deliveries do not count.
 */
export class Recovery {
  readonly #sinceMs: number;
  readonly #from: number;
  readonly #waiting: Set<number>;
  readonly #done = Promise.withResolvers<number>();

  /** @param from the number of the next command */
  constructor(partners: number, from: number, nowMs = performance.now()) {
    this.#sinceMs = nowMs;
    this.#from = from;
    this.#waiting = new Set(Array(partners).keys());
  }

  delivered(partner: number, no: number, nowMs = performance.now()): void {
    if (no < this.#from || !this.#waiting.delete(partner)) return;
    if (this.#waiting.size === 0) this.#done.resolve(nowMs - this.#sinceMs);
  }

  /** Milliseconds; undefined if some partner got no notification within the bound. */
  async within(boundMs: number): Promise<number | undefined> {
    const over = new AbortController();
    const bound = pause(boundMs, undefined, { signal: over.signal }).catch(() => undefined);
    return Promise.race([this.#done.promise, bound]).finally(() => over.abort());
  }
}
