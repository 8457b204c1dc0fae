"""R8 against an attacker who knows linear algebra: whatever is released, no combination isolates a finer stretch."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.policy.entries import Entry, Extent
from sluicegate.policy.ledger import Admitted, Refused, admit, admit_each
from sluicegate.policy.model import Grant, LeastWindow, Privilege, StreamRef, Subject

LENGTH = 16
"""Units of event time, with one unknown value each for every atom of the population."""

Vector = list[Fraction]


class Attacker:
    """Keeps a basis of what the released sums span, in echelon form, each vector with its value."""

    def __init__(self) -> None:
        self.rows: dict[int, Vector] = {}

    def learn(self, weights: Iterable[int], value: int = 0) -> None:
        row = self._reduce([*map(Fraction, weights), Fraction(value)])
        lead = next((at for at, weight in enumerate(row[:-1]) if weight), None)
        if lead is not None:
            self.rows[lead] = [each / row[lead] for each in row]

    def derive(self, weights: Iterable[int]) -> Fraction | None:
        """The value of this combination of the unknowns, if what was released tells it."""
        row = self._reduce([*map(Fraction, weights), Fraction(0)])
        return None if any(row[:-1]) else -row[-1]

    def _reduce(self, row: Vector) -> Vector:
        for lead in range(len(row) - 1):
            if row[lead] and lead in self.rows:
                factor = row[lead]
                row = [ours - factor * theirs for ours, theirs in zip(row, self.rows[lead], strict=True)]
        return row


def stretch(begin: int, end: int, length: int = LENGTH) -> list[int]:
    return [int(begin <= at < end) for at in range(length)]


def released(window: Window, extent: Extent | None, length: int = LENGTH) -> list[tuple[int, int]]:
    """The windows that lie wholly within what was read."""
    begin, end = (0, length) if extent is None else (extent.begin or 0, extent.end or length)
    starts = range(0, length - window.size + 1, window.step)
    return [(at, at + window.size) for at in starts if begin <= at and at + window.size <= end]


def make_grant(name: str, size: int, step: int, rows: bool = False) -> Grant:
    least = LeastWindow(size, step, rows)
    return Grant(name, Subject("Doctor"), Privilege.AGGREGATE, (StreamRef("S", "S"),), least=least)


def make_entry(name: str, window: Window, extent: Extent | None = None) -> Entry:
    return Entry("ann", name, ("S",), AggFunction.SUM, ("S", "x"), window, extent=extent)


sizes = st.integers(1, 8)
extents = st.one_of(
    st.none(),
    st.tuples(st.integers(0, LENGTH - 1), st.integers(1, LENGTH)).map(
        lambda ends: Extent(min(ends), max(*ends, min(ends) + 1))
    ),
)


@st.composite
def policies(draw: st.DrawFn) -> tuple[dict[str, Grant], dict[str, frozenset[int]]]:
    """Up to three grants, each over some of two atoms: populations that are apart, equal, or overlap."""
    grants, populations = {}, {}
    for name in ("a", "b", "c")[: draw(st.integers(1, 3))]:
        size = draw(st.integers(1, 4))
        grants[name] = make_grant(name, size, size)
        populations[name] = draw(st.sampled_from([frozenset({0}), frozenset({1}), frozenset({0, 1})]))
    return grants, populations


@st.composite
def requests(draw: st.DrawFn, grants: dict[str, Grant]) -> list[Entry]:
    asked = []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from(sorted(grants)))
        least = grants[name].least
        assert least is not None
        window = TimeWindow(max(draw(sizes), least.size), max(draw(sizes), least.step))
        asked.append(make_entry(name, window, draw(extents)))
    return asked


def learn_all(entries: Sequence[Entry], populations: dict[str, frozenset[int]]) -> Attacker:
    attacker = Attacker()
    for entry in entries:
        for begin, end in released(entry.window, entry.extent):
            attacker.learn(weigh(populations[entry.grant], begin, end))
    return attacker


def weigh(atoms: frozenset[int], begin: int, end: int) -> list[int]:
    return [weight if atom in atoms else 0 for atom in (0, 1) for weight in stretch(begin, end)]


@given(st.data())
def test_nothing_finer_than_a_grant_is_derived(data: st.DataObject) -> None:
    grants, populations = data.draw(policies())
    given_, _ = admit_each([], data.draw(requests(grants)), grants)
    attacker = learn_all(given_.entries, populations)
    for atoms in (frozenset({0}), frozenset({1}), frozenset({0, 1})):
        finest = max(_finest(grants, populations, atom) for atom in atoms)
        for begin, end in combinations(range(LENGTH + 1), 2):
            if end - begin < finest:
                assert attacker.derive(weigh(atoms, begin, end)) is None, (atoms, begin, end)


def _finest(grants: dict[str, Grant], populations: dict[str, frozenset[int]], atom: int) -> int:
    """The finest stretch of an atom that some grant gives by itself; without one, nothing may be derived."""
    allowed = [each.least.size for name, each in grants.items() if atom in populations[name] and each.least]
    return min(allowed, default=LENGTH + 1)


@given(st.integers(2, 4), st.lists(st.tuples(sizes, sizes), min_size=2, max_size=5))
def test_what_is_derived_is_made_of_cells(least: int, asked: list[tuple[int, int]]) -> None:
    grants = {"g": make_grant("g", least, least)}
    windows = [TimeWindow(max(size, least), max(step, least)) for size, step in asked]
    given_, _ = admit_each([], [make_entry("g", window) for window in windows], grants)
    if len({entry.window for entry in given_.entries}) < 2:
        return
    attacker = learn_all(given_.entries, {"g": frozenset({0})})
    cells = [cell for cell in range(least, 9) if all(_fits(entry.window, cell) for entry in given_.entries)]
    assert cells
    for begin, end in combinations(range(LENGTH + 1), 2):
        if attacker.derive(weigh(frozenset({0}), begin, end)) is not None:
            assert begin % max(cells) == 0
            assert end % max(cells) == 0


def _fits(window: Window, cell: int) -> bool:
    return window.size % cell == 0 and window.step % cell == 0


@given(st.data())
def test_the_grid_that_is_named_is_accepted(data: st.DataObject) -> None:
    grants, _ = data.draw(policies())
    past, refused = admit_each([], data.draw(requests(grants)), grants)
    for each in refused:
        # The answer speaks of the past it was given for: what came before the refused entry.
        answer = admit(past.entries, [each.entry], grants)
        if isinstance(answer, Refused) and answer.grid is not None:
            size, step = (answer.grid.size * data.draw(st.integers(1, 4)) for _ in range(2))
            again = make_entry(each.entry.grant, TimeWindow(size, step), each.entry.extent)
            assert isinstance(admit(past.entries, [again], grants), Admitted)


def _reconstruct(windows: Sequence[Window], values: list[int]) -> list[Fraction | None]:
    """Each single value, where the sums over the windows tell it."""
    attacker = Attacker()
    for window in windows:
        for begin, end in released(window, None, len(values)):
            attacker.learn(stretch(begin, end, len(values)), sum(values[begin:end]))
    return [attacker.derive(stretch(at, at + 1, len(values))) for at in range(len(values))]


def test_three_tuple_windows_would_give_the_stream_away() -> None:
    """Sizes 3, 4, 5 at step 2, the example of the eXACML+ paper: only the first three tuples stay hidden."""
    rng = random.Random(7)
    values = [rng.randint(-50, 50) for _ in range(25)]
    windows = [TupleWindow(size, 2) for size in (3, 4, 5)]
    assert _reconstruct(windows, values)[3:] == values[3:]
    grants = {"g": make_grant("g", 3, 2, rows=True)}
    given_, refused = admit_each([], [make_entry("g", window) for window in windows], grants)
    assert [entry.window for entry in given_.entries] == windows[:1]
    assert [each.code for each in refused] == ["ledger-tuples", "ledger-tuples"]
    assert _reconstruct(windows[:1], values) == [None] * len(values)


def test_three_time_windows_would_give_the_stream_away() -> None:
    rng = random.Random(8)
    values = [rng.randint(-50, 50) for _ in range(25)]
    windows = [TimeWindow(size, 2) for size in (3, 4, 5)]
    assert _reconstruct(windows, values)[3:] == values[3:]
    grants = {"g": make_grant("g", 3, 2)}
    given_, refused = admit_each([], [make_entry("g", window) for window in windows], grants)
    assert [entry.window for entry in given_.entries] == windows[:1]
    assert [each.code for each in refused] == ["ledger-grid", "ledger-grid"]
    assert _reconstruct(windows[:1], values) == [None] * len(values)


def test_a_whole_tells_what_lies_between_two_parts() -> None:
    """Parts that do not overlap each other, each on a common grid with the whole."""
    grants = {"g": make_grant("g", 2, 2)}
    parts = [make_entry("g", TimeWindow(2, 2), Extent(0, 2)), make_entry("g", TimeWindow(3, 3), Extent(3, 6))]
    whole = make_entry("g", TimeWindow(6, 6), Extent(0, 6))
    attacker = learn_all([*parts, whole], {"g": frozenset({0})})
    assert attacker.derive(weigh(frozenset({0}), 2, 3)) is not None
    given_, refused = admit_each([], [*parts, whole], grants)
    assert list(given_.entries) == parts
    assert [each.entry for each in refused] == [whole]
