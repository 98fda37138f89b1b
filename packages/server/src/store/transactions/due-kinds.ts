import type { DueKind, DueKinds } from "../../ledger/due-watch.ts";
import type { Homes } from "../database/homes.ts";

// One index step for each kind. ORDER BY names the index: while a table is empty, all of them cost the same.
const lookForDue = {
  name: "look_for_due_work",
  text: `
    SELECT
      (SELECT true FROM transactions t WHERE t.state = 'INIT' ORDER BY t.partner_id, t.tid LIMIT 1) AS commands,
      (SELECT true FROM reversals r WHERE r.state = 'PENDING' AND r.due_at <= now() ORDER BY r.due_at LIMIT 1)
        AS reversals,
      (SELECT true FROM settlements s WHERE s.due_at <= now() ORDER BY s.due_at LIMIT 1) AS settlements,
      (SELECT true FROM transactions t WHERE t.compare_at <= now() ORDER BY t.compare_at LIMIT 1) AS comparisons,
      (SELECT true FROM transactions t WHERE t.notify_at <= now() ORDER BY t.notify_at LIMIT 1) AS reports`,
};

/** Finds the kinds of the ledger's stored work that are due, at any home. */
export class PostgresDueKinds implements DueKinds {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  async due(): Promise<readonly DueKind[]> {
    const rows = await this.#homes.gather(
      async ({ engine }) => (await engine.query<Record<DueKind, true | null>>(lookForDue)).rows,
    );
    const kinds = rows.flatMap((row) => (Object.keys(row) as DueKind[]).filter((kind) => row[kind] === true));
    return [...new Set(kinds)];
  }
}
