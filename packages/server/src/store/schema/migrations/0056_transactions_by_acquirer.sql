--! homes
-- The operator lists what went to one acquirer. Only transactions of registered acquirers have an entry.
CREATE INDEX transactions_acquirer ON transactions (acquirer, partner_id, id) WHERE acquirer <> '';
