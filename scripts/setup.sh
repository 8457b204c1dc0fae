#!/usr/bin/env bash
# Make .venv from a plain Python and the lock file: `scripts/setup.sh [python]`, run from the project's root.
set -euo pipefail
python="${1:-python3}"
venv="$PWD/.venv"

if ! command -v "$python" >/dev/null; then
  echo "\`$python\` is not on PATH: install Python 3.11 or later, or say \`make setup PYTHON=/path/to/python3\`" >&2
  exit 1
fi
"$python" scripts/check_python.py

export PIP_DISABLE_PIP_VERSION_CHECK=1
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv "$venv"
"$venv/bin/python" -m uv --version >/dev/null 2>&1 || "$venv/bin/python" -m pip install --quiet 'uv>=0.9,<1'

# A user without a home that can be written still gets a cache.
cache="${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-$venv}/.cache}/uv}"
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache="$venv/.uv-cache"

# Inexact, since uv itself is in .venv and not in the lock file.
unset VIRTUAL_ENV
UV_CACHE_DIR="$cache" UV_PROJECT_ENVIRONMENT="$venv" UV_PYTHON="$venv/bin/python" UV_PYTHON_DOWNLOADS=never \
  "$venv/bin/python" -m uv sync --frozen --inexact --no-progress --quiet
