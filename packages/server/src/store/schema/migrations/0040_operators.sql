-- Operators by name. Only the hash of a token is stored: with 256 random bits it cannot be guessed.
CREATE TABLE operators (
  id            uuid PRIMARY KEY,
  name          text NOT NULL,
  role          text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  token_hash    bytea NOT NULL UNIQUE,
  created_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz NOT NULL,
  last_used_at  timestamptz,
  revoked_at    timestamptz
);
