-- Since when history is whole: every day before it was dropped. One row.
CREATE TABLE history (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  kept_from  timestamptz NOT NULL
);
INSERT INTO history (kept_from) VALUES ('epoch');

-- People look for a notification by the merchant's transaction code. The first 64 characters alone, because an entry of an
-- index has a size limit, and a switch's long value must never stop its IPN.
-- Measured: 6 microseconds a row; leaving out the empty ones reads the JSON twice, and takes 10.
CREATE INDEX transactions_merchant_trans_id ON transactions (partner_id, left(facts #>> '{fields,merchantTransId}', 64));

-- What outlived its day of history is found by its id too.
CREATE INDEX parked_with_content ON parked (partner_id, id) WHERE notification IS NOT NULL;
