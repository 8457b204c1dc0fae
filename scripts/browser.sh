#!/usr/bin/env bash
# The browser for tests of the console: `find` prints its path, `install` gets Debian's chromium where that is allowed.
set -euo pipefail

find_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" && return
  done
  return 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_browser() {
  find_browser && return
  if ! command -v apt-get >/dev/null || ! as_root true 2>/dev/null; then
    echo "chromium is not installed, and may not be installed from here: sudo scripts/browser.sh install" >&2
    return 3
  fi
  echo "installing chromium" >&2
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
  find_browser
}

case "${1:-}" in
  find) find_browser ;;
  install) install_browser ;;
  *) echo "usage: scripts/browser.sh find | install" >&2; exit 2 ;;
esac
