#!/bin/sh
# Makes what the compose file needs and no repository may hold: keys, a password, and a certificate to try with. What is
# there already stays as it is.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets tls
[ -s secrets/master.key ] || openssl rand -base64 32 > secrets/master.key
[ -s secrets/database.password ] || openssl rand -hex 24 > secrets/database.password
if [ ! -s paybell.env ]; then
  cat > paybell.env <<EOF
DATABASE_URL=postgres://paybell:$(cat secrets/database.password)@database/paybell
PAYBELL_MASTER_KEY_FILE=/run/secrets/master-key
PAYBELL_OPERATOR_TOKEN=$(openssl rand -hex 32)
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
fi
if [ ! -s tls/paybell.key ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout tls/paybell.key -out tls/paybell.crt 2> /dev/null
fi
# Read by the containers' own users: the folder keeps everybody else out.
chmod 0644 secrets/* tls/*
