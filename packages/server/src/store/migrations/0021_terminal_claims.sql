-- Whose a terminal of the acquirer is: two partners on one would settle each other's batch. Small, and without partner_id
-- in front, because it is asked across partners. Of terminals that two partners have already, the older one's counts.
CREATE TABLE terminal_claims (
  acquirer       text NOT NULL DEFAULT '',
  mid            text NOT NULL,
  tid            text NOT NULL,
  partner_id     uuid NOT NULL,
  -- By the operator; otherwise it was claimed by its first command.
  is_registered  boolean NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (acquirer, mid, tid)
);
CREATE INDEX terminal_claims_partner ON terminal_claims (partner_id, tid);
INSERT INTO terminal_claims (mid, tid, partner_id, is_registered)
SELECT mid, tid, partner_id, false FROM terminals ORDER BY created_at ON CONFLICT DO NOTHING;

-- A terminal's mid stays while a PreAuth is open on it.
CREATE INDEX transactions_open_preauth ON transactions (partner_id, tid)
  WHERE command = 'PREAUTH' AND state = 'SUCCESS' AND successor_id IS NULL;
