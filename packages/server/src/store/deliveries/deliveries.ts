import type { PoolClient } from "pg";
import type { Delivery, FailureReason } from "../../delivery/delivery.ts";
import type {
  DeliveryKey,
  DeliveryOutcome,
  DeliveryStore,
  Postponement,
  Precedence,
  QueueHead,
  QueuePage,
  QueueRead,
  Recorded,
} from "../../delivery/store.ts";
import { shardOf } from "../../ids.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { type ColumnList, Columns } from "../database/columns.ts";
import { GroupCommit, type GroupCommitHooks } from "../database/group-commit.ts";
import type { Home, Homes, PerHome } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";
import { failureKindOf, inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";
import { writeCircuits } from "./circuits.ts";
import { readPrecedence, readQueueHeads, readQueues } from "./read.ts";

const roundList = {
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ id }) => id],
  round: ["integer", ({ round }) => round],
} satisfies ColumnList<DeliveryKey>;
const attemptList = {
  ...roundList,
  attempts_made: ["integer", ({ attemptsMade }) => attemptsMade],
} satisfies ColumnList<DeliveryKey>;

/** The rounds of deliveries. */
const roundColumns = new Columns<DeliveryKey>(roundList);
/** Begins with the columns of `roundColumns`. */
const outcomeColumns = new Columns<DeliveryOutcome>({
  ...attemptList,
  lease_id: ["uuid", ({ leaseId }) => leaseId],
  started_ms: ["double", ({ attempt }) => attempt.startedAtMs],
  duration_ms: ["integer", ({ attempt }) => Math.round(attempt.durationMs)],
  url: ["text", ({ attempt }) => attempt.url],
  address: ["text", ({ attempt }) => attempt.address],
  http_status: ["integer", ({ attempt }) => attempt.httpStatus],
  reason: ["text", ({ attempt }) => attempt.reason],
  detail: ["text", ({ attempt }) => attempt.detail],
  answer: ["bytes", ({ attempt }) => attempt.answer],
  key_id: ["text", ({ attempt }) => attempt.keyId],
});
const delayColumns = new Columns<DeliveryKey & { readonly delayMs: number }>({
  ...attemptList,
  asked: ["integer", ({ asked = 0 }) => asked],
  requests: ["integer", ({ requests = 0 }) => requests],
  delay_ms: ["double", ({ delayMs }) => delayMs],
});
export type Parking = DeliveryKey & { readonly reason: FailureReason };
const parkingColumns = new Columns<Parking>({
  ...attemptList,
  reason: ["text", ({ reason }) => reason],
});

// Finds a row of `pending` by key in a LATERAL list, and changes it by its location in the table (ctid): there is only
// one plan for that. A join by key has two, and the one planned while nothing is pending scans the whole backlog later.
// Measured: 3.2 s for 500 outcomes with 20,000 pending. A row that changed since the statement began has another
// location and is missed, so the caller repeats the statement if fewer rows were changed than requested. OFFSET
// prevents the list from being joined after all.
const itsRow = (condition: string) => `CROSS JOIN LATERAL (
        SELECT t.ctid AS at FROM pending t WHERE t.partner_id = i.partner_id AND t.id = i.id AND ${condition} OFFSET 0
      ) AS found`;
/** An acceptance counts for its own round and the earlier ones: the partner has the IPN. */
const upToItsRound = itsRow("t.round <= i.round");
/** A failure counts only for its own attempt. */
const itsAttempt = itsRow("t.round = i.round AND t.attempts_made = i.attempts_made");

const attemptsInserted = `
      INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url, address,
        http_status, reason, detail, answer, key_id)
      SELECT partner_id, id, round, attempts_made + 1, lease_id, to_timestamp(started_ms / 1000), duration_ms, url,
        address, http_status, reason, detail, answer, key_id
      FROM ${outcomeColumns.rows}
      ON CONFLICT DO NOTHING`;

const insertAttempts = prepared(attemptsInserted);

/** If all were accepted: one statement that is a transaction of its own, in one round trip. */
const recordAccepted = prepared<{ gone: number }>(`
  WITH attempt AS (${attemptsInserted}),
  gone AS (
    DELETE FROM pending p USING ${roundColumns.rows}
    ${upToItsRound}
    WHERE p.ctid = found.at
    RETURNING p.id)
  SELECT count(*) AS gone FROM gone`);

const deleteAccepted = prepared(`
  DELETE FROM pending p USING ${roundColumns.rows}
  ${upToItsRound}
  WHERE p.ctid = found.at`);

/** Parked shortly before its 2xx arrived. */
const unpark = prepared(`
  DELETE FROM parked p USING ${roundColumns.rows}
  WHERE p.partner_id = i.partner_id AND p.id = i.id AND p.round <= i.round`);

/** A person asked for an attempt since the delivery was read: it stays due, because this was not the one. */
const askedSince = "(p.is_asked AND p.requests > i.requests)";
const counting = `attempts_made = i.attempts_made + 1, asked = p.asked + (p.asked < i.asked)::integer,
      is_asked = ${askedSince}`;

/** @param counted whether an attempt was made */
const dueAgain = (counted: boolean) => `
    WITH i AS MATERIALIZED (
      SELECT partner_id, id, round, attempts_made, asked, requests, now() + delay_ms * interval '1 millisecond' AS due_at
      FROM ${delayColumns.rows})
    UPDATE pending p SET due_at = CASE WHEN ${askedSince} THEN p.due_at ELSE i.due_at END ${counted ? `, ${counting}` : ""}
    FROM i ${itsAttempt}
    WHERE p.ctid = found.at
    RETURNING p.partner_id, p.id`;

const retryLater = prepared<ChangedRow>(dueAgain(true));

const postpone = prepared<ChangedRow>(dueAgain(false));

/** @param counted whether an attempt was made */
const parking = (counted: boolean) => `
    WITH gone AS (
      DELETE FROM pending p
      USING ${parkingColumns.rows} ${itsAttempt}
      WHERE p.ctid = found.at
      RETURNING p.partner_id, p.id, p.chain_id, p.round, p.bytes,
        i.attempts_made ${counted ? "+ 1" : ""} AS attempts_made, i.reason)
    INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
    SELECT partner_id, id, chain_id, round, attempts_made, bytes, reason FROM gone
    ON CONFLICT (partner_id, id) DO NOTHING
    RETURNING partner_id, id`;

const park = prepared<ChangedRow>(parking(true));

const parkUncounted = prepared<ChangedRow>(parking(false));

/** No caller waits for an outcome, so a short wait makes one commit of many. */
const outcomeLingerMs = 3;
const scanBytesMax = 1_024 * 1_024;

export interface DeliveriesOptions extends GroupCommitHooks {
  /** Whether events of parked deliveries are sent as alerts. */
  readonly alerting?: boolean;
}

interface ChangedRow {
  readonly partner_id: string;
  readonly id: string;
}

/** Parks deliveries for another reason than an attempt's. @returns those that were pending */
export async function parkWithoutAttempt(
  database: Pick<PoolClient, "query">,
  parked: readonly Parking[],
): Promise<readonly ChangedRow[]> {
  return await parkUncounted.rows(database, parkingColumns.values(parked));
}

/** Pending deliveries in PostgreSQL. Outcomes share commits. */
export class PostgresDeliveries implements DeliveryStore {
  readonly #homes: Homes;
  readonly #alerting: boolean;
  readonly #outcomes: PerHome<GroupCommit<DeliveryOutcome, Recorded>>;

  constructor(homes: Homes, { alerting = false, ...observe }: DeliveriesOptions = {}) {
    this.#homes = homes;
    this.#alerting = alerting;
    this.#outcomes = homes.each(
      (home) =>
        new GroupCommit<DeliveryOutcome, Recorded>({
          name: "record",
          key: attemptKeyOf,
          bytes: (outcome) => 512 + (outcome.attempt.answer?.length ?? 0),
          commit: (outcomes) => this.#commit(home, outcomes),
          giveUpAfterMs: Number.POSITIVE_INFINITY,
          // Bounded by its callers: nothing more is sent while too many outcomes are unrecorded.
          queueRowsMax: Number.POSITIVE_INFINITY,
          queueBytesMax: Number.POSITIVE_INFINITY,
          lingerMs: outcomeLingerMs,
          concurrency: 1,
          ...observe,
        }),
    );
  }

  read(reads: readonly QueueRead[]): Promise<readonly QueuePage[]> {
    return this.#homes.ask(reads, ({ engine }, some) => readQueues(engine, some));
  }

  async scan(read: Omit<QueueRead, "bytesMax">): Promise<QueuePage> {
    const [page] = await this.read([{ ...read, bytesMax: scanBytesMax }]);
    return page ?? { due: [], hasMore: false, nextInMs: undefined };
  }

  heads(shards: readonly number[]): Promise<readonly QueueHead[]> {
    const itself = (shard: number) => shard;
    return this.#homes.askAbout(shards, itself, ({ engine }, some) => readQueueHeads(engine, some));
  }

  preceding(deliveries: readonly Delivery[]): Promise<readonly (Precedence | undefined)[]> {
    return this.#homes.ask(deliveries, ({ engine }, some) => readPrecedence(engine, some));
  }

  record(outcome: DeliveryOutcome): Promise<Recorded> {
    return this.#outcomes.of(outcome.partnerId).add(outcome);
  }

  async postpone(deliveries: readonly Postponement[]): Promise<void> {
    await changedOf(deliveries, (left) =>
      this.#homes.askAbout(left, shardOfKey, ({ engine }, some) => postpone.rows(engine, delayColumns.values(some))),
    );
  }

  async park(deliveries: readonly DeliveryKey[], reason: FailureReason): Promise<number> {
    const [first] = deliveries;
    if (first === undefined) return 0;
    const { partnerId } = first;
    return inTransaction(this.#homes.of(partnerId).engine, async (client) => {
      const rows = await parkWithoutAttempt(
        client,
        deliveries.map((delivery) => ({ ...delivery, reason })),
      );
      const parked = new Set(rows.map(({ id }) => id));
      const detail = "Its schedule was over while its endpoint accepted nothing.";
      const events = deliveries.flatMap(({ id, attemptsBefore, attemptsMade }): NewEvent[] => {
        const about = { reason, detail, httpStatus: null, attemptsMade: attemptsBefore + attemptsMade };
        return parked.has(id) ? [{ kind: "parked", partnerId, subjectId: id, detail: about }] : [];
      });
      if (events.length > 0) await insertEvents(client, events, this.#alerting);
      return events.length;
    });
  }

  async #commit(home: Home, outcomes: readonly DeliveryOutcome[]): Promise<ReadonlyMap<string, Recorded>> {
    try {
      return await this.#write(home, outcomes, true);
    } catch (error) {
      // The attempt's day of history may be gone. Its consequence counts, not its record.
      if (outcomes.length > 1 || failureKindOf(error) !== "data") throw error;
      return this.#write(home, outcomes, false);
    }
  }

  async #write(
    home: Home,
    outcomes: readonly DeliveryOutcome[],
    withAttempts: boolean,
  ): Promise<ReadonlyMap<string, Recorded>> {
    const accepted = outcomes.filter(({ next }) => next.kind === "accepted");
    const circuits = outcomes.flatMap((outcome) => outcome.circuits);
    // In this order: one that is parked meanwhile is in the other table by then.
    const ends = [deleteAccepted, unpark];
    if (withAttempts && accepted.length === outcomes.length && circuits.length === 0) {
      // One round trip: the statement is a transaction of its own.
      const recorded = await recordAccepted.first(home.engine, outcomeColumns.values(outcomes));
      // Parked shortly before, or changed while the statement searched for them.
      if ((recorded?.gone ?? 0) < outcomes.length) {
        for (const end of ends) await end.run(home.engine, roundColumns.values(accepted));
      }
      return new Map(outcomes.map((outcome) => [attemptKeyOf(outcome), "applied"]));
    }
    const changed = await inTransaction(home.engine, async (client) => {
      const rounds = roundColumns.values(accepted);
      const written = [
        withAttempts ? insertAttempts.run(client, outcomeColumns.values(outcomes)) : undefined,
        ...(accepted.length > 0 ? ends.map((end) => end.run(client, rounds)) : []),
      ];
      const failing = this.#writeFailed(client, outcomes);
      // The refused statement has the reason; those after it only report that the transaction is over.
      failing.catch(() => undefined);
      const [, deleted] = await Promise.all(written);
      const failed = await failing;
      // Parked shortly before, or changed while the statement searched for them.
      if ((deleted ?? 0) < accepted.length) await Promise.all(ends.map((end) => end.run(client, rounds)));
      // Last, so that endpoints are not locked while waiting for anything else.
      if (circuits.length > 0) await writeCircuits(client, circuits, this.#alerting);
      return new Set<DeliveryOutcome>([...accepted, ...failed]);
    });
    return new Map(
      outcomes.map((outcome) => [attemptKeyOf(outcome), changed.has(outcome) ? "applied" : "missed"] as const),
    );
  }

  /**
   * @returns those that changed their row; the event of a parked one is written only with it, and once: two owners may
   * have sent the same attempt
   */
  async #writeFailed(client: PoolClient, outcomes: readonly DeliveryOutcome[]): Promise<readonly DeliveryOutcome[]> {
    const toRetry = outcomes.flatMap((outcome) =>
      outcome.next.kind === "retry" ? [{ outcome, ...outcome, ...outcome.next }] : [],
    );
    const toPark = outcomes.flatMap((outcome) =>
      outcome.next.kind === "parked"
        ? [{ outcome, ...outcome, reason: outcome.attempt.reason ?? ("internal" as const) }]
        : [],
    );
    const [retried, parked] = await Promise.all([
      changedOf(toRetry, (left) => retryLater.rows(client, delayColumns.values(left))),
      changedOf(toPark, (left) => park.rows(client, parkingColumns.values(left))),
    ]);
    const events = new Map(parked.map((one) => [rowKeyOf(one), parkedEvent(one.outcome)]));
    if (events.size > 0) await insertEvents(client, [...events.values()], this.#alerting);
    return [...retried, ...parked].map(({ outcome }) => outcome);
  }
}

/** Repeated once for rows that changed while the statement searched for them. @returns those whose row was changed */
async function changedOf<Key extends DeliveryKey>(
  keys: readonly Key[],
  change: (left: readonly Key[]) => Promise<readonly ChangedRow[]>,
): Promise<readonly Key[]> {
  const changed = new Set<string>();
  const isLeft = (key: Key) => !changed.has(rowKeyOf(key));
  for (let tries = 0; tries < 2 && keys.some(isLeft); tries += 1) {
    for (const row of await change(keys.filter(isLeft))) changed.add(`${row.partner_id} ${row.id}`);
  }
  return keys.filter((key) => !isLeft(key));
}

function parkedEvent({ partnerId, id, attempt, attemptsBefore, attemptsMade }: DeliveryOutcome): NewEvent {
  const { reason, detail, httpStatus } = attempt;
  const about = { reason, detail, httpStatus, attemptsMade: attemptsBefore + attemptsMade + 1 };
  return { kind: "parked", partnerId, subjectId: id, detail: about };
}

function shardOfKey({ partnerId }: DeliveryKey): number {
  return shardOf(partnerId);
}

function rowKeyOf({ partnerId, id }: DeliveryKey): string {
  return `${partnerId} ${id}`;
}

function attemptKeyOf({ partnerId, id, round, attemptsMade, leaseId }: DeliveryOutcome): string {
  return `${partnerId} ${id} ${round} ${attemptsMade} ${leaseId}`;
}
