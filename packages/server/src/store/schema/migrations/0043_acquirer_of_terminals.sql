--! homes
-- Which acquirer a terminal's commands go to, and a transaction's went to. Empty: the one of the settings.
ALTER TABLE terminals ADD COLUMN acquirer text NOT NULL DEFAULT '';
ALTER TABLE transactions ADD COLUMN acquirer text NOT NULL DEFAULT '';
-- An acquirer that terminals name is not removed.
CREATE INDEX terminals_acquirer ON terminals (acquirer) WHERE acquirer <> '';
