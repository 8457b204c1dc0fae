"""What a gateway is asked to serve, and what its readers must have of it."""

from __future__ import annotations

from random import Random

from sluicegate.language.load import read_catalog
from sluicegate.testing.changes.judge import Judge
from sluicegate.testing.changes.policies import Change, People, change_fact, choose_change, write_catalog
from sluicegate.testing.changes.world import WATERMARK, WINDOW, Input, Settings, Story
from sluicegate.testing.load.readers import Reading
from sluicegate.testing.load.whole import ROWS, Whole

Batch = dict[str, list[tuple[int, int, str, int]]]
_FACTS = 0.05


class World:
    """The policies of now, the input, and the versions that there were; everything random comes out of the seed."""

    def __init__(self, seed: int, people: People) -> None:
        self.rng = Random(seed)  # noqa: S311 — repeatable
        self.people = people
        text, settings = write_catalog(people)
        self.catalog = read_catalog(text)
        self.input, self.story = Input(seed), Story()
        self.story.begin(settings, self.input.greatest)
        self.story.end(self.story.begun, self.input.made)
        self._pushed: dict[int, int] = {}

    @property
    def batches(self) -> int:
        """How many were made."""
        return len(self._pushed)

    def make_batch(self) -> Batch:
        self._pushed[self.batches] = self.story.done
        return self.input.make_batch(ROWS)

    def now(self) -> dict[str, Settings]:
        return {user: self.story.now(user) for user in self.people.changed}

    def choose_change(self) -> Change:
        """Mostly of one user."""
        if self.rng.random() < _FACTS:
            return change_fact(self.rng, self.catalog, self.now(), self.people)
        user = self.rng.choice(self.people.changed)
        return choose_change(self.rng, self.catalog, self.now(), user, self.people)

    def make_reading(self, user: str, shape: str, handle: str, token: str) -> Reading:
        """For a reader of a query that was registered just now."""
        judge = Judge(user, shape, self.story, self.input)
        whole = Whole(judge, self._pushed, self.batches)
        return Reading(user, shape, handle, token, self.story, judge, whole)

    def has_all(self, reading: Reading) -> bool:
        """Whether a reader has all that must have come by now."""
        if reading.user in self.people.steady and reading.judge.find_missing(self._watermark()):
            return False
        return reading.whole.is_whole(self._find_end(reading), self.story.done)

    def settle(self, reading: Reading) -> None:
        """At the end: complain of what is missing."""
        if reading.user in self.people.steady:
            missing = reading.judge.find_missing(self._watermark())
            if missing:
                reading.complain(f"{len(missing)} differ in the end: {missing[:3]}")
        reading.whole.settle(self._find_end(reading), self.story.done, self.story.done)
        if reading.ended:
            reading.complain(f"it ended with {reading.ended}")

    def _watermark(self) -> int:
        return self.input.greatest - WATERMARK

    def _find_end(self, reading: Reading) -> int:
        """The place up to which everything came in."""
        return self._watermark() // WINDOW * WINDOW if reading.shape == "sums" else self.batches
