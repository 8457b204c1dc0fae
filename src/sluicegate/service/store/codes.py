"""Diagnostic codes of the store."""

from __future__ import annotations

STORE_CODES = {
    "backup-damaged": "a backup is not whole, or not as it was written; nothing of it was restored",
    "export-folder": "a folder cannot be written to, or holds statements that an export would stand beside",
    "store-busy": "another process holds the store, and did not let go in time; nothing was changed",
    "store-conflict": "the catalog changed since the version that a change was made for; nothing was changed",
    "store-damaged": "an entry of the store is not as it was written, so nothing is read from it",
    "store-driver": "the library that speaks to this kind of store is not installed",
    "store-missing": "there is no store at this place",
    "store-newer": "the store was made by a newer release, whose tables this one does not know",
    "store-no-way": "no statements lead from one state of the catalog to the other",
    "store-not-empty": "the store has a catalog already, and is never merged with another",
    "store-nothing": "the text has no statement, so there is no change to store",
    "store-too-large": "a statement would be too long to be read again",
    "store-unchanged": "the catalog is as wanted already",
    "store-unreadable": "the store cannot be reached, read or written",
    "store-unsure": "the connection broke while a change was stored: look whether it is there before it is made again",
    "store-url": "the place of the store is not written as a file or as `postgresql://…`",
    "store-version": "the store has no such version",
}
