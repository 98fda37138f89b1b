-- The queue and the origin of each command that has a callback URL of its own; written with the settings.
ALTER TABLE partners ADD COLUMN registered_routes jsonb NOT NULL DEFAULT '{}';
