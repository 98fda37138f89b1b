-- An answer that comes after its instance is gone names a terminal, and no partner.
CREATE INDEX reversals_by_terminal ON reversals (tid, created_at);
