"""`python -m sluicegate`."""

from __future__ import annotations

import sys

from sluicegate.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
