"""Punctuated streams as bounded input: all elements are judged first, in the driver, and the query runs on what is released."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.expr.nodes import Literal
from sluicegate.graph.operators import shields
from sluicegate.graph.plan import AuthorizedPlan
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.classes import PolicyClass
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import PARTITION, SENDER, find_sender_column, find_trusted
from sluicegate.runtime.feed.log_files import POLICY
from sluicegate.runtime.feed.misfits import PROBLEM, RAW
from sluicegate.runtime.feed.source_log import SourceLog
from sluicegate.runtime.frames import arrow_schema
from sluicegate.runtime.shield.shield import Shield
from sluicegate.runtime.shield.verdicts import Judge, Verdicts

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 1 << 20
"""Elements that are judged in one piece; how they are cut does not matter."""


@dataclass(frozen=True, slots=True)
class Released:
    """The tuples that name a policy which holds for them, each with its class (`_policy`); the classes by number."""

    rows: pa.Table
    classes: tuple[PolicyClass, ...]
    denied: Mapping[str, int] = field(default_factory=dict)
    """How many elements were not released, by reason: for the stream's owner."""


def judge_elements(
    stream: Stream, catalog: Catalog, elements: pa.Table, trusted: str | None = None
) -> Released:
    """Elements in order of arrival: the attributes and what `feed.carriage` lists. At their end nothing waits any more.

    `trusted` is the sender that is not asked for a grant, where it is not whom the stream's declaration stands for.
    """
    import pyarrow as pa

    trusted = find_trusted(stream) if trusted is None else trusted
    elements = add_origin(stream, elements)
    found = []
    with tempfile.TemporaryDirectory(prefix="sluicegate-shield-") as folder:
        shield = Shield(SourceLog(Path(folder), stream), lambda: catalog)
        for number, begin in enumerate(range(0, max(elements.num_rows, 1), AT_ONCE)):
            taken = shield.take(elements.slice(begin, AT_ONCE), number, trusted)
            shield.settle(number, shield.prune(taken))
            found.append(taken.rows)
        last = shield.end(len(found))
        found.append(last.rows)
        return Released(pa.concat_tables(found), shield.classes.read(), dict(last.state.denied))


def release_nothing(stream: Stream) -> Released:
    """Of a stream without input."""
    import pyarrow as pa

    return Released(arrow_schema(stream).append(pa.field(POLICY, pa.int64())).empty_table(), ())


def add_origin(stream: Stream, elements: pa.Table) -> pa.Table:
    """With the columns that a feed adds, where they are missing: sender, partition, and what was wrong with the element."""
    import pyarrow as pa

    column, trusted = find_sender_column(stream), find_trusted(stream)
    nothing = pa.nulls(elements.num_rows, pa.string())
    if SENDER not in elements.column_names:
        sender = pa.repeat(pa.scalar(trusted, pa.string()), elements.num_rows)
        if column is not None:
            sender = elements[column].cast(pa.string())
        elements = elements.append_column(SENDER, sender)
    for name in (PARTITION, PROBLEM, RAW):
        if name not in elements.column_names:
            elements = elements.append_column(name, nothing)
    return elements


def judge_plan(
    plan: AuthorizedPlan, released: Mapping[str, Released], streams: Mapping[str, Stream]
) -> dict[str, Verdicts]:
    """For each punctuated stream of a plan with constants the verdicts that its shields need."""
    asked: dict[str, list[str]] = {}
    for each in shields(plan.root):
        text = str(each.who.value) if isinstance(each.who, Literal) else ""
        asked.setdefault(each.input.stream, []).append(text)
    return {name: Judge(streams[name]).judge(released[name].classes, texts) for name, texts in asked.items()}
