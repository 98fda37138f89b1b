import type { Pool } from "pg";
import type { Breaker } from "../delivery/endpoints-store.ts";
import type { Claimed, ClaimLimits, DeliveryStore, Outcome, Recorded, Taken } from "../delivery/store.ts";
import type { NewEvent } from "../events.ts";
import { idTimeMs } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { bytesArray, doubleArray, integerArray, textArray, uuidArray } from "./arrays.ts";
import { claim } from "./deliveries-claim.ts";
import { Queues } from "./deliveries-queues.ts";
import {
  deleteAccepted,
  giveBack,
  heldBy,
  insertAttempts,
  park,
  postpone,
  recordAccepted,
  releaseDead,
  unpark,
} from "./deliveries-statements.ts";
import { recordSightings } from "./endpoints-sightings.ts";
import { insertEvents } from "./events.ts";
import { GroupCommit, type GroupCommitObserver } from "./group-commit.ts";
import { troubleOf } from "./retryable.ts";

// One step along the index for each partner that has any: its oldest, whose id tells its time. The number is exact
// while it is small and an estimate beyond: no statement grows with the backlog.
const standing = {
  name: "pending_standing",
  text: `
    WITH RECURSIVE oldest AS (
      (SELECT p.partner_id, p.id FROM pending p ORDER BY p.partner_id, p.id LIMIT 1)
      UNION ALL
      SELECT next.partner_id, next.id FROM oldest o CROSS JOIN LATERAL (
        SELECT p.partner_id, p.id FROM pending p WHERE p.partner_id > o.partner_id
        ORDER BY p.partner_id, p.id LIMIT 1) AS next)
    SELECT (SELECT min(id::text) FROM oldest) AS oldest_id,
      (SELECT count(*) FROM (SELECT FROM pending LIMIT 10001) AS few) AS few,
      (SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'pending') AS estimate`,
};

/** What waits to be delivered, of all instances. */
export interface PendingStanding {
  /** Exact up to 10,000, an estimate beyond. */
  readonly count: number;
  /** When the oldest came into being; undefined when nothing is pending. */
  readonly oldestMs: number | undefined;
}

const outcomeLingerMs = 3;

export interface DeliveriesOptions extends GroupCommitObserver {
  /** Whether somebody is told of what is parked. */
  readonly alerting?: boolean;
  /** What follows for an endpoint from an attempt; without it nothing does. */
  readonly breaker?: Breaker;
  /** What a claim met first was set aside, because its URL is gone: there may be more behind it. */
  readonly onSetAside?: () => void;
}

/** Pending deliveries in PostgreSQL. Outcomes are group-committed. */
export class PostgresDeliveries implements DeliveryStore {
  readonly #engine: Pool;
  readonly #alerting: boolean;
  readonly #breaker: Breaker | undefined;
  readonly #onSetAside: (() => void) | undefined;
  readonly #outcomes: GroupCommit<Outcome, Recorded>;
  readonly #queues: Queues;
  #servedLast: string = "ffffffff-ffff-ffff-ffff-ffffffffffff";

  constructor(engine: Pool, options: DeliveriesOptions = {}) {
    const { alerting = false, breaker, onSetAside, ...observe } = options;
    this.#engine = engine;
    this.#queues = new Queues(engine);
    this.#alerting = alerting;
    this.#breaker = breaker;
    this.#onSetAside = onSetAside;
    this.#outcomes = new GroupCommit<Outcome, Recorded>({
      name: "record",
      key: keyOf,
      bytes: (outcome) => 512 + (outcome.attempt.answer?.length ?? 0),
      commit: (outcomes) => this.#commit(outcomes),
      giveUpAfterMs: Number.POSITIVE_INFINITY,
      // Nobody waits for it: a moment's company makes a commit of one into a commit of many.
      lingerMs: outcomeLingerMs,
      concurrency: 1,
      ...observe,
    });
  }

  async claim(instance: Instance, limits: ClaimLimits): Promise<readonly Claimed[]> {
    const how = { limits, servedLast: this.#servedLast, queues: this.#queues };
    const { claimed, setAside } = await claim(this.#engine, instance, how);
    if (setAside > 0) this.#onSetAside?.();
    this.#servedLast = claimed.at(-1)?.partnerId ?? this.#servedLast;
    return claimed;
  }

  record(outcome: Outcome): Promise<Recorded> {
    return this.#outcomes.add(outcome);
  }

  async giveBack(instance: Instance, taken: readonly Taken[], delayMs: number): Promise<void> {
    const values = [
      instance.id,
      uuidArray(taken.map((row) => row.partnerId)),
      uuidArray(taken.map((row) => row.id)),
      integerArray(taken.map((row) => row.claimNo)),
      delayMs,
      textArray(taken.map((row) => row.queue ?? null)),
    ];
    const { rowCount } = await this.#engine.query({ ...giveBack, values });
    if ((rowCount ?? 0) < taken.length) await this.#engine.query({ ...giveBack, values });
  }

  async held(instance: Instance, rowsMax: number): Promise<readonly Taken[]> {
    return (await this.#engine.query<Taken>({ ...heldBy, values: [instance.id, instance.epoch, rowsMax] })).rows;
  }

  async releaseDead(rowsMax: number): Promise<number> {
    const { rowCount } = await this.#engine.query({ ...releaseDead, values: [rowsMax] });
    return rowCount ?? 0;
  }

  async announceDue(): Promise<void> {
    await this.#engine.query({ name: "announce_due", text: "SELECT pg_notify('paybell_due', '')" });
  }

  /** Resolves when the database answers the engine. */
  async ping(): Promise<void> {
    await this.#engine.query("SELECT");
  }

  async standing(): Promise<PendingStanding> {
    const { rows } = await this.#engine.query<{ oldest_id: string | null; few: number; estimate: number }>(standing);
    const row = rows[0];
    if (row === undefined || row.oldest_id === null) return { count: 0, oldestMs: undefined };
    return { count: row.few > 10_000 ? Math.max(row.few, row.estimate) : row.few, oldestMs: idTimeMs(row.oldest_id) };
  }

  async #commit(outcomes: readonly Outcome[]): Promise<ReadonlyMap<string, Recorded>> {
    try {
      return await this.#write(outcomes, true);
    } catch (error) {
      // The attempt's day of history may be gone. What followed from the attempt counts, not the note of it.
      if (outcomes.length > 1 || troubleOf(error) !== "data") throw error;
      return this.#write(outcomes, false);
    }
  }

  async #write(outcomes: readonly Outcome[], withAttempts: boolean): Promise<ReadonlyMap<string, Recorded>> {
    const accepted = outcomes.filter((outcome) => outcome.next.kind === "accepted");
    const retried = outcomes.filter((outcome) => outcome.next.kind === "retry");
    const parked = outcomes.filter((outcome) => outcome.next.kind === "parked");
    const sightings = outcomes.flatMap((outcome) => outcome.sightings ?? []);
    if (withAttempts && accepted.length === outcomes.length && sightings.length === 0) {
      return this.#writeAccepted(outcomes);
    }
    const client = await this.#engine.connect();
    try {
      const sent = [
        client.query("BEGIN"),
        withAttempts ? client.query({ ...insertAttempts, values: attemptColumns(outcomes) }) : undefined,
        accepted.length > 0 ? client.query({ ...deleteAccepted, values: keyColumns(accepted) }) : undefined,
        ...this.#writeFailed(client, retried, parked),
        parked.length > 0 ? insertEvents(client, parked.map(parkedEvent), this.#alerting) : undefined,
        // Last, and only where there is something to tell: endpoints are locked when nothing else is waited for.
        sightings.length > 0 && this.#breaker
          ? recordSightings(client, sightings, this.#breaker, this.#alerting)
          : undefined,
        sightings.length > 0 ? undefined : client.query("COMMIT"),
      ] as const;
      const [, , accepted2xx, postponedRows, parkedRows, , , committedAlong] = await Promise.all(sent);
      const committed = committedAlong ?? (await client.query("COMMIT"));
      if (committed.command !== "COMMIT") throw new Error("The transaction was rolled back.");
      client.release();
      if (accepted2xx !== undefined && (accepted2xx.rowCount ?? 0) < accepted.length) await this.#endAgain(accepted);
      const changed = changedBy(postponedRows, parkedRows);
      const isMissed = (outcome: Outcome) => !changed.has(`${outcome.partnerId} ${outcome.id}`);
      if (retried.some(isMissed) || parked.some(isMissed)) {
        const again = this.#writeFailed(this.#engine, retried.filter(isMissed), parked.filter(isMissed));
        for (const key of changedBy(...(await Promise.all(again)))) changed.add(key);
      }
      return new Map(
        outcomes.map((outcome) => {
          const applied = outcome.next.kind === "accepted" || changed.has(`${outcome.partnerId} ${outcome.id}`);
          return [keyOf(outcome), applied ? "applied" : "overtaken"];
        }),
      );
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async #writeAccepted(outcomes: readonly Outcome[]): Promise<ReadonlyMap<string, Recorded>> {
    const { rows } = await this.#engine.query<{ gone: number }>({
      ...recordAccepted,
      values: attemptColumns(outcomes),
    });
    if ((rows[0]?.gone ?? 0) < outcomes.length) await this.#endAgain(outcomes);
    return new Map(outcomes.map((outcome) => [keyOf(outcome), "applied"]));
  }

  #writeFailed(client: Pick<Pool, "query">, retried: readonly Outcome[], parked: readonly Outcome[]) {
    return [
      retried.length > 0
        ? client.query<ChangedRow>({
            ...postpone,
            values: [
              ...claimColumns(retried),
              doubleArray(retried.map((outcome) => (outcome.next.kind === "retry" ? outcome.next.delayMs : 0))),
            ],
          })
        : undefined,
      parked.length > 0
        ? client.query<ChangedRow>({
            ...park,
            values: [...claimColumns(parked), textArray(parked.map((outcome) => outcome.attempt.reason ?? "internal"))],
          })
        : undefined,
    ] as const;
  }

  /** Fewer rows went than were accepted: parked a moment before, or changed while the statement looked for them. */
  async #endAgain(accepted: readonly Outcome[]): Promise<void> {
    const values = keyColumns(accepted);
    await Promise.all([this.#engine.query({ ...deleteAccepted, values }), this.#engine.query({ ...unpark, values })]);
  }
}

interface ChangedRow {
  readonly partner_id: string;
  readonly id: string;
}

function changedBy(...results: readonly ({ readonly rows: readonly ChangedRow[] } | undefined)[]): Set<string> {
  const rows = results.flatMap((result) => result?.rows ?? []);
  return new Set(rows.map((row) => `${row.partner_id} ${row.id}`));
}

/** In the same transaction as the parking: nothing is given up without a word. */
function parkedEvent({ partnerId, id, attempt, attemptsMade }: Outcome): NewEvent {
  const { reason, detail, httpStatus } = attempt;
  return { kind: "parked", partnerId, subjectId: id, detail: { reason, detail, httpStatus, attemptsMade } };
}

function keyOf(outcome: Outcome): string {
  return `${outcome.partnerId} ${outcome.id} ${outcome.claimNo}`;
}

function keyColumns(outcomes: readonly Outcome[]): [unknown, unknown] {
  return [uuidArray(outcomes.map((outcome) => outcome.partnerId)), uuidArray(outcomes.map((outcome) => outcome.id))];
}

function claimColumns(outcomes: readonly Outcome[]): unknown[] {
  return [
    ...keyColumns(outcomes),
    integerArray(outcomes.map((outcome) => outcome.claimNo)),
    integerArray(outcomes.map((outcome) => outcome.attemptsMade)),
  ];
}

function attemptColumns(outcomes: readonly Outcome[]): unknown[] {
  return [
    ...keyColumns(outcomes),
    integerArray(outcomes.map((outcome) => outcome.claimNo)),
    integerArray(outcomes.map((outcome) => outcome.attemptsMade)),
    uuidArray(outcomes.map((outcome) => outcome.instance.id)),
    doubleArray(outcomes.map((outcome) => outcome.attempt.startedAtMs)),
    integerArray(outcomes.map((outcome) => Math.round(outcome.attempt.durationMs))),
    textArray(outcomes.map((outcome) => outcome.attempt.url)),
    textArray(outcomes.map((outcome) => outcome.attempt.address)),
    integerArray(outcomes.map((outcome) => outcome.attempt.httpStatus)),
    textArray(outcomes.map((outcome) => outcome.attempt.reason)),
    textArray(outcomes.map((outcome) => outcome.attempt.detail)),
    bytesArray(outcomes.map((outcome) => outcome.attempt.answer)),
    textArray(outcomes.map((outcome) => outcome.attempt.keyId)),
  ];
}
