"""What the uniting passes hand to each other: ways to see rows, and what those ways show (R4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sluicegate.expr.labels import MERGE_LABELS
from sluicegate.expr.nodes import (
    FALSE,
    TRUE,
    Call,
    Case,
    Column,
    Expr,
    Literal,
    Not,
    conjoin,
    disjoin,
)
from sluicegate.expr.types import BOOLEAN, STRING
from sluicegate.graph.operators import (
    WINDOW_END,
    WINDOW_START,
    Field,
    Item,
    Node,
    Project,
    Union,
    field_of,
    roles_field,
)
from sluicegate.rewrite.shielding import EVERY_ROLE

Assignment = frozenset[tuple[str, str]]
"""(stream, grant) for streams whose occurrences must use one grant."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A way in which a row may be seen: when, with which columns, under which grant of each linked stream."""

    when: Expr
    shown: frozenset[Column]
    assigned: Assignment = frozenset()
    grants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Factor:
    """Alternatives for some columns of a row; those of different factors combine freely."""

    scope: frozenset[Column]
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a way: None where it is never shown; `shown` is TRUE where it always is."""

    expr: Expr | None
    shown: Expr = TRUE


@dataclass(frozen=True)
class Way:
    """Rows that may be released: a node, what each output is there, the grants' label, flags of linked streams."""

    node: Node
    outputs: tuple[Output, ...]
    label: Expr | None = None
    flags: Mapping[tuple[str, str], Expr] = field(default_factory=dict)
    grants: frozenset[str] = frozenset()
    roles: Expr | None = None
    """What the policies behind a row allow together (R15); None where its tuples have no policies."""


@dataclass(frozen=True)
class Lowered:
    """A tree turned into operators, before its rows are shown to anybody."""

    node: Node
    factors: tuple[Factor, ...] = ()
    hidden: frozenset[Column] = frozenset()
    """Leaf columns that no row shows."""
    companions: Mapping[Column, Expr] = field(default_factory=dict)
    """Leaf columns of aggregates and unions that some rows withhold, with the column that tells which."""
    labels: tuple[Expr, ...] = ()
    grants: frozenset[str] = frozenset()
    roles: tuple[Expr, ...] = ()
    """Of each part that has policies."""
    allowed: Mapping[Column, Column] = field(default_factory=dict)
    """Leaf columns that a tuple's policy may hide, with the flag that tells."""


def two_valued(predicate: Expr) -> Expr:
    """TRUE or FALSE: a flag may be negated, and NOT NULL would lose rows."""
    return predicate if predicate in (TRUE, FALSE) else Case(((predicate, TRUE),), FALSE)


def merge_factors(factors: Sequence[Factor], keep: frozenset[str]) -> Factor:
    """All consistent combinations as one factor; of the linked streams only `keep` stay assigned."""
    merged = Factor(frozenset(), (Alternative(TRUE, frozenset()),))
    for factor in factors:
        pairs = [
            _combine(left, right)
            for left in merged.alternatives
            for right in factor.alternatives
            if _consistent(left.assigned | right.assigned)
        ]
        merged = Factor(merged.scope | factor.scope, tuple(pairs))
    return Factor(merged.scope, gather(merged.alternatives, keep))


def _combine(left: Alternative, right: Alternative) -> Alternative:
    return Alternative(
        conjoin(left.when, right.when),
        left.shown | right.shown,
        left.assigned | right.assigned,
        tuple(dict.fromkeys((*left.grants, *right.grants))),
    )


def _consistent(assigned: Assignment) -> bool:
    return len({stream for stream, _ in assigned}) == len(assigned)


def gather(alternatives: Iterable[Alternative], keep: frozenset[str]) -> tuple[Alternative, ...]:
    """Alternatives that show and assign the same become one."""
    groups: dict[tuple[frozenset[Column], Assignment], Alternative] = {}
    for each in alternatives:
        assigned = frozenset(pair for pair in each.assigned if pair[0] in keep)
        known = groups.get((each.shown, assigned))
        if known is None:
            groups[each.shown, assigned] = Alternative(each.when, each.shown, assigned, each.grants)
        else:
            names = tuple(dict.fromkeys((*known.grants, *each.grants)))
            groups[each.shown, assigned] = Alternative(
                disjoin(known.when, each.when), each.shown, assigned, names
            )
    return tuple(groups.values())


def maximal(alternative: Alternative, others: Sequence[Alternative]) -> Expr:
    """When the alternative holds and none that shows strictly more does (R4)."""
    larger = [
        other.when
        for other in others
        if other.assigned == alternative.assigned and other.shown > alternative.shown
    ]
    return conjoin(alternative.when, Not(disjoin(*larger))) if larger else alternative.when


def merge_labels(labels: Sequence[Expr]) -> Expr | None:
    """One label for rows that were joined: the labels of all."""
    distinct = tuple(dict.fromkeys(labels))
    if not distinct:
        return None
    return distinct[0] if len(distinct) == 1 else Call(MERGE_LABELS, distinct, STRING)


def bounds(node: Node) -> tuple[Item, ...]:
    """Items that pass the window's bounds on, where the node has them."""
    known = {each.column for each in node.fields}
    return tuple(Item(field_of(each), each) for each in (WINDOW_START, WINDOW_END) if each in known)


def align(name: str, fields: Sequence[Field], ways: Sequence[Way], is_union: bool) -> Lowered:
    """Bring ways that answer the same fields under one roof, and say how its columns are shown.

    A union of which one branch is left stays a union: its rows are ordered by event time, not by arrival (D5).
    """
    shared = _Shared(name, fields, ways)
    branches = [shared.project(way) for way in ways]
    single = len(branches) == 1 and not is_union
    return shared.lowered(branches[0] if single else Union(tuple(branches), shared.outputs))


class _Shared:
    """The common schema of several ways."""

    def __init__(self, name: str, fields: Sequence[Field], ways: Sequence[Way]) -> None:
        self.name = name
        self.ways = ways
        self.present = [
            (index, each)
            for index, each in enumerate(fields)
            if any(way.outputs[index].expr is not None for way in ways)
        ]
        self.absent = frozenset(each.column for each in fields) - {each.column for _, each in self.present}
        self.varying = [
            (index, each)
            for index, each in self.present
            if any(way.outputs[index].expr is None or way.outputs[index].shown != TRUE for way in ways)
        ]
        self.labelled = any(way.label is not None for way in ways)
        self.flags = sorted({key for way in ways for key in way.flags})
        self.shielded = any(way.roles is not None for way in ways)

    @property
    def outputs(self) -> tuple[Field, ...]:
        return (
            *(each for _, each in self.present),
            *(self._companion(each) for _, each in self.varying),
            *((self._label(),) if self.labelled else ()),
            *(self.flag(key) for key in self.flags),
            *((roles_field(self.name),) if self.shielded else ()),
        )

    def _companion(self, of: Field) -> Field:
        return Field("#shown:" + self.name, of.name, BOOLEAN)

    def _label(self) -> Field:
        return Field("#label", self.name, STRING)

    def flag(self, key: tuple[str, str]) -> Field:
        return Field(f"#grant:{key[0]}:{self.name}", key[1], BOOLEAN)

    def project(self, way: Way) -> Node:
        items = [Item(each, _or_null(way.outputs[index], each)) for index, each in self.present]
        for index, each in self.varying:
            output = way.outputs[index]
            items.append(Item(self._companion(each), FALSE if output.expr is None else output.shown))
        if self.labelled:
            items.append(Item(self._label(), way.label or Literal(None, STRING)))
        items += [Item(self.flag(key), way.flags.get(key, FALSE)) for key in self.flags]
        if self.shielded:
            items.append(Item(roles_field(self.name), EVERY_ROLE if way.roles is None else way.roles))
        return Project(way.node, (*items, *bounds(way.node)))

    def lowered(self, node: Node) -> Lowered:
        return Lowered(
            node,
            hidden=self.absent,
            companions={each.column: self._companion(each).column for _, each in self.varying},
            labels=(self._label().column,) if self.labelled else (),
            grants=frozenset(name for way in self.ways for name in way.grants),
            roles=(roles_field(self.name).column,) if self.shielded else (),
        )


def _or_null(output: Output, of: Field) -> Expr:
    return Literal(None, of.type) if output.expr is None else output.expr
