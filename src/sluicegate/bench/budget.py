"""A bound on how long a measurement of several parts takes: what no longer fits is left out, and said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter


@dataclass
class Budget:
    """Each part may begin until its share of the seconds is over, so that one part cannot take the time of all behind it."""

    seconds: float
    clock: Callable[[], float] = perf_counter
    cut: list[str] = field(default_factory=list)
    """What was left out."""

    def __post_init__(self) -> None:
        self._begun = self.clock()

    @property
    def spent(self) -> float:
        return self.clock() - self._begun

    @property
    def left(self) -> float:
        return max(self.seconds - self.spent, 0.0)

    def is_over(self, share: float) -> bool:
        """Whether so much of the whole time has gone."""
        return self.spent > share * self.seconds

    def allows(self, what: str, share: float) -> bool:
        """Whether it may begin; where not, that is noted."""
        if self.is_over(share):
            self.cut.append(what)
            return False
        return True
