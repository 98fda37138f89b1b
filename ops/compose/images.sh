#!/bin/sh
# Pins the images of the compose file: writes the digest that each tag has now into .env, which compose reads. Keep that
# file; a later run with another tag, or after a security fix, is how an image changes.
set -eu
cd "$(dirname "$0")"
pin() {
  digest=$(docker buildx imagetools inspect "$2" --format '{{.Manifest.Digest}}')
  case $digest in sha256:*) echo "$1=${2%:*}@$digest" ;; *) echo "$2 has no digest" >&2; exit 1 ;; esac
}
{
  pin NODE_IMAGE docker.io/library/node:26-bookworm-slim
  pin POSTGRES_IMAGE docker.io/library/postgres:18
  pin NGINX_IMAGE docker.io/library/nginx:1.28
  pin PROMETHEUS_IMAGE docker.io/prom/prometheus:v3.5.0
  pin GRAFANA_IMAGE docker.io/grafana/grafana:12.1.0
} > .env.new
mv .env.new .env
