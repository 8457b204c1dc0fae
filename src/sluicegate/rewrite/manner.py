"""How policy and query are put together where R3 and R9 leave a choice, which the one who runs the system makes.

Merging in the manner of eXACML+ refuses what R3 widens or leaves out: it never gives more, and so is safe for anybody to choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Merge(Enum):
    """WIDEN: a finer window becomes the grant's, and is told (R3). PAPER: rules (1)–(6) of eXACML+, section 3.5."""

    WIDEN = "widen"
    PAPER = "paper"


class OnPartial(Enum):
    """What becomes of a query of which only a part may be given."""

    GIVE = "give"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Manner:
    merge: Merge = Merge.WIDEN
    on_partial: OnPartial = OnPartial.GIVE


USUAL = Manner()
