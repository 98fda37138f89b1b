import type { Booking, Standing } from "./books.ts";
import type { Deployment } from "./deployment.ts";
import type { HabitualHost } from "./host.ts";

/** A booking of the host that is not what the partner was told, or the other way round. */
export interface Difference {
  readonly key: string;
  readonly why: string;
  /** The operator has an event of it that is still open. */
  readonly isOpen: boolean;
}

interface Row {
  readonly id: string;
  readonly command: string;
  readonly key: string;
  readonly amount: string;
  readonly original_id: string | null;
  readonly reversal_state: string | null;
}

const transactionsOf = `
  SELECT id, command, original_id, reversal_state, amount_minor::text AS amount,
    concat(tid, ' ', facts->'fields'->>'traceNo') AS key
  FROM transactions WHERE command IN ('SALE', 'PREAUTH', 'PREAUTH_COMPLETE', 'REFUND', 'VOID')`;
const eventsOf = `
  SELECT subject_id::text AS subject, kind, concat(
    coalesce(detail->>'field41', detail->>'tid'), ' ', coalesce(detail->>'field11', detail->>'traceNo')) AS key
  FROM events WHERE kind IN ('reversal_refused', 'approval_unmatched', 'acquirer_advice')`;
const settlementsOf = `
  SELECT t.id, concat(t.tid, ' ', t.facts->'fields'->>'batchNo') AS batch, EXISTS (
    SELECT FROM events e
    WHERE e.subject_id = t.id AND e.kind IN ('settlement_late', 'settlement_refused')) AS "hasEvent"
  FROM transactions t WHERE t.command = 'SETTLEMENT'`;
/** The host counts dong with two decimals. */
const hostUnit = 100n;

/** Compares the books with what the partner was told: every transaction and every booking. */
export async function differencesOf(
  { query, ipns }: Deployment,
  { books, metBy, foreign }: HabitualHost,
): Promise<readonly Difference[]> {
  const rows = (await query(transactionsOf)) as unknown as readonly Row[];
  const events = (await query(eventsOf)) as unknown as readonly { subject: string | null; kind: string; key: string }[];
  const refused = new Set(events.filter(({ kind }) => kind === "reversal_refused").map(({ subject }) => subject));
  // The host approved what nobody knows, or reversed it by itself and said so.
  const said = new Set(events.filter(({ kind }) => kind !== "reversal_refused").map(({ key }) => key));
  const byKey = new Map(rows.map((row) => [row.key, row]));
  const statusOf = ({ id }: Row) => ipns.get(id)?.["status"];
  const following = new Map<string, Row>();
  for (const row of rows) {
    const isFollowing = row.command !== "REFUND" && row.original_id !== null && statusOf(row) === "SUCCESS";
    if (isFollowing) following.set(row.original_id, row);
  }
  const differences: Difference[] = [];
  const hasOpenEvent = ({ id, key, reversal_state: reversal }: Row) =>
    said.has(key) || (reversal === "parked" && refused.has(id));
  const differs = (key: string, why: string) => {
    const row = byKey.get(key);
    // The result of a Void or a Complete shows in its original, too.
    const concerned = rows.filter((one) => one === row || (row !== undefined && one.original_id === row.id));
    const habits = `habits: ${metBy.get(key)?.join(", ") ?? "none"}; Reversal: ${row?.reversal_state ?? "none"}`;
    const isOpen = row === undefined ? said.has(key) : concerned.some(hasOpenEvent);
    differences.push({ key, why: `${why} (${habits})`, isOpen });
  };
  for (const row of rows) {
    const [status, booking] = [statusOf(row), books.bookings.get(row.key)];
    const expected = status === "SUCCESS" ? standingOf(row, following.get(row.id)) : undefined;
    if (status === undefined) differs(row.key, `${row.command} has no IPN`);
    else if (!isAsBooked(expected, booking)) {
      differs(
        row.key,
        `${row.command} was notified as ${status} ${ipns.get(row.id)?.["isoResponseCode"]}, and the booking ${booking?.standing ?? "is missing"}`,
      );
    } else if (
      booking?.standing === "stands" &&
      BigInt(ipns.get(row.id)?.["amount"] ?? 0) * hostUnit !== booking.amount
    ) {
      differs(row.key, `${row.command} was notified with another amount than ${booking.amount}`);
    }
  }
  for (const { key, standing } of books.bookings.values()) {
    if (!byKey.has(key) && standing !== "reversed") differs(key, "nobody was notified of the booking");
  }
  if (foreign > 0) differences.push({ key: "MAC", why: `${foreign} messages had no MAC of the host's`, isOpen: false });
  return [...differences, ...(await unlikeBatches({ query, ipns }, books.settled))];
}

/** Batches that one side has settled, and the other has not. */
async function unlikeBatches(
  { query, ipns }: Pick<Deployment, "query" | "ipns">,
  settledThere: ReadonlySet<string>,
): Promise<readonly Difference[]> {
  const rows = (await query(settlementsOf)) as unknown as readonly { id: string; batch: string; hasEvent: boolean }[];
  const settledHere = new Set(rows.flatMap(({ id, batch }) => (ipns.get(id)?.["status"] === "SUCCESS" ? [batch] : [])));
  const withEvent = new Set(rows.flatMap(({ batch, hasEvent }) => (hasEvent ? [batch] : [])));
  const unlike = [...settledHere, ...settledThere].filter((one) => settledHere.has(one) !== settledThere.has(one));
  return unlike.map((batch) => {
    const who = settledHere.has(batch) ? "the partner, and not by the host" : "the host, and not by the partner";
    return { key: batch, why: `the batch is settled for ${who}`, isOpen: withEvent.has(batch) };
  });
}

function standingOf({ command, reversal_state: reversal }: Row, next: Row | undefined): Standing {
  if (reversal === "done") return "reversed";
  if (next?.command === "VOID") return "voided";
  return command === "PREAUTH" && next !== undefined ? "completed" : "stands";
}

/** @param expected undefined: nothing may be charged */
function isAsBooked(expected: Standing | undefined, booking: Booking | undefined): boolean {
  if (expected !== undefined) return booking?.standing === expected;
  return booking === undefined || booking.standing === "reversed";
}
