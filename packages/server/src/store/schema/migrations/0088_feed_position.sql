-- How far the feed that PAYBELL_FEED names was written, by whichever instance; one row.
CREATE TABLE feed_position (
  one     boolean PRIMARY KEY DEFAULT true CHECK (one),
  events  text NOT NULL,
  audit   bigint NOT NULL
);
