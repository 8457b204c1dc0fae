#!/usr/bin/env bash
# A PostgreSQL server to throw away, for tests: `install`, `start` (prints its folder and URL), `stop FOLDER`.
# It listens on a socket in its own folder only, and runs as somebody who is not root.
set -euo pipefail

say() { echo "$*" >&2; }

find_server() {
  local found
  for found in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb; do
    [ -x "$found" ] && dirname "$found"
  done | tail -n 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_server() {
  [ -z "$(find_server)" ] || return 0
  if ! command -v apt-get >/dev/null || ! as_root true 2>/dev/null; then
    say "PostgreSQL is not installed, and may not be installed from here: sudo scripts/services.sh install"
    return 3
  fi
  say "installing PostgreSQL"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >&2
}

# The server refuses to run as root.
as_server() {
  if [ "$(id -u)" != 0 ]; then
    "$@"
  else
    (cd / && setpriv --reuid="$owner" --regid="$(id -g "$owner")" --clear-groups env HOME="$folder" "$@")
  fi
}

start_server() {
  install_server
  local bin folder owner
  bin="$(find_server)"
  owner="$(id -un)"
  [ "$(id -u)" != 0 ] || owner="$(id -un postgres 2>/dev/null || echo nobody)"
  folder="$(mktemp -d "${TMPDIR:-/tmp}/sluicegate-pg.XXXXXX")"
  touch "$folder/sluicegate-throw-away"
  [ "$(id -u)" != 0 ] || chown -R "$owner" "$folder"
  as_server "$bin/initdb" -D "$folder/data" -U sluicegate -A trust -E UTF8 --locale=C --no-sync >/dev/null
  as_server "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 60 start >&2 \
    -o "-k $folder -c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=60"
  echo "folder=$folder"
  echo "url=postgresql://sluicegate@/postgres?host=$folder"
}

stop_server() {
  local folder="$1" owner
  [ -f "$folder/sluicegate-throw-away" ] || { say "$folder is not a server of ours"; return 1; }
  owner="$(stat -c %U "$folder")"
  as_server "$(find_server)/pg_ctl" -D "$folder/data" -m immediate -w stop >&2 || true
  rm -rf "$folder"
}

case "${1:-}" in
  install) install_server ;;
  start) start_server ;;
  stop) stop_server "${2:?the folder that start printed}" ;;
  *) say "usage: scripts/services.sh install | start | stop FOLDER"; exit 2 ;;
esac
