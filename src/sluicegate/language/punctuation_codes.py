"""Codes of what is wrong with a punctuation that a producer sent; it is refused, and the stream goes on."""

from __future__ import annotations

PUNCTUATION_CODES: dict[str, str] = {
    "sp-form": "a punctuation that is not an object of the parts that it must have",
    "sp-forged": "a punctuation from somebody who may not punctuate the tuples that it describes",
    "sp-future": "a punctuation whose ts lies beyond its arrival",
    "sp-models": "a punctuation that names subjects of several models",
    "sp-number": "a punctuation whose sequence number is not 1 or more",
    "sp-pattern": "a punctuation with a pattern that cannot be read, or that its stream's tuples cannot match",
    "sp-size": "a punctuation that is longer, or names more, than is read",
    "sp-time": "a punctuation whose ts is no timestamp",
    "sp-unknown-attribute": "a punctuation for an attribute that no stream has",
    "sp-unknown-stream": "a punctuation for a stream that does not exist",
    "sp-unknown-subject": "a punctuation for a role or user that does not exist",
}
