--! homes
-- Gives notifications of an older version the MAC that they lack: no role of the service may change one otherwise.
CREATE FUNCTION seal_contents(lowest uuid, beyond uuid, partners uuid[], ids uuid[], macs bytea[]) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  UPDATE notifications n SET content_mac = i.mac FROM unnest(partners, ids, macs) AS i (partner_id, id, mac)
  WHERE n.partner_id = i.partner_id AND n.id = i.id AND n.id >= lowest AND n.id < beyond AND n.content_mac IS NULL;
END $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION seal_contents SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE ALL ON FUNCTION seal_contents FROM PUBLIC;
