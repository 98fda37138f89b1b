import type { DueKind, DueKinds } from "../../ledger/due-work.ts";
import type { WaitingReport, WaitingStore } from "../../ledger/reports/waiting-reports.ts";
import { dueClaim } from "../database/claims.ts";
import type { Homes } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";

// One index step for each kind. ORDER BY names the index: while a table is empty, all of them cost the same.
const lookForDue = prepared<Record<DueKind, true | null>>(`
  SELECT
    (SELECT true FROM transactions t WHERE t.state = 'INIT' ORDER BY t.partner_id, t.tid LIMIT 1) AS commands,
    (SELECT true FROM reversals r WHERE r.state = 'PENDING' AND r.due_at <= now() ORDER BY r.due_at LIMIT 1)
      AS reversals,
    (SELECT true FROM settlements s WHERE s.due_at <= now() ORDER BY s.due_at LIMIT 1) AS settlements,
    (SELECT true FROM transactions t WHERE t.compare_at <= now() ORDER BY t.compare_at LIMIT 1) AS comparisons,
    (SELECT true FROM transactions t WHERE t.notify_at <= now() ORDER BY t.notify_at LIMIT 1) AS reports`);

/** Finds the kinds of the ledger's stored work that are due, at any home. */
export function postgresDueKinds(homes: Homes): DueKinds {
  return {
    async due() {
      const rows = await homes.gather(({ engine }) => lookForDue.rows(engine));
      const kinds = rows.flatMap((row) => (Object.keys(row) as DueKind[]).filter((kind) => row[kind] === true));
      return [...new Set(kinds)];
    },
  };
}

const claim = dueClaim<WaitingReport>({
  table: "transactions",
  key: "id",
  dueAt: "notify_at",
  reads: "(extract(epoch FROM now() - r.created_at) * 1000)::float8 AS age_ms",
  returning: `r.id, r.external_id AS "identity", r.original_external_id AS "originalExternalId",
      r.callback_url AS "callBackUrl", r.facts, r.notification_id AS "notificationId",
      r.reported_batch AS "batchId", due.age_ms AS "ageMs"`,
});

const postpone = prepared(`
  UPDATE transactions SET notify_at = now() + $3 * interval '1 millisecond'
  WHERE partner_id = $1 AND id = $2 AND notify_at IS NOT NULL`);

/**
 * A report whose notification had to wait: its original is known now, or the wait is over. Citus returns the time only
 * from a query.
 */
export const releaseReport = prepared<{ at: Date }>(`
  WITH clock AS MATERIALIZED (SELECT now() AS at)
  UPDATE transactions SET notify_at = NULL, original_id = $3, chain_id = $4, reported_batch = $5, facts = $6
  FROM clock WHERE partner_id = $1 AND id = $2 AND notify_at IS NOT NULL
  RETURNING clock.at`);

export function postgresWaitingReports(homes: Homes): WaitingStore {
  return {
    claimDue: (rowsMax, heldForMs) => claim(homes, rowsMax, heldForMs),

    async postpone({ partnerId, id }, delayMs) {
      await postpone.run(homes.of(partnerId).engine, [partnerId, id, delayMs]);
    },
  };
}
