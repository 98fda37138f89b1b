-- Sessions of the console that were ended before their time, until that time. No instance takes their cookies.
CREATE TABLE ended_sessions (
  -- SHA-256 of the session's CSRF token, which no other session has.
  id       bytea PRIMARY KEY,
  ends_at  timestamptz NOT NULL
);
CREATE INDEX ended_sessions_ends_at ON ended_sessions (ends_at);
