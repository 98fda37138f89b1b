import type { PoolClient } from "pg";
import type { OriginalState } from "../../commands/states.ts";
import type { TerminalState } from "../../commands/terminal.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { Begun, Init } from "../../ledger/store.ts";
import { Columns } from "../database/columns.ts";
import { GroupCommit, type GroupCommitHooks } from "../database/group-commit.ts";
import type { Home, Homes, PerHome } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";
import { assertCommitted, isUniqueViolation } from "../database/transaction.ts";
import { searchable } from "../notifications/search.ts";
import {
  type AllottedSequence,
  allotSequences,
  keyOf,
  lockTerminals,
  sequenceFor,
  terminalOf,
} from "../terminals/sequences.ts";
import { type Claimed, claimTerminals, dropUnusedClaims } from "../terminals/terminals.ts";
import { batchState, isStanding, settlementCommands } from "./conditions.ts";

// One look-up each, in this order. Measured: a plan made while the table was empty, and kept by its connection, read
// all 100,000 transactions of a partner for 20 reqIds.
const usedReqIds = prepared<UsedRow>(`
  SELECT t.* FROM unnest($1::uuid[], $2::text[]) AS i (partner_id, req_id)
  CROSS JOIN LATERAL (
    SELECT t.partner_id, t.req_id, t.id, t.body_hash, t.facts, t.created_at, t.is_tombstone FROM transactions t
    WHERE (t.partner_id = i.partner_id) IS TRUE AND t.req_id = i.req_id AND t.origin = 'command' LIMIT 1) AS t`);

const inits = new Columns<PreparedInit>({
  partner_id: ["uuid", ({ init }) => init.partnerId],
  id: ["uuid", ({ init }) => init.id],
  command: ["text", ({ init }) => init.command],
  req_id: ["text", ({ init }) => init.reqId],
  body_hash: ["bytes", ({ init }) => init.bodyHash],
  original_id: ["uuid", ({ init }) => init.originalId],
  chain_id: ["uuid", ({ init }) => init.chainId],
  callback_url: ["text", ({ init }) => init.callBackUrl],
  tid: ["text", ({ init }) => init.tid],
  batch_no: ["text", ({ init, taken }) => (init.takes.batch ? taken.batchNo : null)],
  batch_id: ["uuid", ({ init, taken }) => (init.takes.batch ? taken.batchId : null)],
  amount_minor: ["bigint", ({ init }) => init.amountMinor],
  currency: ["text", ({ init }) => init.currency],
  facts: ["json", ({ facts }) => JSON.stringify(facts)],
  merchant_trans_id: ["text", ({ facts }) => searchable(facts.fields["merchantTransId"])],
  lease_id: ["uuid", ({ init }) => init.leaseId],
  acquirer: ["text", ({ init }) => init.acquirer],
  site: ["text", ({ init }) => init.site],
});
const insertInits = prepared<InsertedRow>(`
  INSERT INTO transactions (partner_id, id, origin, command, state, req_id, body_hash, original_id, chain_id,
    callback_url, tid, batch_no, batch_id, amount_minor, currency, facts, merchant_trans_id, lease_id, acquirer,
    site)
  SELECT partner_id, id, 'command', command, 'INIT', req_id, body_hash, original_id, chain_id, callback_url, tid,
    batch_no, batch_id, amount_minor, currency, facts, merchant_trans_id, lease_id, acquirer, site
  FROM ${inits.rows}
  RETURNING id, created_at`);

const cards = new Columns<Init>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  chain_id: ["uuid", ({ chainId }) => chainId],
  sealed: ["bytes", ({ sealedCard }) => sealedCard],
});
const insertCards = prepared(`
  INSERT INTO cards (partner_id, chain_id, sealed)
  SELECT * FROM ${cards.rows}`);

const settlements = new Columns<PreparedInit>({
  partner_id: ["uuid", ({ init }) => init.partnerId],
  id: ["uuid", ({ init }) => init.id],
  kind: ["text", ({ init }) => init.takes.settlement],
  tid: ["text", ({ init }) => init.tid],
  batch_id: ["uuid", ({ taken }) => taken.batchId],
});
const insertSettlements = prepared(`
  INSERT INTO settlements (partner_id, id, kind, tid, batch_id)
  SELECT * FROM ${settlements.rows}`);

// The caller got an answer that nothing was accepted, and the acquirer was not asked. What the command held is free
// again. A settlement that an instance has claimed or taken over stays, whole: its totals may have been sent. So does a
// REVERSAL whose Reversal is under way.
const deleteAbandoned = prepared(`
  WITH settlement AS (
    DELETE FROM settlements s USING transactions t
    WHERE s.partner_id = $1 AND s.id = $2 AND s.tries = 0
      AND t.partner_id = $1 AND t.id = $2 AND t.state = 'INIT' AND t.lease_id = $3
    RETURNING s.partner_id, s.tid, s.kind),
  gone AS (
    DELETE FROM transactions
    WHERE partner_id = $1 AND id = $2 AND state = 'INIT' AND lease_id = $3
      AND (command NOT IN ${settlementCommands} OR EXISTS (SELECT FROM settlement))
      AND NOT EXISTS (SELECT FROM reversals r WHERE r.partner_id = $1 AND r.transaction_id = original_id AND r.requested_by = $2)
    RETURNING partner_id, id, original_id),
  terminal AS (
    UPDATE terminals t SET batch_closing = false FROM settlement s
    WHERE s.kind = 'SETTLEMENT' AND t.partner_id = s.partner_id AND t.tid = s.tid),
  original AS (
    UPDATE transactions o SET successor_id = NULL, successor_command = NULL, successor_state = NULL
    FROM gone g WHERE o.partner_id = g.partner_id AND o.id = g.original_id AND o.successor_id = g.id)
  SELECT FROM gone`);

/** After the last of them a minute has passed: the server has ended a COMMIT that the network delivered late. */
const abandonTriesMax = 7;

interface UsedRow {
  readonly partner_id: PartnerId;
  readonly req_id: string;
  readonly id: TransactionId;
  readonly body_hash: Buffer | null;
  readonly facts: ReturnType<Init["facts"]>;
  readonly created_at: Date;
  readonly is_tombstone: boolean;
}

type Results = Map<string, Begun>;

/** The hooks, and how long an INIT is tried while the database is away; default: 5 s. */
export type InitsOptions = GroupCommitHooks & { readonly giveUpAfterMs?: number };

/** Makes INITs durable, concurrent ones in one commit: terminals locked first, then originals, always in key order. */
export class Inits {
  readonly #homes: Homes;
  readonly #commits: PerHome<GroupCommit<Init, Begun>>;

  constructor(homes: Homes, options: InitsOptions) {
    this.#homes = homes;
    this.#commits = homes.each(
      (home) =>
        new GroupCommit({
          name: "begin",
          key: keyOf,
          bytes: () => 1_024,
          giveUpAfterMs: 5_000,
          onUnknownCommit: (init) => void this.#abandon(init),
          commit: (inits) => this.#commit(home, inits),
          ...options,
        }),
    );
  }

  begin(init: Init): Promise<Begun> {
    return this.#commits.of(init.partnerId).add(init);
  }

  /** If a command lost a race, another instance has committed by now: the next attempt finds its rows. */
  async #commit(home: Home, inits: readonly Init[]): Promise<Results> {
    for (;;) {
      const results = await this.#tryToCommit(home, inits);
      if (results !== undefined) return results;
    }
  }

  async #tryToCommit(home: Home, inits: readonly Init[]): Promise<Results | undefined> {
    const client = await home.engine.connect();
    try {
      const [, used, terminals] = await Promise.all([
        client.query("BEGIN"),
        findUsed(client, inits),
        lockTerminals(client, inits),
      ]);
      const results = answersForUsed(inits, used);
      const fresh = inits.filter((init) => !results.has(keyOf(init)));
      const written = await beginFresh(client, fresh, terminals, results);
      client.release();
      return written ? results : undefined;
    } catch (error) {
      // The state of this connection is unknown: closing it rolls everything back.
      client.release(true);
      throw error;
    }
  }

  /** The row may appear after a look: the server, or the network, may still have the COMMIT. */
  async #abandon(init: Init): Promise<void> {
    const { partnerId, id, leaseId } = init;
    for (let tries = 0; tries < abandonTriesMax; ) {
      let waitMs = 1_000;
      try {
        const { engine } = this.#homes.of(partnerId);
        const rowCount = await deleteAbandoned.run(engine, [partnerId, id, leaseId]);
        if (rowCount === 1) return;
        waitMs *= 2 ** tries;
        tries += 1;
      } catch {
        // The database is still away.
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
    }
  }
}

/**
 * Checks each command under lock, assigns numbers to those that may run, writes and commits them. False if one of them
 * lost a race against another instance: then everything was rolled back, including numbers and a closing batch.
 */
async function beginFresh(
  client: PoolClient,
  inits: readonly Init[],
  terminals: Map<string, TerminalState>,
  results: Results,
): Promise<boolean> {
  const known = new Set(terminals.keys());
  const claimed = await claimTerminals(
    client,
    inits.filter((init) => opensTerminal(init, known)),
  );
  const originals = await lockOriginals(client, inits);
  const acquirers = await holdAcquirers(client, inits, terminals);
  const allowed: Init[] = [];
  const refused: Init[] = [];
  for (const init of inits) {
    const terminal = terminals.get(terminalOf(init));
    const original = init.originalId === null ? undefined : originals.get(`${init.partnerId} ${init.originalId}`);
    const forbidden = isRerouted(init, terminal, acquirers)
      ? ({ outcome: "rerouted" } as const)
      : forbiddenBy(init, terminal, original, known.has(terminalOf(init)) ? undefined : claimed);
    if (forbidden !== undefined) {
      refused.push(init);
      results.set(keyOf(init), forbidden);
    } else {
      allowed.push(init);
      // Later commands of this batch are checked against the state after this one.
      if (original !== undefined) originals.set(`${init.partnerId} ${original.id}`, heldBy(init, original));
      if (init.tid !== "") terminals.set(terminalOf(init), changedBy(init, terminal));
    }
  }
  // Its own first request, which another instance began while this one waited for the locks, may be the cause, or have
  // gone to the acquirer that the terminal had before.
  if (refused.length > 0) {
    for (const [key, begun] of answersForUsed(refused, await findUsed(client, refused))) results.set(key, begun);
  }
  await dropUnusedClaims(client, claimed.fresh, new Set(allowed.map(terminalOf)));
  if (allowed.length > 0) return writeAllowed(client, allowed, known, results);
  await client.query("COMMIT");
  return true;
}

/** What has an original goes to that one's acquirer, unless that was removed. @param held by `holdAcquirers` */
function isRerouted(init: Init, terminal: TerminalState | undefined, held: ReadonlySet<string>): boolean {
  const { originalId, tid, acquirer } = init;
  if (tid === "" || acquirer === (terminal?.acquirer ?? "")) return false;
  return originalId === null || (acquirer !== "" && !held.has(acquirer));
}

/** The refusal by the terminal, or by the original; undefined without one. @param claimed for a terminal's first use */
function forbiddenBy(
  init: Init,
  terminal: TerminalState | undefined,
  original: OriginalState | undefined,
  claimed: Claimed | undefined,
): Begun | undefined {
  const { tid } = init;
  const refusal = init.refusal(terminal, original);
  if (refusal !== undefined) return { outcome: "refused", refusal };
  if (terminal === undefined && !init.openTerminals && tid !== "") return { outcome: "terminal_unknown" };
  if (terminal === undefined && /\s$/.test(tid)) return { outcome: "terminal_padded", field: "tid" };
  if (terminal === undefined && /\s$/.test(init.mid)) return { outcome: "terminal_padded", field: "mid" };
  if (claimed?.taken.has(terminalOf(init))) return { outcome: "terminal_taken" };
  return claimed?.beyondQuota.has(terminalOf(init)) ? { outcome: "terminal_quota" } : undefined;
}

function opensTerminal(init: Init, known: ReadonlySet<string>): boolean {
  return init.openTerminals && init.tid !== "" && !known.has(terminalOf(init));
}

async function writeAllowed(
  client: PoolClient,
  allowed: readonly Init[],
  known: ReadonlySet<string>,
  results: Results,
): Promise<boolean> {
  const sequences = await allotSequences(client, allowed, known);
  const ready = allowed.flatMap((init) => {
    const taken = init.takes.traceNo ? sequences.get(init) : noSequence;
    return taken === undefined ? [] : [{ init, taken, facts: init.facts(sequenceFor(init, taken)) }];
  });
  if (ready.length < allowed.length) {
    await client.query("ROLLBACK");
    return false;
  }
  const rows = await insertAndCommit(client, allowed, ready);
  if (rows === undefined) return false;
  const insertedAt = new Map(rows.map((row) => [row.id, row.created_at]));
  for (const { init, facts } of ready) {
    const createdAtMs = insertedAt.get(init.id)?.getTime() ?? 0;
    results.set(keyOf(init), { outcome: "begun", facts, createdAtMs });
  }
  return true;
}

function heldBy(init: Init, original: OriginalState): OriginalState {
  const { command, amountMinor } = init;
  if (command === "REFUND") return { ...original, refundedMinor: original.refundedMinor + (amountMinor ?? 0n) };
  if (command !== "VOID" && command !== "PREAUTH_COMPLETE" && command !== "REVERSAL") return original;
  return { ...original, successor: { command, state: "in_flight" } };
}

function changedBy({ mid, takes, currency }: Init, before: TerminalState | undefined): TerminalState {
  return {
    mid: before?.mid ?? mid,
    acquirer: before?.acquirer ?? "",
    batch: takes.settlement === "SETTLEMENT" ? "closing" : (before?.batch ?? "open"),
    batchCurrency: before?.batchCurrency ?? (takes.batch ? currency : null),
    isSettlementInDoubt: before?.isSettlementInDoubt ?? false,
  };
}

/** For a command without a number of its own. */
const noSequence: AllottedSequence = {
  traceNo: "",
  invoiceNo: "",
  batchNo: "",
  batchId: "",
  merchantId: "",
  merchantName: "",
  merchantAddress: "",
  deviceId: "",
  appName: "",
};

interface InsertedRow {
  readonly id: TransactionId;
  readonly created_at: Date;
}

interface PreparedInit {
  readonly init: Init;
  readonly taken: AllottedSequence;
  readonly facts: ReturnType<Init["facts"]>;
}

/**
 * Everything in one round trip: after a statement that failed, COMMIT rolls back.
 *
 * @returns undefined if another instance has inserted one of them
 */
async function insertAndCommit(
  client: PoolClient,
  allowed: readonly Init[],
  ready: readonly PreparedInit[],
): Promise<readonly InsertedRow[] | undefined> {
  const inserting = insertInits.rows(client, inits.values(ready));
  const others = [
    reserveOriginals(client, allowed),
    keepCards(client, allowed),
    beginSettlements(client, ready),
    client.query("COMMIT").then(assertCommitted),
  ];
  const [inserted, ...rest] = await Promise.allSettled([inserting, ...others]);
  if (inserted.status === "rejected" && isUniqueViolation(inserted.reason)) return undefined;
  for (const one of [inserted, ...rest]) if (one.status === "rejected") throw one.reason;
  return inserting;
}

async function keepCards(client: PoolClient, allowed: readonly Init[]): Promise<void> {
  const kept = allowed.filter(({ sealedCard }) => sealedCard !== null);
  if (kept.length > 0) await insertCards.run(client, cards.values(kept));
}

async function beginSettlements(client: PoolClient, written: readonly PreparedInit[]): Promise<void> {
  const begun = written.filter(({ init }) => init.takes.settlement !== null);
  if (begun.length > 0) await insertSettlements.run(client, settlements.values(begun));
}

function findUsed(client: PoolClient, inits: readonly Init[]): Promise<readonly UsedRow[]> {
  return usedReqIds.rows(client, [inits.map((init) => init.partnerId), inits.map((init) => init.reqId)]);
}

function answersForUsed(inits: readonly Init[], used: readonly UsedRow[]): Results {
  const known = new Map(used.map((row) => [`${row.partner_id} ${row.req_id}`, row]));
  return new Map(
    inits.flatMap((init): [string, Begun][] => {
      const row = known.get(keyOf(init));
      return row === undefined ? [] : [[keyOf(init), answerForUsed(init, row)]];
    }),
  );
}

function answerForUsed(init: Init, row: UsedRow): Begun {
  if (row.is_tombstone) return { outcome: "reversed_before_arrival" };
  // Our own row: its COMMIT had happened after all.
  if (row.id === init.id) return { outcome: "begun", facts: row.facts, createdAtMs: row.created_at.getTime() };
  return { outcome: "repeated", sameBody: row.body_hash?.equals(init.bodyHash) ?? false, id: row.id };
}

// The originals of the commands that begin.
// Locked in key order, after the terminals: every writer acquires its locks in this order.
const lockOriginalRows = prepared<OriginalRow>(`
  SELECT t.partner_id AS "partnerId", t.id, t.origin, t.command, t.state, t.reversal_state AS reversal,
    CASE WHEN t.batch_id IS NULL THEN 'none' ELSE ${batchState("r.batch_id = t.batch_id")} END AS batch,
    CASE WHEN t.successor_command IS NOT NULL AND t.successor_state IS NOT NULL THEN json_build_object(
      'command', t.successor_command, 'state', t.successor_state, 'reversal', s.reversal_state) END AS successor,
    coalesce(t.amount_minor, 0)::text AS "amountText", coalesce(t.currency, '') AS currency,
    t.created_at AS "createdAt"
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS i (partner_id, id, nth)
  JOIN transactions t ON t.partner_id = i.partner_id AND t.id = i.id
  LEFT JOIN terminals r ON r.partner_id = t.partner_id AND r.tid = t.tid
  LEFT JOIN transactions s ON s.partner_id = t.partner_id AND s.id = t.successor_id
  ORDER BY i.nth
  FOR UPDATE OF t`);

// The terminal of an original may have moved, and then nothing else keeps the acquirer, without which a Reversal would never
// end. Held until the command has begun: a removal waits, and then finds the acquirer in use.
const holdNamed = prepared<{ name: string }>(
  "SELECT name FROM acquirers WHERE name = ANY($1::text[]) ORDER BY name FOR SHARE",
);

/** The registered acquirers of originals whose terminals name others. */
async function holdAcquirers(
  client: PoolClient,
  inits: readonly Init[],
  terminals: ReadonlyMap<string, TerminalState>,
): Promise<ReadonlySet<string>> {
  const elsewhere = inits.filter((init) => {
    const { originalId, acquirer } = init;
    return originalId !== null && acquirer !== "" && acquirer !== terminals.get(terminalOf(init))?.acquirer;
  });
  if (elsewhere.length === 0) return new Set();
  const rows = await holdNamed.rows(client, [elsewhere.map(({ acquirer }) => acquirer)]);
  return new Set(rows.map(({ name }) => name));
}

// A separate statement after the originals are locked: the locking statement sees other tables as they were before it
// waited, and would miss a Refund of another instance.
const sumRefunds = prepared<{ partner_id: PartnerId; id: TransactionId; refunded: string }>(`
    SELECT i.partner_id, i.id, coalesce((
      SELECT sum(t.amount_minor) FROM transactions t
      WHERE t.partner_id = i.partner_id AND t.original_id = i.id AND t.command = 'REFUND'
        AND (t.state = 'INIT' OR ${isStanding} OR t.reversal_state IN ('pending', 'parked'))), 0)::text AS refunded
    FROM unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)`);

const holders = new Columns<Init>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ originalId }) => originalId],
  successor_id: ["uuid", ({ id }) => id],
  command: ["text", ({ command }) => command],
});
const holdOriginals = prepared(`
  UPDATE transactions t SET successor_id = i.successor_id, successor_command = i.command,
    successor_state = 'in_flight'
  FROM ${holders.rows}
  WHERE t.partner_id = i.partner_id AND t.id = i.id`);

interface OriginalRow extends Omit<OriginalState, "amountMinor" | "refundedMinor" | "createdAtMs"> {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly amountText: string;
  readonly createdAt: Date;
}

async function lockOriginals(client: PoolClient, inits: readonly Init[]): Promise<Map<string, OriginalState>> {
  const wanted = inits
    .flatMap(({ partnerId, originalId }) => (originalId === null ? [] : [{ partnerId, originalId }]))
    .sort((a, b) => (`${a.partnerId} ${a.originalId}` < `${b.partnerId} ${b.originalId}` ? -1 : 1));
  if (wanted.length === 0) return new Map();
  const rows = await lockOriginalRows.rows(client, [
    wanted.map(({ partnerId }) => partnerId),
    wanted.map(({ originalId }) => originalId),
  ]);
  const refunded = await refundedOf(client, inits);
  return new Map(
    rows.map(({ partnerId, amountText, createdAt, ...same }) => {
      const key = `${partnerId} ${same.id}`;
      const refundedMinor = refunded.get(key) ?? 0n;
      return [key, { ...same, amountMinor: BigInt(amountText), refundedMinor, createdAtMs: createdAt.getTime() }];
    }),
  );
}

async function refundedOf(client: PoolClient, inits: readonly Init[]): Promise<ReadonlyMap<string, bigint>> {
  const refunds = inits.filter(({ command }) => command === "REFUND");
  if (refunds.length === 0) return new Map();
  const rows = await sumRefunds.rows(client, [
    refunds.map(({ partnerId }) => partnerId),
    refunds.map(({ originalId }) => originalId),
  ]);
  return new Map(rows.map((row) => [`${row.partner_id} ${row.id}`, BigInt(row.refunded)]));
}

/** Each command now holds its original, so that no other may begin on it. Several Refunds may. */
async function reserveOriginals(client: PoolClient, inits: readonly Init[]): Promise<void> {
  const holding = inits.filter((init) => init.originalId !== null && init.command !== "REFUND");
  if (holding.length > 0) await holdOriginals.run(client, holders.values(holding));
}
