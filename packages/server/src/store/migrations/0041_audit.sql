-- Who did what. Each entry holds the hash of the one before it, so that none can be changed or taken out unseen. What is
-- hashed is the text of each column as it stands: before and after are JSON as it was written, not as it would be read.
CREATE TABLE audit (
  seq       bigint PRIMARY KEY,
  at_ms     bigint NOT NULL,
  actor     text NOT NULL,
  role      text NOT NULL,
  token_id  text NOT NULL,
  address   text NOT NULL,
  action    text NOT NULL,
  subject   text NOT NULL,
  before    text NOT NULL,
  after     text NOT NULL,
  hash      text NOT NULL
);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_subject ON audit (subject, seq);

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit is append-only';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
