"""Why the shield denies: the reasons of R13, and those of a state that must stay small. Codes are for arrays and counters."""

from __future__ import annotations

from sluicegate.policy.elements import Reason

RELEASED = 0
_OWN = {
    "forgotten": "the policy it names was let go, to keep the number of policies within its limit",
    "held-too-long": "`ORDER ANY`: more tuples waited for the watermark than are kept",
    "too-many-classes": "the stream has more different policies than are kept apart",
}
"""Beyond R13, each a "no" where R13 might say yes."""
REASONS: tuple[str, ...] = ("released", *(each.value for each in Reason), *_OWN)
"""The word of each code; 0 is no reason."""
_CODES = {word: code for code, word in enumerate(REASONS)}

NO_POLICY = _CODES[Reason.NO_POLICY.value]
WRONG_PRODUCER = _CODES[Reason.WRONG_PRODUCER.value]
LATE = _CODES[Reason.LATE.value]
AMBIGUOUS = _CODES[Reason.AMBIGUOUS.value]
INCOMPLETE = _CODES[Reason.INCOMPLETE.value]
NOT_COVERED = _CODES[Reason.NOT_COVERED.value]
SUPERSEDED = _CODES[Reason.SUPERSEDED.value]
FORGOTTEN = _CODES["forgotten"]
HELD_TOO_LONG = _CODES["held-too-long"]
TOO_MANY_CLASSES = _CODES["too-many-classes"]
