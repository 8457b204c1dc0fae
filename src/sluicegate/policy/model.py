"""What a catalog holds: streams, roles, users, facts, grants (D1–D3, D6). Resolved, frozen, equal by value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sluicegate.expr.nodes import TRUE, Column, Expr, Literal, Scalar
from sluicegate.expr.types import Type
from sluicegate.graph.operators import AggFunction
from sluicegate.policy.elements import Punctuation


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, or a table when it has no event time. Durations are microseconds."""

    name: str
    attributes: tuple[tuple[str, Type], ...]
    event_time: str | None = None
    watermark: int = 0
    owner: str | None = None
    format: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    punctuated_by: str | None = None
    order_any: bool = False
    governed_by_provider: bool = False
    query: str | None = None
    """The text of the query whose named result this is (`CREATE STREAM … AS`)."""
    stated: tuple[Punctuation, ...] = ()
    """What its `ON RESULT` states, of all tuples (R15)."""
    key: tuple[str, ...] = ()
    """Of a table whose rows are replaced and deleted: a row is in force until the next one under its key (D1)."""

    @property
    def carries_policies(self) -> bool:
        """Whether its tuples are shown only as policies of their own allow."""
        return self.punctuated_by is not None or bool(self.stated)

    def type_of(self, attribute: str) -> Type | None:
        return dict(self.attributes).get(attribute)


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    inherits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Follow:
    """Profile attributes that move with a stream (D3): the latest tuple whose `on` equals `self.on`."""

    stream: str
    attributes: tuple[str, ...]
    on: str
    within: int


@dataclass(frozen=True, slots=True)
class User:
    name: str
    roles: tuple[str, ...] = ()
    profile: tuple[tuple[str, Literal], ...] = ()
    follow: Follow | None = None
    disabled: bool = False
    inactive: tuple[str, ...] = ()
    """Roles that it holds, and that its session has not activated: they allow nothing, and still deny (R14)."""
    aside: tuple[str, ...] = ()
    """Profile attributes to which its session gives another value than the catalog does, or none."""
    varying: tuple[str, ...] = ()
    """Profile attributes that its sign-in decided: its next session may have other values of them."""

    @property
    def is_partly_seated(self) -> bool:
        """Whether its session is without something that the catalog gives it."""
        return bool(self.inactive or self.aside)

    def attribute(self, name: str) -> Literal | None:
        return dict(self.profile).get(name)


@dataclass(frozen=True, slots=True)
class Fact:
    """`name(args) = value`. One that is not public is an unknown in decisions and notices (R9)."""

    name: str
    args: tuple[Scalar, ...]
    value: Literal
    public: bool = False


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream as a grant names it; the alias is the stream's name where none was written."""

    stream: str
    alias: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A role, or a user."""

    name: str
    is_user: bool = False


class Privilege(Enum):
    READ = "READ"
    AGGREGATE = "AGGREGATE"
    APPEND = "APPEND"


@dataclass(frozen=True, slots=True)
class AggRight:
    """(function, attribute); the attribute is None for COUNT(*)."""

    function: AggFunction
    attribute: Column | None


@dataclass(frozen=True, slots=True)
class During:
    """A closed interval of event time; a bound is a literal (NULL: open) or a fact (R6)."""

    lower: Expr
    upper: Expr


@dataclass(frozen=True, slots=True)
class LeastWindow:
    """The least size and step; microseconds, or rows when `rows`."""

    size: int
    step: int
    rows: bool = False

    @property
    def is_by_time(self) -> bool:
        """Whether it holds event time together; one of 0 allows any."""
        return not self.rows and bool(self.size or self.step)


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant (D6). Columns are `Column(alias, attribute, type)` with the aliases of `streams`."""

    name: str
    subject: Subject
    privilege: Privilege
    streams: tuple[StreamRef, ...]
    attributes: tuple[Column, ...] = ()
    """What a READ grant shows; `*` was replaced when the grant was made."""
    rights: tuple[AggRight, ...] = ()
    """What an AGGREGATE grant allows."""
    predicate: Expr = TRUE
    during: During | None = None
    least: LeastWindow | None = None
    by: tuple[Column, ...] = ()
    narrow_by: tuple[Column, ...] = ()
    min_group: int = 0
    grant_option: bool = False
    grantor: str | None = None
    """Who made it, when that was neither an administrator nor the streams' owner (R19)."""
    closed: str | None = None
    """Why it allows nothing (an attribute was dropped, its predicate cannot be enforced), if so."""

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The multiset of its streams, sorted."""
        if len(self.streams) == 1:
            return (self.streams[0].stream,)
        return tuple(sorted(ref.stream for ref in self.streams))
