import type { PoolClient } from "pg";
import type {
  Delivery,
  DeliveryKey,
  DeliveryOutcome,
  DeliveryStore,
  FailureReason,
  Postponement,
  Precedence,
  QueueHead,
  QueuePage,
  QueueRead,
  Recorded,
} from "../../delivery/store.ts";
import type { NewEvent } from "../../events.ts";
import { shardOf } from "../../shard.ts";
import { bytesArray, doubleArray, integerArray, textArray, uuidArray } from "../database/arrays.ts";
import { GroupCommit, type GroupCommitHooks } from "../database/group-commit.ts";
import type { Home, Homes, PerHome } from "../database/homes.ts";
import { failureKindOf } from "../database/retryable.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";
import { writeCircuits } from "./circuits.ts";
import { readPrecedence, readQueueHeads, readQueues } from "./read.ts";
import * as statements from "./statements.ts";

/** No caller waits for an outcome, so a short wait makes one commit of many. */
const outcomeLingerMs = 3;
const lookBytesMax = 1_024 * 1_024;

export interface DeliveriesOptions extends GroupCommitHooks {
  /** Whether events of parked deliveries are sent as alerts. */
  readonly alerting?: boolean;
}

interface ChangedRow {
  readonly partner_id: string;
  readonly id: string;
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

  async look(look: Omit<QueueRead, "bytesMax">): Promise<QueuePage> {
    const [page] = await this.read([{ ...look, bytesMax: lookBytesMax }]);
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
    await this.#change(statements.postpone, deliveries, (some) => doubleArray(some.map(({ delayMs }) => delayMs)));
  }

  async park(
    deliveries: readonly (DeliveryKey & Pick<Delivery, "attemptsBefore">)[],
    reason: FailureReason,
  ): Promise<number> {
    const [first] = deliveries;
    if (first === undefined) return 0;
    const { partnerId } = first;
    return inTransaction(this.#homes.of(partnerId).engine, async (client) => {
      const values = [...keyColumns(deliveries), textArray(deliveries.map(() => reason))];
      const { rows } = await client.query<ChangedRow>({ ...statements.parkUncounted, values });
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
    if (withAttempts && accepted.length === outcomes.length && circuits.length === 0) {
      return this.#writeAccepted(home, outcomes);
    }
    const changed = await inTransaction(home.engine, async (client) => {
      const values = roundColumns(accepted);
      const end = () => [
        client.query({ ...statements.deleteAccepted, values }),
        client.query({ ...statements.unpark, values }),
      ];
      const written = [
        withAttempts ? client.query({ ...statements.insertAttempts, values: attemptColumns(outcomes) }) : undefined,
        ...(accepted.length > 0 ? end() : []),
      ];
      const failing = this.#writeFailed(client, outcomes);
      // The refused statement has the reason; those after it only report that the transaction is over.
      failing.catch(() => undefined);
      const [, deleted] = await Promise.all(written);
      const failed = await failing;
      // Parked shortly before, or changed while the statement looked for them.
      if ((deleted?.rowCount ?? 0) < accepted.length) await Promise.all(end());
      // Last, so that endpoints are not locked while waiting for anything else.
      if (circuits.length > 0) await writeCircuits(client, circuits, this.#alerting);
      return failed;
    });
    return new Map(
      outcomes.map((outcome) => [
        attemptKeyOf(outcome),
        outcome.next.kind === "accepted" || changed.get(rowKeyOf(outcome)) === outcome.next.kind ? "applied" : "missed",
      ]),
    );
  }

  /** One round trip: the statement is a transaction of its own. */
  async #writeAccepted({ engine }: Home, outcomes: readonly DeliveryOutcome[]): Promise<ReadonlyMap<string, Recorded>> {
    const { rows } = await engine.query<{ gone: number }>({
      ...statements.recordAccepted,
      values: attemptColumns(outcomes),
    });
    // Parked shortly before, or changed while the statement looked for them.
    if ((rows[0]?.gone ?? 0) < outcomes.length) {
      const values = roundColumns(outcomes);
      await engine.query({ ...statements.deleteAccepted, values });
      await engine.query({ ...statements.unpark, values });
    }
    return new Map(outcomes.map((outcome) => [attemptKeyOf(outcome), "applied"]));
  }

  /**
   * @returns the changed rows, and how; the event of a parked one is written only with it, and once: two owners may
   * have sent the same attempt
   */
  async #writeFailed(
    client: PoolClient,
    outcomes: readonly DeliveryOutcome[],
  ): Promise<ReadonlyMap<string, "retry" | "parked">> {
    const changed = new Map<string, "retry" | "parked">();
    // Again, for rows that changed while the statement looked for them.
    for (let tries = 0; tries < 2; tries += 1) {
      const left = outcomes.filter((outcome) => !changed.has(rowKeyOf(outcome)));
      const retried = left.flatMap((outcome) =>
        outcome.next.kind === "retry" ? [{ ...outcome, delayMs: outcome.next.delayMs }] : [],
      );
      const parked = left.filter(({ next }) => next.kind === "parked");
      if (retried.length + parked.length === 0) break;
      const delays = doubleArray(retried.map(({ delayMs }) => delayMs));
      const reasons = textArray(parked.map(({ attempt }) => attempt.reason ?? "internal"));
      const [again, gone] = await Promise.all([
        retried.length > 0
          ? client.query<ChangedRow>({ ...statements.retryLater, values: [...keyColumns(retried), delays] })
          : undefined,
        parked.length > 0
          ? client.query<ChangedRow>({ ...statements.park, values: [...keyColumns(parked), reasons] })
          : undefined,
      ]);
      for (const row of again?.rows ?? []) changed.set(`${row.partner_id} ${row.id}`, "retry");
      for (const row of gone?.rows ?? []) changed.set(`${row.partner_id} ${row.id}`, "parked");
    }
    const parked = new Map(
      outcomes.flatMap((outcome) =>
        outcome.next.kind === "parked" && changed.get(rowKeyOf(outcome)) === "parked"
          ? [[rowKeyOf(outcome), outcome] as const]
          : [],
      ),
    );
    const events = [...parked.values()].flatMap(parkedEvent);
    if (events.length > 0) await insertEvents(client, events, this.#alerting);
    return changed;
  }

  /** Repeated once for rows that changed while the statement looked for them. */
  async #change<Key extends DeliveryKey>(
    statement: { readonly name: string; readonly text: string },
    keys: readonly Key[],
    column: (keys: readonly Key[]) => unknown,
  ): Promise<void> {
    let left = keys;
    for (let tries = 0; tries < 2 && left.length > 0; tries += 1) {
      const rows = await this.#homes.askAbout(left, shardOfKey, async ({ engine }, some) => {
        const values = [...keyColumns(some), column(some)];
        return (await engine.query<ChangedRow>({ ...statement, values })).rows;
      });
      const changed = new Set(rows.map((row) => `${row.partner_id} ${row.id}`));
      left = left.filter((key) => !changed.has(rowKeyOf(key)));
    }
  }
}

function parkedEvent({ partnerId, id, attempt, next }: DeliveryOutcome): NewEvent[] {
  if (next.kind !== "parked") return [];
  const { reason, detail, httpStatus } = attempt;
  const told = { reason, detail, httpStatus, attemptsMade: next.attemptsInAll };
  return [{ id: next.eventId, kind: "parked", partnerId, subjectId: id, detail: told }];
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

function roundColumns(keys: readonly DeliveryKey[]): unknown[] {
  return [
    uuidArray(keys.map(({ partnerId }) => partnerId)),
    uuidArray(keys.map(({ id }) => id)),
    integerArray(keys.map(({ round }) => round)),
  ];
}

function keyColumns(keys: readonly DeliveryKey[]): unknown[] {
  return [...roundColumns(keys), integerArray(keys.map(({ attemptsMade }) => attemptsMade))];
}

function attemptColumns(outcomes: readonly DeliveryOutcome[]): unknown[] {
  return [
    ...keyColumns(outcomes),
    uuidArray(outcomes.map(({ leaseId }) => leaseId)),
    doubleArray(outcomes.map(({ attempt }) => attempt.startedAtMs)),
    integerArray(outcomes.map(({ attempt }) => Math.round(attempt.durationMs))),
    textArray(outcomes.map(({ attempt }) => attempt.url)),
    textArray(outcomes.map(({ attempt }) => attempt.address)),
    integerArray(outcomes.map(({ attempt }) => attempt.httpStatus)),
    textArray(outcomes.map(({ attempt }) => attempt.reason)),
    textArray(outcomes.map(({ attempt }) => attempt.detail)),
    bytesArray(outcomes.map(({ attempt }) => attempt.answer)),
    textArray(outcomes.map(({ attempt }) => attempt.keyId)),
  ];
}
