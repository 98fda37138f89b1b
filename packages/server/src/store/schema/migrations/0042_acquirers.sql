-- Acquirers beside the one of the settings. Their keys are sealed, in sealed_values under `acquirer <name>`.
CREATE TABLE acquirers (
  name         text PRIMARY KEY,
  -- As it was given: the JSON of the host's profile.
  profile      text NOT NULL,
  hosts        text[] NOT NULL,
  tls          boolean NOT NULL,
  -- PEM; empty: none.
  ca           text NOT NULL,
  certificate  text NOT NULL,
  -- Of each change a new one: instances open the link anew when they see it.
  version      uuid NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  updated_at   timestamptz NOT NULL DEFAULT now()
);
