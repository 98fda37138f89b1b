-- The ledger drops what is past retention in the order of its ids, which begin with their time. A switch may give its
-- transactions ids of another kind: those, and nothing else, are found by this index. Nothing of it touches other rows.
CREATE INDEX transactions_untimed_id ON transactions (partner_id, created_at, id)
  WHERE get_byte(uuid_send(id), 6) >> 4 <> 7;
