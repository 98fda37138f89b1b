--! homes
-- A switch may assign a UUIDv7 as well, long before it reports the transaction: the time in such an id does not find it.
-- What read by the index before reads by this one.
CREATE INDEX transactions_other_id ON transactions (partner_id, created_at, id)
  WHERE (get_byte(uuid_send(id), 6) >> 4 <> 7 OR origin = 'switch'
    AND created_at - to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
      NOT BETWEEN interval '-1 hour' AND interval '1 hour');
DROP INDEX transactions_untimed_id;
