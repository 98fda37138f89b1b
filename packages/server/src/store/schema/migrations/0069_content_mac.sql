--! homes
-- The MAC covers partner, id, command, URL and content, under a key that the database does not have. A row of an older
-- version has none.
ALTER TABLE notifications ADD COLUMN content_mac bytea;
