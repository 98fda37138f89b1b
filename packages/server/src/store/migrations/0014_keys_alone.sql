-- While a table has few rows, all its indexes that begin with the partner cost the planner the same, and a connection
-- keeps the plan that it made then. Measured: planned below 1,000 rows, the look-up of a reqId went along the primary
-- key by its partner alone, and a notification was looked for along the commit order; later 600 and 30 pages for each
-- row in place of 4. So of two indexes only one can be taken for a look-up.
--
-- The commit order: by those who ask for an xid, and say so in its words.
DROP INDEX notifications_commit_order;
CREATE INDEX notifications_commit_order ON notifications (partner_id, xid, id) WHERE xid > '0';
-- reqId and externalId: by the first column, where the statement keeps its partner from being looked for:
-- `(t.partner_id = i.partner_id) IS TRUE`.
DROP INDEX transactions_req_id;
CREATE UNIQUE INDEX transactions_req_id ON transactions (req_id, partner_id) WHERE origin = 'command';
DROP INDEX transactions_external_id;
CREATE UNIQUE INDEX transactions_external_id ON transactions (external_id, partner_id) WHERE origin = 'switch';
