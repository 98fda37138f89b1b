--! homes
-- A settlement is shown with the batch that it closed.
CREATE INDEX batches_settlement ON batches (partner_id, settlement_id);
