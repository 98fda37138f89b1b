#!/bin/sh
# Runs once, when the database is made: the role of the instances, which does not own the schema.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=password="$(cat /run/secrets/database-password)" <<'EOF'
CREATE ROLE paybell LOGIN PASSWORD :'password';
EOF
