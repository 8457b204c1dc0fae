"""Diagnostic codes of the kept ledger: here, below `runtime`, so that they can be read without it."""

from __future__ import annotations

LEDGER_STORE_CODES = {
    "ledger-busy": "another process keeps the ledger of this folder",
    "ledger-unreadable": "what was given before cannot be read or added to, so nothing is given that depends on it",
}
