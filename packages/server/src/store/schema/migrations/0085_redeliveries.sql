--! homes
-- The notifications that a redelivery of many has made due, by its steps. Whether each is delivered is read from pending
-- and parked, so that an outcome writes nothing here.
CREATE TABLE redeliveries (
  partner_id  uuid NOT NULL,
  id          uuid NOT NULL,
  step        uuid NOT NULL,
  ids         uuid[] NOT NULL,
  PRIMARY KEY (partner_id, id, step)
);
CREATE INDEX redeliveries_by_id ON redeliveries (id);
