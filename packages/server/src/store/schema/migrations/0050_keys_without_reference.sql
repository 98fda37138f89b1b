-- Keys name their partner without a foreign key. On Citus both tables are on every node, and a change of one key would
-- lock all partners through it. No partner is ever deleted, and keys are added under the lock of their partner's row.
ALTER TABLE partner_keys DROP CONSTRAINT partner_keys_partner_id_fkey;
