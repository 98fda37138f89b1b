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

// Rows of `pending` are found by key in a LATERAL list and changed by their place in the table: there is one plan for
// that. A join by key has two, and one that is made while nothing is pending walks the whole backlog later. Measured:
// 3.2 s for 500 outcomes with 20,000 pending. A row that changed since the statement began has another place, and is
// missed: whoever finds fewer rows changed than asked for asks once more.
//
// OFFSET keeps the list from being joined after all.
const itsRow = `CROSS JOIN LATERAL (
        SELECT t.ctid AS at FROM pending t WHERE t.partner_id = i.partner_id AND t.id = i.id OFFSET 0) AS found`;
const itsClaimedRow = `CROSS JOIN LATERAL (
        SELECT t.ctid AS at FROM pending t
        WHERE t.partner_id = i.partner_id AND t.id = i.id AND t.claim_no = i.claim_no OFFSET 0) AS found`;

export const insertAttempts = { name: "insert_attempts", text: attemptsInserted };

// Where all were accepted, in one statement that is its own transaction, and one round trip.
export const recordAccepted = {
  name: "record_accepted",
  text: `
    WITH attempt AS (${attemptsInserted}),
    gone AS (
      DELETE FROM pending p USING unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id) ${itsRow}
      WHERE p.ctid = found.at
      RETURNING p.id)
    SELECT count(*) AS gone FROM gone`,
};

// Whoever owns the row by now: the partner has it.
export const deleteAccepted = {
  name: "delete_accepted",
  text: `
    DELETE FROM pending p USING unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id) ${itsRow}
    WHERE p.ctid = found.at`,
};

// Given up a moment before its 2xx came.
export const unpark = {
  name: "unpark",
  text: `
    DELETE FROM parked p USING unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)
    WHERE p.partner_id = i.partner_id AND p.id = i.id`,
};

export const postpone = {
  name: "postpone",
  text: `
    UPDATE pending p SET due_at = now() + i.delay_ms * interval '1 millisecond', attempts_made = i.attempts_made,
      instance_id = NULL, epoch = NULL
    FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::double precision[])
      AS i (partner_id, id, claim_no, attempts_made, delay_ms) ${itsClaimedRow}
    WHERE p.ctid = found.at AND p.instance_id IS NOT NULL
    RETURNING p.partner_id, p.id`,
};

export const park = {
  name: "park",
  text: `
    WITH gone AS (
      DELETE FROM pending p
      USING unnest($1::uuid[], $2::uuid[], $3::integer[], $4::integer[], $5::text[])
        AS i (partner_id, id, claim_no, attempts_made, reason) ${itsClaimedRow}
      WHERE p.ctid = found.at
      RETURNING p.partner_id, p.id, p.chain_id, p.claim_no, p.bytes, i.attempts_made, i.reason)
    INSERT INTO parked (partner_id, id, chain_id, claim_no, attempts_made, bytes, reason)
    SELECT partner_id, id, chain_id, claim_no, attempts_made, bytes, reason FROM gone
    ON CONFLICT (partner_id, id) DO NOTHING
    RETURNING partner_id, id`,
};

export const giveBack = {
  name: "give_back",
  text: `
    UPDATE pending p SET instance_id = NULL, epoch = NULL, due_at = now() + $5 * interval '1 millisecond',
      origin = coalesce(i.queue, p.origin)
    FROM unnest($2::uuid[], $3::uuid[], $4::integer[], $6::text[]) AS i (partner_id, id, claim_no, queue)
      ${itsClaimedRow}
    WHERE p.ctid = found.at AND p.instance_id = $1`,
};

export const heldBy = {
  name: "held_by",
  text: `
    SELECT p.partner_id AS "partnerId", p.id, p.claim_no AS "claimNo" FROM pending p
    WHERE p.instance_id = $1 AND p.epoch = $2 LIMIT $3`,
};

// What is held stands in the index by its lease. Only what lies between the leases that run is looked at: their own
// rows, and those of theirs that are gone, are passed by whole.
export const releaseDead = {
  name: "release_dead",
  text: `
    WITH lease AS (
      SELECT i.id, i.epoch FROM instances i WHERE i.expires_at > now()
      UNION ALL
      SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff', 2147483647),
    gap AS MATERIALIZED (
      SELECT l.id, l.epoch, lag(l.id, 1, '00000000-0000-0000-0000-000000000000') OVER by_key AS after_id,
        lag(l.epoch, 1, 0) OVER by_key AS after_epoch
      FROM lease l WINDOW by_key AS (ORDER BY l.id, l.epoch)),
    dead AS MATERIALIZED (
      SELECT p.at FROM gap g
      CROSS JOIN LATERAL (
        SELECT p.ctid AS at FROM pending p
        WHERE p.instance_id IS NOT NULL
          AND (p.instance_id, p.epoch) > (g.after_id, g.after_epoch) AND (p.instance_id, p.epoch) < (g.id, g.epoch)
        LIMIT $1 FOR UPDATE SKIP LOCKED) AS p
      LIMIT $1)
    UPDATE pending p SET instance_id = NULL, epoch = NULL, due_at = now()
    FROM dead WHERE p.ctid = dead.at`,
};
