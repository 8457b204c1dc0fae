#!/usr/bin/env bash
# Kafka, by Maven: `connectors` gets what Spark reads topics with, `broker` a broker for tests too, `start FOLDER` runs one
# in the foreground on a port of loopback (it prints `servers=…`). Versions are in scripts/kafka/, checksums in the package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
share="${SLUICEGATE_SHARE:-$PWD/.venv/share/sluicegate}"

say() { echo "$*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

need_maven() {
  command -v mvn >/dev/null && return
  if [ "${1:-}" != install ] || ! command -v apt-get >/dev/null || ! as_root true 2>/dev/null; then
    say "Kafka is left out: Maven is not installed. For it: apt-get install maven && scripts/kafka.sh broker"
    return 3
  fi
  say "installing Maven"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven >&2
}

# Nothing is fetched twice, and a half-filled folder is never taken for a whole one.
fetch() {
  local name="$1" target="$share/$1" stamp
  stamp="$(sha256sum "scripts/kafka/$name.xml" | cut -c1-16)"
  [ "$(cat "$target/.stamp" 2>/dev/null)" != "$stamp" ] || return 0
  need_maven "${2:-}"
  say "fetching Kafka's $name"
  rm -rf "$target"
  mkdir -p "$target"
  if ! mvn -q -B -ntp -f "scripts/kafka/$name.xml" dependency:copy-dependencies -DoutputDirectory="$target" >"$target/log" 2>&1; then
    say "Kafka is left out: Maven could not fetch it ($target/log says why)"
    return 3
  fi
  rm -f "$target/log"
  echo "$stamp" >"$target/.stamp"
}

case "${1:-}" in
  connectors) fetch connectors "${2:-}" ;;
  broker) fetch connectors "${2:-}" && fetch broker "${2:-}" ;;
  start) fetch broker install && exec .venv/bin/python -m sluicegate.testing.broker "${2:?a folder}" ;;
  *) say "usage: scripts/kafka.sh connectors [install] | broker [install] | start FOLDER"; exit 2 ;;
esac
