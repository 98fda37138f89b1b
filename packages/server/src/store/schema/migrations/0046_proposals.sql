-- Proposals of one admin that another may confirm. A row is deleted when it is confirmed or withdrawn; the audit keeps
-- both.
CREATE TABLE proposals (
  id           uuid PRIMARY KEY,
  action       text NOT NULL,
  partner_id   uuid REFERENCES partners (id),
  -- The body of the request that confirms it, as JSON. It holds no secret.
  input        text NOT NULL,
  proposed_by  text NOT NULL,
  token_id     text NOT NULL,
  -- The identity from the OpenID provider, as in operators.
  subject      text,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz NOT NULL
);
