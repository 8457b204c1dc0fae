"""What the readers took, against an undisturbed run and the reference model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from sluicegate.expr.nodes import Value
from sluicegate.testing.differential import as_bag
from sluicegate.testing.recovery.reader import Taken, read_taken
from sluicegate.testing.recovery.world import CHANGED, POLICY, QUERIES, WITHDRAWN, World, find_model_rows

Row = Mapping[str, Value]
_UNTOUCHED = ("kept", "others", "judged", "waited")
_PASSED = ("rows", "sums", "pairs")


def check_same(world: World, taken: Path, baseline: Path | None) -> list[str]:
    """No row lost, doubled or added. Without a baseline the model is one."""
    problems = []
    for handle in QUERIES:
        found = _read(taken, handle)
        wanted = _rows(_read(baseline, handle)) if baseline is not None else find_model_rows(world, handle)
        problems += _compare(handle, found, wanted)
    return problems


def _compare(handle: str, found: list[Taken], wanted: Iterable[Row]) -> list[str]:
    problems = [f"{handle}: {each.other}" for each in found if each.other]
    got, model = as_bag(_rows(found)), as_bag(wanted)
    if got != model:
        problems.append(f"{handle}: lost {list(model - got)[:3]}, not expected {list(got - model)[:3]}")
    return problems


def check_changed(world: World, taken: Path, change_at: int) -> list[str]:
    """After a change while no process ran: nothing of the old version is handed over, and what does not depend on it is whole."""
    problems = []
    for handle in _UNTOUCHED:
        problems += _compare(handle, _read(taken, handle), find_model_rows(world, handle))
    for handle in QUERIES:
        found = _read(taken, handle)
        before = [each for each in found if each.run < change_at]
        after = [each for each in found if each.run >= change_at]
        problems += _find_extra(world, handle, before, POLICY) + _find_extra(world, handle, after, CHANGED)
    return problems + _check_withdrawn(taken, change_at) + _check_place(world, taken)


def _find_extra(world: World, handle: str, found: list[Taken], policy: str) -> list[str]:
    """Rows that the version does not give, or not so often."""
    if handle == "threes":
        extra = as_bag(_rows(found)) - as_bag(_list_threes(world, policy))
    elif handle in WITHDRAWN and policy is CHANGED:
        extra = as_bag(_rows(found))
    else:
        extra = as_bag(_rows(found)) - as_bag(find_model_rows(world, handle, policy))
    return [f"{handle}: {list(extra)[:3]} is not allowed"] if extra else []


def _list_threes(world: World, policy: str) -> list[Row]:
    """Any three rows in a row: where the count begins after a change is not told."""
    kind = world.catalog(policy).users["ann"].attribute("Kind")
    rows = [row for row in world.data["S"] if kind is not None and row["kind"] == kind.value]
    parts = [rows[at : at + 3] for at in range(len(rows) - 2)]
    return [
        {
            "low": min(row["id"] for row in part),
            "t": sum(row["n"] for row in part),
            "last": max(enumerate(part), key=lambda each: (each[1]["ts"], each[0]))[1]["id"],
        }
        for part in parts
    ]


def _check_withdrawn(taken: Path, change_at: int) -> list[str]:
    """Its readers are told, once and last (R12)."""
    problems = []
    for handle in sorted(WITHDRAWN):
        found = _read(taken, handle)
        told = Counter(each.other for each in found if each.run >= change_at)
        if told != Counter(["Withdrawn"]) or found[-1].other != "Withdrawn":
            problems.append(f"{handle}: told {dict(told)} after it was withdrawn")
    return problems


def _check_place(world: World, taken: Path) -> list[str]:
    """The query goes on where it was: rows of the old version, then those of the new one from some place on (R11)."""
    found = _read(taken, "rows")
    ids = {row["id"] for row in _rows(found)}
    wanted = {
        policy: {row["id"] for row in find_model_rows(world, "rows", policy)} for policy in (POLICY, CHANGED)
    }
    has_gap = any("Gap" in each.other for each in found)
    for place in range(len(world.data["S"]) + 1):
        old = {each for each in wanted[POLICY] if _number(each) < place}
        new = {each for each in wanted[CHANGED] if _number(each) >= place}
        if ids == old | new or (has_gap and new <= ids <= old | new):
            return []
    return ["rows: what was taken is not that of one version up to a place and of the other from there on"]


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _read(folder: Path, handle: str) -> list[Taken]:
    return read_taken(folder / f"{handle}.jsonl")


def _rows(found: Iterable[Taken]) -> list[Row]:
    return [row for each in found for row in each.rows]


def count_rows(folder: Path) -> int:
    return sum(len(_rows(_read(folder, handle))) for handle in QUERIES)
