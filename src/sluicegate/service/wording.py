"""What one may see, in words: the caller's grants as they are written, until when, and where on a map they hold.

Of facts the names, and the values of public ones alone (R9).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sluicegate.expr.nodes import (
    TRUE,
    Call,
    Column,
    Compare,
    Expr,
    FactRef,
    Literal,
    Op,
    Polygon,
    SelfRef,
    walk,
)
from sluicegate.expr.text import to_text
from sluicegate.expr.values import write_timestamp
from sluicegate.graph.operators import AggFunction
from sluicegate.graph.windows import format_duration
from sluicegate.policy.bind import Binder, fact_args
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.model import AggRight, Grant, LeastWindow, Privilege, User

_MOST_AREAS = 50


def tell_grants(catalog: Catalog, user: str) -> list[dict[str, Any]]:
    """Grants to the user and its roles, by name; `catalog` is its seat."""
    known = catalog.users.get(user) or User(user)
    found = sorted(catalog.grants_to(user), key=lambda each: each.name)
    return [_tell(catalog, known, each) for each in found]


def _tell(catalog: Catalog, user: User, grant: Grant) -> dict[str, Any]:
    if grant.closed is not None:
        return _tell_closed(grant)
    since, until = _tell_during(catalog, user, grant)
    return {
        "name": grant.name,
        "kind": grant.privilege.value.lower(),
        "role": None if grant.subject.is_user else grant.subject.name,
        "streams": list(grant.stream_names),
        "attributes": [_name(each, grant) for each in grant.attributes],
        "functions": [_tell_right(each, grant) for each in grant.rights],
        "by": [_name(each, grant) for each in grant.by],
        "condition": None if grant.predicate == TRUE else to_text(grant.predicate),
        "window": _tell_least(grant.least),
        "min_group": grant.min_group,
        "since": since,
        "until": until,
        "grant_option": grant.grant_option,
        "closed": False,
        "words": put_in_words(grant),
        "areas": list(_find_areas(catalog, user, grant))[:_MOST_AREAS],
    }


def _tell_closed(grant: Grant) -> dict[str, Any]:
    """That it is there, and nothing of what it is about: a closed grant makes no stream known."""
    empty: dict[str, Any] = {key: [] for key in ("streams", "attributes", "functions", "by", "areas")}
    return {
        **empty,
        **dict.fromkeys(("condition", "window", "since", "until")),
        "name": grant.name,
        "kind": grant.privilege.value.lower(),
        "role": None if grant.subject.is_user else grant.subject.name,
        "min_group": 0,
        "grant_option": False,
        "closed": True,
        "words": "nothing at present",
    }


def put_in_words(grant: Grant) -> str:
    """`averages of Pos of Position where …, over at least 10 seconds every 10 seconds`."""
    streams = " with ".join(grant.stream_names)
    match grant.privilege:
        case Privilege.READ:
            what = f"read {', '.join(_name(each, grant) for each in grant.attributes)} of {streams}"
        case Privilege.AGGREGATE:
            what = f"compute {', '.join(_tell_right(each, grant) for each in grant.rights)} of {streams}"
        case Privilege.APPEND:
            what = f"write to {streams}"
    parts = [what]
    if grant.predicate != TRUE:
        parts.append(f"where {to_text(grant.predicate)}")
    if grant.by:
        parts.append(f"by {', '.join(_name(each, grant) for each in grant.by)}")
    if grant.least is not None:
        parts.append(f"over windows of {_tell_least(grant.least)}")
    if grant.min_group:
        parts.append(f"in groups of {grant.min_group} or more")
    return ", ".join(parts)


def _name(column: Column, grant: Grant) -> str:
    return column.name if len(grant.streams) == 1 else f"{column.qualifier}.{column.name}"


def _tell_right(right: AggRight, grant: Grant) -> str:
    if right.attribute is None:
        return f"{right.function.value}(*)"
    name = _name(right.attribute, grant)
    distinct = right.function is AggFunction.COUNT_DISTINCT
    return f"COUNT(DISTINCT {name})" if distinct else f"{right.function.value}({name})"


def _tell_least(least: LeastWindow | None) -> str | None:
    if least is None:
        return None
    if least.rows:
        return f"at least {least.size} rows every {least.step}"
    return f"at least {format_duration(least.size)} every {format_duration(least.step)}"


def _tell_during(catalog: Catalog, user: User, grant: Grant) -> tuple[str | None, str | None]:
    if grant.during is None:
        return None, None
    bound = Binder(catalog, user).bind_during(grant.during)
    return _tell_bound(catalog, bound.lower), _tell_bound(catalog, bound.upper)


def _tell_bound(catalog: Catalog, bound: Expr) -> str | None:
    value = bound if isinstance(bound, Literal) else _find_public(catalog, bound)
    if value is None:
        return to_text(bound)
    return write_timestamp(value.value) if isinstance(value.value, int) else None


def _find_public(catalog: Catalog, expr: Expr) -> Literal | None:
    args = fact_args(expr) if isinstance(expr, FactRef) else None
    fact = None if args is None or not isinstance(expr, FactRef) else catalog.fact(expr.name, args)
    return fact.value if fact is not None and fact.public else None


def _find_areas(catalog: Catalog, user: User, grant: Grant) -> Iterator[dict[str, Any]]:
    """Where `distance_nm(…) <= miles` holds: around a public polygon, a place of one's profile, or one that moves."""
    for node in walk(Binder(catalog, user).bind(grant.predicate)):
        match node:
            case Compare(
                Op.LE | Op.LT, Call("distance_nm", (_, _, *target)), Literal(int() | float() as miles)
            ):
                found = _find_place(catalog, user, target)
                if found is not None:
                    yield {"grant": grant.name, "miles": float(miles), **found}


def _find_place(catalog: Catalog, user: User, target: list[Expr]) -> dict[str, Any] | None:
    match target:
        case [Literal(int() | float() as x), Literal(int() | float() as y)]:
            return {"point": [float(x), float(y)]}
        case [SelfRef(), SelfRef()] if user.follow is not None:
            follow = user.follow
            value = user.attribute(follow.on)
            return {
                "follow": {"stream": follow.stream, "on": follow.on, "value": value.value if value else None}
            }
        case [place]:
            value = place if isinstance(place, Literal) else _find_public(catalog, place)
            if value is not None and isinstance(value.value, Polygon):
                return {"polygon": list_rings(value.value)}
    return None


def list_rings(polygon: Polygon) -> list[Any]:
    """Coordinates as GeoJSON's MultiPolygon has them."""
    return [[[list(point) for point in ring] for ring in part] for part in polygon.parts]
