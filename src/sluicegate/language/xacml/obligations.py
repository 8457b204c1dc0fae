"""The stream obligations of eXACML+ as a grant: all obligations of one decision are fulfilled together, or nothing is.

Filters are joined by AND, maps and aggregate functions by what they have in common, of windows the larger size and step
count. One decision is one grant: a grant for each policy would unite what the policies meant to restrict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sluicegate.errors import DiagnosticError
from sluicegate.expr.nodes import Column, Expr, FactRef, SelfRef, conjoin, walk
from sluicegate.expr.types import Kind
from sluicegate.graph.operators import AggFunction
from sluicegate.language.expressions import parse_expression, resolve_expression
from sluicegate.language.fold_grants import check_enforceable, check_function
from sluicegate.language.lexing import Cursor
from sluicegate.language.scope import Scope
from sluicegate.language.xml.match_names import match_expression
from sluicegate.language.xml.user_query import OTHER_NAMES, read_extent
from sluicegate.policy.catalog import DECIDED
from sluicegate.policy.model import AggRight, Grant, LeastWindow, Privilege, Stream, StreamRef, Subject
from sluicegate.policy.xacml.context import Assignment, Notice
from sluicegate.policy.xacml.names import DataType
from sluicegate.source import SourceText

FILTER: Final = "exacml:obligation:stream-filter"
MAP: Final = "exacml:obligation:stream-map"
WINDOW: Final = "exacml:obligation:stream-window"

# Fig. 2 of the paper writes the ids of attributes with the second.
_PREFIXES: Final = ("exacml:obligation:", "pCloud:obligation:")
CONDITION: Final = "stream-filter-condition-id"
ATTRIBUTE: Final = "stream-map-attribute-id"
TYPE: Final = "stream-window-type-id"
SIZE: Final = "stream-window-size-id"
STEP: Final = "stream-window-step-id"
FUNCTION: Final = "stream-window-attr-id"

PARTS: Final[dict[str, tuple[str, ...]]] = {
    FILTER: (CONDITION,),
    MAP: (ATTRIBUTE,),
    WINDOW: (TYPE, SIZE, STEP, FUNCTION),
}
"""What each obligation has to say, at least once."""

_FUNCTIONS: Final = {
    each.value: each
    for each in (AggFunction.AVG, AggFunction.MAX, AggFunction.MIN, AggFunction.COUNT, AggFunction.SUM)
} | {name: AggFunction(function) for name, function in OTHER_NAMES.items()}
_TYPES: Final = {"tuple": True, "time": False}
_Right = tuple[AggFunction, str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a decision to permit gives nothing: an obligation that cannot be fulfilled (7.18: then access is denied)."""

    reason: str


class UnfulfillableError(Exception):
    """An obligation that is not understood, or cannot be fulfilled on this stream."""


@dataclass(frozen=True, slots=True)
class _Window:
    rows: bool
    size: int
    step: int
    rights: frozenset[_Right]


def name_grant(stream: str) -> str:
    """What a decision on the stream is called among the grants."""
    return DECIDED + stream


def fulfil(
    obligations: Sequence[Notice], stream: Stream, user: str, late: frozenset[str] = frozenset()
) -> Grant | Refusal:
    """The one grant that fulfils all of them. Attributes that are `late` are shown by maps that name them alone."""
    try:
        grant = _make_grant(obligations, stream, Subject(user, is_user=True), late)
        check_enforceable(grant, [stream])
    except UnfulfillableError as error:
        return Refusal(str(error))
    except DiagnosticError as error:
        return Refusal(error.diagnostics[0].message)
    return grant


def check_obligation(obligation: Notice, stream: Stream) -> str | None:
    """What is wrong with one obligation on a stream, if anything."""
    found = fulfil([obligation], stream, "")
    return found.reason if isinstance(found, Refusal) else None


def _make_grant(
    obligations: Sequence[Notice], stream: Stream, subject: Subject, late: frozenset[str]
) -> Grant:
    sorted_: dict[str, list[dict[str, list[Assignment]]]] = {FILTER: [], MAP: [], WINDOW: []}
    for each in obligations:
        if each.notice_id not in sorted_:
            raise UnfulfillableError(f"the obligation `{each.notice_id[:100]}` is not known")
        sorted_[each.notice_id].append(_read_parts(each))
    conditions = [_read_condition(each, stream) for parts in sorted_[FILTER] for each in parts[CONDITION]]
    predicate = conjoin(*dict.fromkeys(conditions))
    mapped = _intersect(
        [{_find_attribute(_text(each), stream) for each in parts[ATTRIBUTE]} for parts in sorted_[MAP]],
        "the maps of the policies have no attribute in common",
    )
    windows = [_read_window(parts, stream) for parts in sorted_[WINDOW]]
    name, refs = name_grant(stream.name), (StreamRef(stream.name, stream.name),)
    if not windows:
        shown = _columns(stream, {name for name, _ in stream.attributes} - late if mapped is None else mapped)
        return Grant(name, subject, Privilege.READ, refs, shown, predicate=predicate)
    least, rights = _join_windows(windows, mapped, stream)
    # pieces of event time would be windows below the least (R8)
    held = {stream.event_time} if least.is_by_time else set()
    narrow = () if mapped is None else _columns(stream, mapped - held)
    return Grant(
        name, subject, Privilege.AGGREGATE, refs, (), rights, predicate, least=least, narrow_by=narrow
    )


def _read_parts(obligation: Notice) -> dict[str, list[Assignment]]:
    """By their names without prefix; all have to be there, and none that is not known."""
    known = PARTS[obligation.notice_id]
    found: dict[str, list[Assignment]] = {part: [] for part in known}
    for each in obligation.assignments:
        prefix = next((one for one in _PREFIXES if each.attribute_id.startswith(one)), None)
        part = "" if prefix is None else each.attribute_id.removeprefix(prefix)
        if part not in found:
            what = f"`{each.attribute_id[:100]}` is not known in the obligation `{obligation.notice_id}`"
            raise UnfulfillableError(what)
        found[part].append(each)
    for part, values in found.items():
        if not values:
            raise UnfulfillableError(f"the obligation `{obligation.notice_id}` lacks its `{part}`")
    return found


def _text(assignment: Assignment) -> str:
    return assignment.value.text.strip()


def _read_condition(assignment: Assignment, stream: Stream) -> Expr:
    """Attributes and literals of the language, nothing that depends on who asks or on facts."""
    if assignment.value.written is None or assignment.value.type is not DataType.STRING:
        # a value of the request inside a text could be any text: a condition of somebody else's making; functions
        # that read a text as another type make it look like one that was written
        raise UnfulfillableError(
            "a filter's condition has to be a string written in the policy, not computed"
        )
    cursor = Cursor.over(SourceText("<filter>", assignment.value.text))
    expr = parse_expression(cursor)
    if not cursor.done:
        cursor.fail_unexpected("the end of the condition")
    scope = Scope.of_policy([(stream.name, stream)], {})
    found = resolve_expression(match_expression(expr, stream), scope)
    if any(isinstance(node, SelfRef | FactRef) for node in walk(found)):
        raise UnfulfillableError("a filter's condition names attributes of the stream, and nothing else")
    if found.type.kind is not Kind.BOOLEAN:
        raise UnfulfillableError(f"the filter `{_text(assignment)[:60]}` is not a condition")
    return found


def _find_attribute(name: str, stream: Stream) -> str:
    """As it is written, else the only one that differs in case alone."""
    known = [each for each, _ in stream.attributes]
    if name in known:
        return name
    fitting = [each for each in known if each.casefold() == name.casefold()]
    if len(fitting) != 1:
        what = "several attributes fit" if fitting else "no attribute is"
        raise UnfulfillableError(f"`{name[:60]}`: {what} called so in the stream `{stream.name}`")
    return fitting[0]


def _intersect(sets: Sequence[set[str]], otherwise: str) -> frozenset[str] | None:
    """What all have in common; nothing is said where there is no set."""
    if not sets:
        return None
    common = frozenset(sets[0]).intersection(*sets[1:])
    if not common:
        raise UnfulfillableError(otherwise)
    return common


def _read_window(parts: dict[str, list[Assignment]], stream: Stream) -> _Window:
    kinds = {_TYPES.get(_text(each).lower()) for each in parts[TYPE]}
    if len(kinds) != 1 or (rows := kinds.pop()) is None:
        raise UnfulfillableError("a window's type is `tuple` or `time`")
    size = max(_read_extent(each, rows) for each in parts[SIZE])
    step = max(_read_extent(each, rows) for each in parts[STEP])
    return _Window(rows, size, step, frozenset(_read_right(_text(each), stream) for each in parts[FUNCTION]))


def _read_extent(assignment: Assignment, rows: bool) -> int:
    cursor = Cursor.over(SourceText("<window>", _text(assignment)))
    found = read_extent(cursor, rows)
    if not cursor.done:
        cursor.fail_unexpected("the end of the window's size or step")
    return found


def _read_right(text: str, stream: Stream) -> _Right:
    attribute, colon, function = text.rpartition(":")
    found = _FUNCTIONS.get(function.strip().upper())
    if not colon or found is None:
        raise UnfulfillableError(f"`{text[:60]}` is not an attribute and a function, such as `rainrate:avg`")
    return found, _find_attribute(attribute.strip(), stream)


def _join_windows(
    windows: Sequence[_Window], mapped: frozenset[str] | None, stream: Stream
) -> tuple[LeastWindow, tuple[AggRight, ...]]:
    if len({each.rows for each in windows}) > 1:
        raise UnfulfillableError("the policies ask for windows of tuples and of time: nothing fulfils both")
    common = windows[0].rights.intersection(*(each.rights for each in windows[1:]))
    shown = [each for each in common if mapped is None or each[1] in mapped]
    if not shown:
        raise UnfulfillableError("the policies have no function of an attribute in common")
    rights = tuple(_make_right(each, stream) for each in _order(shown, stream))
    least = LeastWindow(
        max(each.size for each in windows), max(each.step for each in windows), windows[0].rows
    )
    return least, rights


def _order(rights: Iterable[_Right], stream: Stream) -> list[_Right]:
    places = {name: at for at, (name, _) in enumerate(stream.attributes)}
    return sorted(rights, key=lambda each: (places[each[1]], each[0].value))


def _make_right(right: _Right, stream: Stream) -> AggRight:
    function, name = right
    (column,) = _columns(stream, {name})
    made = AggRight(function, column)
    check_function(made, name)
    return made


def _columns(stream: Stream, names: Iterable[str] | None) -> tuple[Column, ...]:
    """In the stream's order; all of them where none are named."""
    wanted = None if names is None else set(names)
    return tuple(
        Column(stream.name, name, of) for name, of in stream.attributes if wanted is None or name in wanted
    )
