-- The messages that a partner gets in its present trouble: deliveries fail, parking begins soon, everything is received
-- again. One instance sends each, once for each channel. The rows are dropped when the trouble is over.
CREATE TABLE partner_messages (
  partner_id       uuid NOT NULL REFERENCES partners ON DELETE CASCADE,
  kind             text NOT NULL CHECK (kind IN ('failing', 'parking', 'recovered')),
  channel          text NOT NULL CHECK (channel IN ('mail', 'webhook')),
  -- The same for each try.
  id               uuid NOT NULL,
  -- The oldest notification that failed, as it was found last: what became of it says how the trouble ended.
  notification_id  uuid,
  -- One instance sends it until then; if it was not accepted, it is tried again afterwards.
  claimed_until    timestamptz NOT NULL,
  sent_at          timestamptz,
  PRIMARY KEY (partner_id, kind, channel)
);
