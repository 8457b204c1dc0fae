"""What was given before decides what may be given now (R8): pure functions over past, asked and grants.

The rule is of linear algebra. A released window of SUM tells the sum of one stretch; what several tell together is
every combination of them. While all sizes and steps are multiples of one cell, each combination is one of cells, and
cells could have been asked for. Several grants may cover the same tuples: then a stretch can be told by all of them
together, and must be one that some of them would have given alone. So for each threshold the windows of all entries
whose grants allow nothing finer than it share a cell no finer than it.

Where R8 leaves room it is read towards "no":
- Extents count by chains: windows on [0, 14) and [15, 210) are told apart by one on [0, 210).
- An attribute has one account, whatever its stream is joined with: a join that leaves a tuple in once gives its value
  again. Rows have one with every input that shares a stream.
- COUNT of any attribute and of rows is one function: where nothing is NULL they are equal. COUNT(DISTINCT) is that too:
  of a key it is the count. So LAST is as MAX and FIRST as MIN: of what only grows they are equal.
- AVG is given in one window and one grouping: averages of a whole and of its parts tell how many are in each part.
- SUM, COUNT and AVG of one attribute make each other up (SUM = AVG · COUNT): where all three are given, the windows
  of AVG lie on the grids of the other two. Over tuple windows the count is known, so SUM and AVG are one function.
- FIRST, LAST, MIN, MAX of a large window follow from those of its cells: they may use the grid.
- Narrowings, join windows and MIN GROUP are matters of a grant, whatever the function; they also bind what other
  grants give of the same function and attribute, and an average with the sums and counts that it makes up: who holds
  the grant option can make another of the same kind.
- A grant that is gone allows nothing finer than what it gave.
- The same event time is told of one population: where a fact or the profile changed, further windows begin behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, inf

from sluicegate.expr.nodes import FALSE, TRUE, Column, Expr, columns, conjoin
from sluicegate.expr.rebuild import substitute
from sluicegate.expr.solve import implies
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import TimeWindow
from sluicegate.policy.entries import (
    AVERAGE,
    AttributeOf,
    Entry,
    Extent,
    find_kind,
    makes_up,
    related,
    repeats,
    same_ledger,
    same_measure,
)
from sluicegate.policy.ledger_words import describe_entry, tell_grid, tell_refusal
from sluicegate.policy.model import Grant, LeastWindow

LEDGER_CODES = {
    "ledger-grid": "windows of one function that share no grid as coarse as the grant",
    "ledger-made-up": "sums or counts that AVG and another function give together, off the grid",
    "ledger-average": "a second window or grouping of AVG on the same event time",
    "ledger-table": "a replay of windows under an aggregate grant over a table whose rows change",
    "ledger-tuples": "a second release beside a tuple window on the same event time",
    "ledger-narrowing": "two narrowings of one grant, or of one function and attribute, that may overlap",
    "ledger-join-window": "two join windows under one grant, or of one function and attribute",
    "ledger-population": "windows that were given before, over another population than then",
    "ledger-min-group": "a second window or grouping beside MIN GROUP on the same event time",
}


@dataclass(frozen=True, slots=True)
class Admitted:
    """All of it may be given; `continues` are past tuple windows whose count goes on instead of beginning anew."""

    entries: tuple[Entry, ...]
    continues: tuple[Entry, ...] = ()
    added: tuple[Entry, ...] = ()
    """Those that this answer put on record, where it is kept: the others were there already."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What cannot be given, beside what, and the grid whose multiples would be accepted, if there is one."""

    code: str
    message: str
    entry: Entry
    past: Entry
    grid: LeastWindow | None = None


def admit(
    past: Sequence[Entry],
    asked: Sequence[Entry],
    grants: Mapping[str, Grant],
    told: Sequence[Entry] | None = None,
    since: int | None = None,
) -> Admitted | Refused:
    """Whether all that is asked may be given beside the past and beside each other (R8).

    `told`: the past, each on the event time that it tells of, where entries of the past say more than that. `since`: no window
    asked for begins before it. What tells of nothing behind it is no pair of what is asked; grids go by the past itself.
    """
    continues: list[Entry] = []
    for at, entry in enumerate(asked):
        if entry.min_group and entry.window.step < entry.window.size:
            message = f"{describe_entry(entry)} cannot be given: under MIN GROUP windows do not overlap"
            return Refused("ledger-min-group", message, entry, entry)
        extent = _find_extent(entry, since)
        pool = [each for each in past if same_ledger(entry, each)]
        near = pool if told is None else [each for each in told if same_ledger(entry, each)]
        repeated = [each for each in pool if entry.counts_tuples and repeats(entry, each)]
        if not any(repeats(entry, each) and each.during.covers(extent) for each in near):
            siblings = [each for each in asked[:at] if same_ledger(entry, each)]
            refused = _check_pairs(entry, extent, [*near, *siblings], grants)
            refused = refused or _check_grids(entry, [*pool, *siblings], grants)
            if refused is not None:
                return refused
        continues += repeated
    return Admitted(tuple(asked), tuple(dict.fromkeys(continues)))


def _find_extent(entry: Entry, since: int | None) -> Extent:
    """The event time that it tells of; of windows of tuples it is not sure that they tell nothing of before they began."""
    begin, end = entry.during.begin, entry.during.end
    if since is None or entry.counts_tuples:
        return entry.during
    return Extent(since if begin is None else max(since, begin), end)


def admit_each(
    past: Sequence[Entry], asked: Iterable[Entry], grants: Mapping[str, Grant]
) -> tuple[Admitted, tuple[Refused, ...]]:
    """What may be given of what is asked, first come first served, and why the rest may not."""
    taken: list[Entry] = []
    continues: list[Entry] = []
    refused: list[Refused] = []
    for entry in asked:
        answer = admit([*past, *taken], [entry], grants)
        if isinstance(answer, Refused):
            refused.append(answer)
        else:
            taken.append(entry)
            continues += [each for each in answer.continues if each not in taken]
    return Admitted(tuple(taken), tuple(dict.fromkeys(continues))), tuple(refused)


@dataclass(frozen=True, slots=True)
class Given:
    """An entry, with the event time on which its population is known to have been told, or may still be."""

    entry: Entry
    extent: Extent


def check_populations(past: Iterable[Given], asked: Iterable[Entry], since: int | None) -> Refused | None:
    """The same event time is told of one population only: two that differ by one member tell that member's part.

    `since`: the windows asked for begin there at the earliest; None: anywhere.
    """
    again = Extent(since, None)
    others = [each for each in past if each.extent.overlaps(again)]
    for entry in asked:
        for each in others:
            if same_ledger(entry, each.entry) and _is_other_population(entry, each.entry):
                message = tell_refusal("ledger-population", entry, each.entry)
                return Refused("ledger-population", message, entry, each.entry)
    return None


def _is_other_population(entry: Entry, other: Entry) -> bool:
    ours, theirs = entry.population, other.population
    same_grant = entry.grant == other.grant and entry.streams == other.streams
    if not same_grant and not related(entry, other):
        return False
    if ours is None or theirs is None:
        # of before populations were recorded: one that names nothing that changes is taken for the same
        return not (ours is theirs or (ours is not None and ours.is_fixed))
    if same_grant:
        return ours.bound != theirs.bound
    known = dict(theirs.values)
    return any(known.get(name, value) != value for name, value in ours.values)


def _check_pairs(
    entry: Entry, extent: Extent, beside: Sequence[Entry], grants: Mapping[str, Grant]
) -> Refused | None:
    """The rules that two entries on common event time keep or break by themselves."""
    for other in beside:
        if not extent.overlaps(other.during):
            continue
        code = _conflict(entry, other, grants)
        if code is not None:
            return Refused(code, tell_refusal(code, entry, other), entry, other)
    return None


def _conflict(entry: Entry, other: Entry, grants: Mapping[str, Grant]) -> str | None:
    same_shape = entry.window == other.window and entry.grouping == other.grouping
    same_streams = entry.streams == other.streams
    alike = same_measure(entry, other)
    bound = (entry.grant == other.grant and same_streams) or related(entry, other)
    if alike and (entry.counts_tuples or other.counts_tuples) and not _same_tuples(entry, other):
        return "ledger-tuples"
    if alike and entry.function is AggFunction.AVG and not same_shape:
        return "ledger-average"
    if bound and (entry.min_group or other.min_group) and not same_shape:
        return "ledger-min-group"
    if same_streams and bound and not _same_joins(entry, other, grants):
        return "ledger-join-window"
    if bound and not _narrowed_apart(entry, other, grants):
        return "ledger-narrowing"
    return None


def _same_tuples(left: Entry, right: Entry) -> bool:
    """One count of one population: the same tuples are in each window."""
    return (left.grant, left.streams, left.window, left.grouping, left.narrowing, left.join_windows) == (
        right.grant,
        right.streams,
        right.window,
        right.grouping,
        right.narrowing,
        right.join_windows,
    )


def _same_joins(left: Entry, right: Entry, grants: Mapping[str, Grant]) -> bool:
    """The same pairs; under two grants that name their streams in another order, only where all windows are alike."""
    if left.join_windows != right.join_windows:
        return False
    alike = left.grant == right.grant or len(set(left.join_windows)) <= 1
    return alike or (_places(left, grants) is not None and _places(left, grants) == _places(right, grants))


def _places(entry: Entry, grants: Mapping[str, Grant]) -> tuple[str, ...] | None:
    """The streams in the grant's order; None where that is not known, or one stands there twice."""
    grant = grants.get(entry.grant)
    if grant is None or grant.stream_names != entry.streams or len(set(entry.streams)) < len(entry.streams):
        return None
    return tuple(ref.stream for ref in grant.streams)


def _narrowed_apart(left: Entry, right: Entry, grants: Mapping[str, Grant]) -> bool:
    """The same population, or two that share no tuple; what the solver cannot tell is neither (R7)."""
    if left.narrowing == right.narrowing == TRUE:
        return True
    if left.grant == right.grant and left.streams == right.streams:
        return _are_apart(left.narrowing, right.narrowing)
    ours, theirs = _narrow_streams(left, grants), _narrow_streams(right, grants)
    return ours is not None and theirs is not None and _are_apart(ours, theirs)


def _are_apart(left: Expr, right: Expr) -> bool:
    if left == right or implies(conjoin(left, right), FALSE):
        return True
    return implies(left, right) and implies(right, left)


def _narrow_streams(entry: Entry, grants: Mapping[str, Grant]) -> Expr | None:
    """The narrowing, of streams instead of a grant's aliases; None where it is not known which they mean."""
    if entry.narrowing == TRUE:
        return TRUE
    grant = grants.get(entry.grant)
    if len(entry.streams) == 1:
        named = {each.qualifier: entry.streams[0] for each in columns(entry.narrowing)}
    elif grant is not None and _places(entry, grants) is not None:
        named = {ref.alias: ref.stream for ref in grant.streams}
    else:
        return None
    found = columns(entry.narrowing)
    if not all(each.qualifier in named for each in found):
        return None
    return substitute(
        entry.narrowing, {each: Column(named[each.qualifier], each.name, each.of) for each in found}
    )


def _check_grids(entry: Entry, beside: Sequence[Entry], grants: Mapping[str, Grant]) -> Refused | None:
    timed = [each for each in beside if not each.counts_tuples]
    if entry.counts_tuples:
        return None
    alike = [each for each in timed if same_measure(entry, each)]
    off = _off_grid(entry, alike, grants)
    if off is not None:
        grid = _find_grid(entry, alike, grants)
        return Refused("ledger-grid", tell_grid(entry, off, grid), entry, off, grid)
    return _check_made_up(entry, _chain(entry, [each for each in timed if makes_up(entry, each)]), grants)


def _check_made_up(entry: Entry, related: Sequence[Entry], grants: Mapping[str, Grant]) -> Refused | None:
    """Where SUM, COUNT and AVG of an attribute are all given, AVG's windows lie on the grids of the others."""
    together = (entry, *related)
    for attribute in {each.attribute for each in together if each.function is AggFunction.AVG}:
        for function in (AggFunction.SUM, AggFunction.COUNT):
            parts = [each for each in together if _is_part(each, function, attribute)]
            if not _is_made_up(together, attribute):
                continue
            lead = max(parts, key=lambda each: (_threshold(each, grants), each is entry))
            off = _off_grid(lead, [each for each in parts if each is not lead], grants)
            if off is not None:
                past = off if lead is entry else lead
                return Refused("ledger-made-up", tell_refusal("ledger-made-up", entry, past), entry, past)
    return None


def _is_made_up(entries: Iterable[Entry], attribute: AttributeOf | None) -> bool:
    given = {
        find_kind(each)
        for each in entries
        if find_kind(each) is AggFunction.COUNT or each.attribute == attribute
    }
    return given >= AVERAGE


def _is_part(entry: Entry, function: AggFunction, attribute: AttributeOf | None) -> bool:
    """The function itself, or the average that gives it."""
    if find_kind(entry) is AggFunction.COUNT:
        return function is AggFunction.COUNT
    return entry.function in (function, AggFunction.AVG) and entry.attribute == attribute


def _chain(entry: Entry, others: Sequence[Entry]) -> list[Entry]:
    """Those on event time that overlaps the entry's, or that of one so reached: a sweep by the beginnings."""
    run: list[Entry] = []
    end = -inf
    for each in sorted((entry, *others), key=_begin):
        if _begin(each) >= end:
            if any(reached is entry for reached in run):
                break
            run = []
        run.append(each)
        end = max(end, inf if each.during.end is None else each.during.end)
    return [each for each in run if each is not entry]


def _begin(entry: Entry) -> float:
    return -inf if entry.during.begin is None else entry.during.begin


def _off_grid(entry: Entry, family: Sequence[Entry], grants: Mapping[str, Grant]) -> Entry | None:
    """An entry whose window cannot stand beside this one, or None.

    One check for each threshold up to the entry's own: what allows nothing finer shares a cell no finer.
    """
    own = _threshold(entry, grants)
    for level in sorted({own, *(_threshold(each, grants) for each in family)}):
        if level > own:
            break
        strict = _chain(entry, [each for each in family if _threshold(each, grants) >= level])
        others = [each for each in strict if each.window != entry.window]
        if others and _cell([entry, *strict]) < level:
            return others[0]
    return None


def _threshold(entry: Entry, grants: Mapping[str, Grant]) -> int:
    """The finest cell that the entry's grant gives, 0 for any; never coarser than what was given already."""
    shown = max(entry.window.size, entry.window.step)
    grant = grants.get(entry.grant)
    if grant is None:
        return shown
    if grant.least is None or grant.least.size == grant.least.step == 0:
        return 0
    return shown if grant.least.rows else min(shown, max(grant.least.size, grant.least.step))


def _cell(entries: Iterable[Entry]) -> int:
    return gcd(*(extent for each in entries for extent in (each.window.size, each.window.step)))


def _find_grid(entry: Entry, family: Sequence[Entry], grants: Mapping[str, Grant]) -> LeastWindow | None:
    """The finest grid found on which this entry's windows would be accepted; tried, not just computed."""
    grant = grants.get(entry.grant)
    least = max(grant.least.size, grant.least.step) if grant and grant.least else 1
    cells = {_cell([each]) for each in family} | {_cell(family)}
    tries = {divisor * -(-least // divisor) for cell in cells for divisor in _divisors(cell)}
    for size in sorted(tries):
        probe = replace(entry, window=TimeWindow(size, size))
        if _off_grid(probe, family, grants) is None and _is_grid(probe, family, grants):
            return LeastWindow(size, size)
    return None


def _is_grid(probe: Entry, family: Sequence[Entry], grants: Mapping[str, Grant]) -> bool:
    """Not accepted for being identical alone: a multiple is accepted too."""
    double = replace(probe, window=TimeWindow(2 * probe.window.size, probe.window.step))
    return _off_grid(double, family, grants) is None


def _divisors(number: int) -> set[int]:
    """Of what is left after small primes only the whole: a grid must be a divisor, not the least one."""
    found = {1}
    prime = 2
    while prime * prime <= number and prime < 10_000:
        while number % prime == 0:
            found |= {each * prime for each in found}
            number //= prime
        prime += 1
    return found | {each * number for each in found}
