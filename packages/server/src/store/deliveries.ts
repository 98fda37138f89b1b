import type { Pool } from "pg";
import type { Breaker } from "../delivery/endpoints-store.ts";
import type { Claimed, ClaimLimits, DeliveryStore, Outcome, Recorded, Taken } from "../delivery/store.ts";
import type { NewEvent } from "../events.ts";
import { idTimeMs } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { bytesArray, doubleArray, integerArray, textArray, uuidArray } from "./arrays.ts";
import { claim } from "./deliveries-claim.ts";
import { recordSightings } from "./endpoints-sightings.ts";
import { insertEvents } from "./events.ts";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import { troubleOf } from "./retryable.ts";

const attemptsInserted = `
      INSERT INTO attempts (partner_id, id, claim_no, attempt_no, instance_id, started_at, duration_ms, url, address,
        http_status, reason, detail, answer, key_id)
      SELECT partner_id, id, claim_no, attempt_no, instance_id, to_timestamp(started_ms / 1000), duration_ms, url,
        address, http_status, reason, detail, answer, key_id
      FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::uuid[], $6::double precision[],
        $7::integer[], $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::bytea[], $14::text[])
        AS i (partner_id, id, claim_no, attempt_no, instance_id, started_ms, duration_ms, url, address, http_status,
          reason, detail, answer, key_id)
      ON CONFLICT DO NOTHING`;

const insertAttempts = { name: "insert_attempts", text: attemptsInserted };

// Where all were accepted, in one statement that is its own transaction, and one round trip.
const recordAccepted = {
  name: "record_accepted",
  text: `
    WITH attempt AS (${attemptsInserted}),
    gone AS (
      DELETE FROM pending p USING unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)
      WHERE p.partner_id = i.partner_id AND p.id = i.id
      RETURNING p.id)
    SELECT count(*) AS gone FROM gone`,
};

// Whoever owns the row by now: the partner has it.
const deleteAccepted = {
  name: "delete_accepted",
  text: `
    DELETE FROM pending p USING unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)
    WHERE p.partner_id = i.partner_id AND p.id = i.id`,
};

// Given up a moment before its 2xx came.
const unpark = {
  name: "unpark",
  text: `
    DELETE FROM parked p USING unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)
    WHERE p.partner_id = i.partner_id AND p.id = i.id`,
};

const postpone = {
  name: "postpone",
  text: `
    UPDATE pending p SET due_at = now() + i.delay_ms * interval '1 millisecond', attempts_made = i.attempts_made,
      instance_id = NULL, epoch = NULL
    FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::double precision[])
      AS i (partner_id, id, claim_no, attempts_made, delay_ms)
    WHERE p.partner_id = i.partner_id AND p.id = i.id AND p.claim_no = i.claim_no AND p.instance_id IS NOT NULL
    RETURNING p.partner_id, p.id`,
};

const park = {
  name: "park",
  text: `
    WITH gone AS (
      DELETE FROM pending p
      USING unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::text[])
        AS i (partner_id, id, claim_no, attempts_made, reason)
      WHERE p.partner_id = i.partner_id AND p.id = i.id AND p.claim_no = i.claim_no
      RETURNING p.partner_id, p.id, p.chain_id, p.claim_no, p.bytes, i.attempts_made, i.reason)
    INSERT INTO parked (partner_id, id, chain_id, claim_no, attempts_made, bytes, reason)
    SELECT partner_id, id, chain_id, claim_no, attempts_made, bytes, reason FROM gone
    ON CONFLICT (partner_id, id) DO NOTHING
    RETURNING partner_id, id`,
};

const giveBack = {
  name: "give_back",
  text: `
    UPDATE pending p SET instance_id = NULL, epoch = NULL, due_at = now() + $5 * interval '1 millisecond',
      origin = coalesce(i.queue, p.origin)
    FROM unnest($2::uuid[], $3::uuid[], $4::integer[], $6::text[]) AS i (partner_id, id, claim_no, queue)
    WHERE p.partner_id = i.partner_id AND p.id = i.id AND p.claim_no = i.claim_no AND p.instance_id = $1`,
};

// One step along the index for each instance that holds rows, then only the rows of those without a lease.
const releaseDead = {
  name: "release_dead",
  text: `
    WITH RECURSIVE holder AS (
      (SELECT p.instance_id FROM pending p WHERE p.instance_id IS NOT NULL ORDER BY p.instance_id LIMIT 1)
      UNION ALL
      SELECT next.instance_id FROM holder h CROSS JOIN LATERAL (
        SELECT p.instance_id FROM pending p WHERE p.instance_id IS NOT NULL AND p.instance_id > h.instance_id
        ORDER BY p.instance_id LIMIT 1) AS next),
    dead AS MATERIALIZED (
      SELECT p.partner_id, p.id FROM holder h
      CROSS JOIN LATERAL (
        SELECT p.partner_id, p.id FROM pending p
        WHERE p.instance_id = h.instance_id AND p.epoch IS DISTINCT FROM (
          SELECT i.epoch FROM instances i WHERE i.id = h.instance_id AND i.expires_at > now())
        LIMIT $1 FOR UPDATE SKIP LOCKED) AS p
      LIMIT $1)
    UPDATE pending p SET instance_id = NULL, epoch = NULL, due_at = now()
    FROM dead WHERE p.partner_id = dead.partner_id AND p.id = dead.id`,
};

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

export interface DeliveriesOptions extends Pick<GroupCommitOptions<Outcome, Recorded>, "onFlush"> {
  /** Whether somebody is told of what is parked. */
  readonly alerting?: boolean;
  /** What follows for an endpoint from an attempt; without it nothing does. */
  readonly breaker?: Breaker;
}

/** Pending deliveries in PostgreSQL. Outcomes are group-committed. */
export class PostgresDeliveries implements DeliveryStore {
  readonly #engine: Pool;
  readonly #alerting: boolean;
  readonly #breaker: Breaker | undefined;
  readonly #outcomes: GroupCommit<Outcome, Recorded>;
  #servedLast: string = "ffffffff-ffff-ffff-ffff-ffffffffffff";

  constructor(engine: Pool, options: DeliveriesOptions = {}) {
    const { alerting = false, breaker, ...observe } = options;
    this.#engine = engine;
    this.#alerting = alerting;
    this.#breaker = breaker;
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
    const claimed = await claim(this.#engine, instance, limits, this.#servedLast);
    this.#servedLast = claimed.at(-1)?.partnerId ?? this.#servedLast;
    return claimed;
  }

  record(outcome: Outcome): Promise<Recorded> {
    return this.#outcomes.add(outcome);
  }

  async giveBack(instance: Instance, taken: readonly Taken[], delayMs: number): Promise<void> {
    await this.#engine.query({
      ...giveBack,
      values: [
        instance.id,
        taken.map((row) => row.partnerId),
        taken.map((row) => row.id),
        taken.map((row) => row.claimNo),
        delayMs,
        taken.map((row) => row.queue ?? null),
      ],
    });
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
        retried.length > 0
          ? client.query({
              ...postpone,
              values: [
                ...keyColumns(retried),
                retried.map((outcome) => outcome.claimNo),
                retried.map((outcome) => outcome.attemptsMade),
                retried.map((outcome) => (outcome.next.kind === "retry" ? outcome.next.delayMs : 0)),
              ],
            })
          : undefined,
        parked.length > 0
          ? client.query({
              ...park,
              values: [
                ...keyColumns(parked),
                parked.map((outcome) => outcome.claimNo),
                parked.map((outcome) => outcome.attemptsMade),
                parked.map((outcome) => outcome.attempt.reason ?? "internal"),
              ],
            })
          : undefined,
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
      if (accepted2xx !== undefined && (accepted2xx.rowCount ?? 0) < accepted.length) await this.#unpark(accepted);
      const changed = new Set(
        [...(postponedRows?.rows ?? []), ...(parkedRows?.rows ?? [])].map((row) => `${row.partner_id} ${row.id}`),
      );
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
    if ((rows[0]?.gone ?? 0) < outcomes.length) await this.#unpark(outcomes);
    return new Map(outcomes.map((outcome) => [keyOf(outcome), "applied"]));
  }

  async #unpark(accepted: readonly Outcome[]): Promise<void> {
    await this.#engine.query({ ...unpark, values: keyColumns(accepted) });
  }
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
