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
      FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::uuid[], $6::double precision[],
        $7::integer[], $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::bytea[], $14::text[])
        AS i (partner_id, id, round, attempts_made, lease_id, started_ms, duration_ms, url, address, http_status,
          reason, detail, answer, key_id)
      ON CONFLICT DO NOTHING`;

export const insertAttempts = { name: "insert_attempts", text: attemptsInserted };

/** If all were accepted: one statement that is a transaction of its own, in one round trip. */
export const recordAccepted = {
  name: "record_accepted",
  text: `
    WITH attempt AS (${attemptsInserted}),
    gone AS (
      DELETE FROM pending p USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS i (partner_id, id, round)
      ${upToItsRound}
      WHERE p.ctid = found.at
      RETURNING p.id)
    SELECT count(*) AS gone FROM gone`,
};

export const deleteAccepted = {
  name: "delete_accepted",
  text: `
    DELETE FROM pending p USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS i (partner_id, id, round)
    ${upToItsRound}
    WHERE p.ctid = found.at`,
};

/** Parked shortly before its 2xx arrived. */
export const unpark = {
  name: "unpark",
  text: `
    DELETE FROM parked p USING unnest($1::uuid[], $2::uuid[], $3::integer[]) AS i (partner_id, id, round)
    WHERE p.partner_id = i.partner_id AND p.id = i.id AND p.round <= i.round`,
};

const counting = "attempts_made = i.attempts_made + 1, asked = p.asked + p.is_asked::integer, is_asked = false";

/** @param counted whether an attempt was made */
const dueAgain = (counted: boolean) => `
    WITH i AS MATERIALIZED (
      SELECT partner_id, id, round, attempts_made, now() + delay_ms * interval '1 millisecond' AS due_at
      FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::double precision[])
        AS i (partner_id, id, round, attempts_made, delay_ms))
    UPDATE pending p SET due_at = i.due_at ${counted ? `, ${counting}` : ""}
    FROM i ${itsAttempt}
    WHERE p.ctid = found.at
    RETURNING p.partner_id, p.id`;

export const retryLater = { name: "retry_later", text: dueAgain(true) };

export const postpone = { name: "postpone", text: dueAgain(false) };

/** @param counted whether an attempt was made */
const parking = (counted: boolean) => `
    WITH gone AS (
      DELETE FROM pending p
      USING unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::text[])
        AS i (partner_id, id, round, attempts_made, reason) ${itsAttempt}
      WHERE p.ctid = found.at
      RETURNING p.partner_id, p.id, p.chain_id, p.round, p.bytes,
        i.attempts_made ${counted ? "+ 1" : ""} AS attempts_made, i.reason)
    INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
    SELECT partner_id, id, chain_id, round, attempts_made, bytes, reason FROM gone
    ON CONFLICT (partner_id, id) DO NOTHING
    RETURNING partner_id, id`;

export const park = { name: "park", text: parking(true) };

export const parkUncounted = { name: "park_uncounted", text: parking(false) };
