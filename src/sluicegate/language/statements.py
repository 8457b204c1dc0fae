"""Catalog statements as values: what was written, not yet resolved. Places in the text are outside equality (I6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from sluicegate.errors import Diagnostic
from sluicegate.expr.nodes import Expr, Literal
from sluicegate.expr.types import Type
from sluicegate.graph.operators import AggFunction
from sluicegate.policy.model import LeastWindow
from sluicegate.policy.punctuation import DataDescription, Restriction
from sluicegate.policy.xacml.policies import StoredPolicy
from sluicegate.source import SourceText, Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name as the user means it (without quotes)."""

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """An expression as written, and what the parser made of it where it came from one; resolved when folded."""

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)
    syntax: Expr | None = field(default=None, compare=False, repr=False)
    elsewhere: bool = field(default=False, compare=False, repr=False)
    """Whether it was written in another notation, which `span` and the places of `syntax` are of."""


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query as written, its ON RESULT included."""

    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The XML of an XACML policy; `source` is where it was read, if not in the statement itself."""

    text: str = field(repr=False)
    source: SourceText | None = field(default=None, compare=False, repr=False)
    stored: StoredPolicy | None = field(default=None, compare=False, repr=False)
    """What the text was found to be, where it was read already."""


@dataclass(frozen=True, slots=True)
class AttributeName:
    """`name` or `qualifier.name`."""

    qualifier: Name | None
    name: Name

    def __str__(self) -> str:
        return f"{self.qualifier.text}.{self.name.text}" if self.qualifier else self.name.text


@dataclass(frozen=True, slots=True)
class AttributeDef:
    name: Name
    type: Type


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of CREATE STREAM and ALTER STREAM; None or empty where not written."""

    event_time: Name | None = None
    watermark: int | None = None
    owner: Name | None = None
    format: Name | None = None
    options: tuple[tuple[str, str], ...] = ()
    punctuated_by: Name | None = None
    order_any: bool = False
    governed_by_provider: bool = False
    key: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowClause:
    stream: Name
    attributes: tuple[Name, ...]
    on: Name
    within: int


@dataclass(frozen=True, slots=True)
class FromFile:
    """`FROM FILE 'path'`: read when the catalog is loaded, from the catalog's own folder."""

    path: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamUse:
    stream: Name
    alias: Name | None = None


@dataclass(frozen=True, slots=True)
class AllAttributes:
    """`*` (D6)."""


@dataclass(frozen=True, slots=True)
class ReadRight:
    attributes: tuple[AttributeName, ...] | AllAttributes


@dataclass(frozen=True, slots=True)
class FunctionRight:
    """A function and its attribute; None for COUNT(*)."""

    function: AggFunction
    attribute: AttributeName | None


@dataclass(frozen=True, slots=True)
class AggregateRight:
    rights: tuple[FunctionRight, ...]


@dataclass(frozen=True, slots=True)
class AppendRight:
    """Who may write, tuples and punctuations."""


Right: TypeAlias = ReadRight | AggregateRight | AppendRight


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Base of all statements."""

    span: Span | None = field(default=None, compare=False, repr=False)
    notes: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)
    """What its writer should know of how it was read."""


@dataclass(frozen=True, slots=True)
class CreateStream(Statement):
    """With a query it is a named result: its attributes are the query's."""

    name: Name
    attributes: tuple[AttributeDef, ...] = ()
    options: StreamOptions = StreamOptions()
    query: QueryText | None = None


@dataclass(frozen=True, slots=True)
class CreateRole(Statement):
    name: Name
    inherits: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateUser(Statement):
    name: Name
    roles: tuple[Name, ...] = ()
    profile: tuple[tuple[Name, Literal], ...] = ()
    follow: FollowClause | None = None


@dataclass(frozen=True, slots=True)
class SetFact(Statement):
    name: Name
    args: tuple[Literal, ...]
    value: Literal | FromFile
    public: bool = False


@dataclass(frozen=True, slots=True)
class CreateGrant(Statement):
    """`grantor` and `closed` are how a catalog that is printed keeps them; only administrators write `grantor`."""

    name: Name
    right: Right
    streams: tuple[StreamUse, ...]
    subject: Name
    to_user: bool = False
    predicate: ExpressionText | None = None
    during: tuple[ExpressionText, ExpressionText] | None = None
    least: LeastWindow | None = None
    by: tuple[AttributeName, ...] = ()
    narrow_by: tuple[AttributeName, ...] = ()
    min_group: int | None = None
    grant_option: bool = False
    replace: bool = False
    grantor: Name | None = None
    closed: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSP(Statement):
    """A server's punctuation: it may only narrow (R14)."""

    name: Name
    stream: Name
    ddp: DataDescription
    srp: Restriction
    positive: bool = True
    immutable: bool = False


@dataclass(frozen=True, slots=True)
class CreatePolicy(Statement):
    """An XACML policy or policy set, by its own id."""

    name: Name
    text: PolicyText
    replace: bool = False


@dataclass(frozen=True, slots=True)
class SetClock(Statement):
    """The moment at which decisions that read the clock are made; microseconds since 1970."""

    moment: int


@dataclass(frozen=True, slots=True)
class InsertSP(Statement):
    """A punctuation for a stream's data (D12), or with `query` one for a privacy switch (R16).

    `stream` is None in ON RESULT. It is no change of the catalog.
    """

    name: Name | None
    stream: Name | None
    ddp: DataDescription
    srp: Restriction
    positive: bool = True
    immutable: bool = False
    query: str | None = None


@dataclass(frozen=True, slots=True)
class SetProfile:
    """NULL takes the attribute away."""

    profile: tuple[tuple[Name, Literal], ...]


@dataclass(frozen=True, slots=True)
class AddRole:
    role: Name


@dataclass(frozen=True, slots=True)
class DropRole:
    role: Name


@dataclass(frozen=True, slots=True)
class SetDisabled:
    disabled: bool


@dataclass(frozen=True, slots=True)
class AlterUser(Statement):
    name: Name
    action: SetProfile | AddRole | DropRole | SetDisabled | FollowClause


@dataclass(frozen=True, slots=True)
class AddAttribute:
    attribute: AttributeDef


@dataclass(frozen=True, slots=True)
class DropAttribute:
    attribute: Name


@dataclass(frozen=True, slots=True)
class AlterStream(Statement):
    """Options that are not written stay as they are."""

    name: Name
    action: AddAttribute | DropAttribute | StreamOptions


@dataclass(frozen=True, slots=True)
class AlterRole(Statement):
    """Replaces what the role inherits; nothing for `INHERITS NONE`."""

    name: Name
    inherits: tuple[Name, ...] = ()


class ObjectKind(Enum):
    GRANT = "GRANT"
    STREAM = "STREAM"
    ROLE = "ROLE"
    USER = "USER"
    SP = "SP"
    POLICY = "POLICY"


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    kind: ObjectKind
    name: Name
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class DropFact(Statement):
    name: Name
    args: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin(Statement):
    pass


@dataclass(frozen=True, slots=True)
class Commit(Statement):
    pass
