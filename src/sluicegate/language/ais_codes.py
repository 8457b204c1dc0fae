"""The codes of AIS feeds: what a declaration may not say, and why a sentence is a dead letter."""

from __future__ import annotations

AIS_CODES = {
    "ais-option": "an option of `FROM ais` that is unknown, missing, or not of its form",
    "ais-attribute": "an attribute of a stream `FROM ais` that its messages do not have, or of another type",
    "ais-stream": "a clause that a stream `FROM ais` cannot have, or one that it lacks",
    "ais-checksum": "a sentence without a checksum, or with one that is not that of its text",
    "ais-decode": "a message that cannot be decoded as its type says",
    "ais-fields": "a sentence of AIS that lacks a field, or has a number out of range",
    "ais-incomplete": "a part of a message whose other parts did not come",
    "ais-junk": "text that is no sentence",
    "ais-long": "a line above 1,024 bytes; its beginning is kept",
    "ais-no-time": "a message without a time, in a log that had none before it either",
    "ais-other": "a sentence that carries no message of AIS",
    "ais-overrun": "text that came faster than it could be decoded, and was not kept",
    "ais-payload": "a payload that is empty, too long, or not in the alphabet of six bits",
    "ais-pghp": "a `$PGHP` line whose time cannot be read",
    "ais-short": "a message that ends before the fields that its stream has",
    "ais-tag": "a tag block that cannot be read, or fails its checksum; the sentence behind it is read without",
    "ais-time-ahead": "a message whose log is more than a minute ahead of the clock",
    "ais-type": "a message of a type that AIS does not have",
}
