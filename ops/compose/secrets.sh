#!/bin/sh
# Makes what the compose file needs and no repository may hold: keys, passwords, and certificates to try with. What is
# there already stays as it is. Run it as root (podman: podman unshare ./secrets.sh): each file belongs to the user of
# the container that reads it, and nobody else may (0600).
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets tls
keep() { [ -s "$1" ] || cat > "$1"; }
openssl rand -base64 32 | keep secrets/master.key
openssl rand -hex 32 | keep secrets/operator.token
openssl rand -hex 24 | keep secrets/database.password
openssl rand -hex 24 | keep secrets/owner.password
openssl rand -hex 24 | keep secrets/grafana.password
url='postgres://%s:%s@database/paybell?sslmode=verify-full&sslrootcert=/run/secrets/database-ca\n'
printf "$url" paybell "$(cat secrets/database.password)" | keep secrets/database.url
printf "$url" paybell_owner "$(cat secrets/owner.password)" | keep secrets/owner.url
keep paybell.env <<EOF
DATABASE_URL_FILE=/run/secrets/database-url
PAYBELL_MASTER_KEY_FILE=/run/secrets/master-key
PAYBELL_OPERATOR_TOKEN_FILE=/run/secrets/operator-token
PAYBELL_OPERATOR_HOST=0.0.0.0
PAYBELL_OPERATOR_ADDRESSES=127.0.0.0/8,10.74.20.0/24
PAYBELL_TRUSTED_PROXIES=10.74.20.10
PAYBELL_ACQUIRER=simulator
# Completions of a switch: files in the volume intake, or messages of a topic.
#PAYBELL_INTAKE_FOLDER=/srv/paybell-intake
#PAYBELL_KAFKA_BROKERS=kafka:9092
#PAYBELL_KAFKA_TOPIC=completions
#PAYBELL_KAFKA_TLS=off
EOF
# A certificate of its own name, which signs itself: certificate <name> <file>
certificate() {
  [ -s "tls/$2.key" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj "/CN=$1" \
    -addext "subjectAltName=DNS:$1" -keyout "tls/$2.key" -out "tls/$2.crt" 2> /dev/null
}
certificate localhost paybell
certificate database database
owned() { # by the user of its container
  user=$1
  shift
  chmod 0600 "$@"
  [ "$(id -u)" != 0 ] || chown "$user:$user" "$@"
}
owned 10001 secrets/master.key secrets/operator.token secrets/database.url secrets/owner.url
owned 999 secrets/database.password secrets/owner.password tls/database.key
owned 472 secrets/grafana.password
owned 0 tls/paybell.key paybell.env
# No secrets: every container may read them.
chmod 0644 tls/*.crt
chmod 0755 tls
[ "$(id -u)" = 0 ] || echo 'These files are yours alone: run this as root before the containers start.' >&2
