--! homes
-- How far each partner has pulled: the cursor that it passed last. What is before it, it has processed.
CREATE TABLE pulls (
  partner_id  uuid NOT NULL PRIMARY KEY,
  cursor      text NOT NULL,
  at          timestamptz NOT NULL DEFAULT now()
);
