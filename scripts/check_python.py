"""Say what this Python lacks for `make setup`. Kept so plain that an old Python can read it too."""

import importlib.util
import sys


def find_missing():
    """One line for each thing that is missing."""
    if sys.version_info[:2] < (3, 11):  # noqa: UP036 - an older one is what it looks for
        have = ".".join(str(part) for part in sys.version_info[:2])
        return ["Python 3.11 or later is needed and this is " + have + ": say `make setup PYTHON=python3.11`"]
    absent = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    return [
        "Python's `" + name + "` is missing: install the system package `python3-venv`" for name in absent
    ]


if __name__ == "__main__":
    missing = find_missing()
    for line in missing:
        sys.stderr.write(line + "\n")
    sys.exit(1 if missing else 0)
