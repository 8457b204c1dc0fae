"""The built-in functions, each declared once: typing rule, reference implementation, rendering for each target.

All are total (I2); unless said otherwise a NULL argument gives NULL. `upper` and `lower` change ASCII letters only, `trim`
removes spaces only, `length` counts code points: there engines agree. A TIME is rendered as microseconds since midnight (BIGINT).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sluicegate.expr import geo
from sluicegate.expr.geo_sql import render_distance, render_within, write_double
from sluicegate.expr.labels import (
    LABEL_NAMES,
    MERGE_LABELS,
    label_names,
    label_names_sql,
    merge_labels,
    merge_labels_sql,
)
from sluicegate.expr.nodes import Expr, Literal, Op, Polygon, Scalar, Value
from sluicegate.expr.roles import COMMON_ROLES, common_roles, common_roles_sql
from sluicegate.expr.spark_text import quote_spark_text
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTEGER,
    NUMERIC,
    POLYGON,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
    common,
    comparable,
    element_type,
)
from sluicegate.expr.values import DAY, LONG_MAX, LONG_MIN, compare_values

Rule: TypeAlias = Callable[[Sequence[Type]], Type | None]
Renderer: TypeAlias = Callable[[str, Sequence[str], Sequence[Expr]], str]
Numbers: TypeAlias = int | float


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in. `render` gives a total expression of the target; templates name arguments by position."""

    name: str
    signature: str
    rule: Rule
    body: Callable[..., Value]
    rendering: Renderer | Mapping[str, str]
    null_in_null_out: bool = True
    choices: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Arguments, by position, that must be one of these string literals."""

    def result_type(self, arg_types: Sequence[Type]) -> Type | None:
        """The type of the result, or None where the arguments do not fit."""
        return self.rule(arg_types)

    def call(self, args: Sequence[Value]) -> Value:
        if self.null_in_null_out and None in args:
            return None
        return self.body(*args)

    def render(self, target: str, rendered_args: Sequence[str], args: tuple[Expr, ...]) -> str:
        """The call in a target's SQL. Sets, polygons and units are read from `args`, where they must be literals."""
        if callable(self.rendering):
            return self.rendering(target, rendered_args, args)
        return self.rendering[target].format(*rendered_args)


def _fits(given: Type, wanted: frozenset[Type]) -> bool:
    return given in wanted or given.kind is Kind.UNKNOWN


def _takes(result: Type, *wanted: frozenset[Type]) -> Rule:
    def rule(types: Sequence[Type]) -> Type | None:
        fit = len(types) == len(wanted) and all(map(_fits, types, wanted))
        return result if fit else None

    return rule


def _one_of(*types: Type) -> frozenset[Type]:
    return frozenset(types)


def _either(*rules: Rule) -> Rule:
    return lambda types: next((result for rule in rules if (result := rule(types)) is not None), None)


def _same_number(types: Sequence[Type]) -> Type | None:
    return types[0] if len(types) == 1 and _fits(types[0], NUMERIC) else None


def _common_of(types: Sequence[Type]) -> Type | None:
    result: Type | None = UNKNOWN if types else None
    for given in types:
        result = common(result, given) if result is not None else None
    return result if result is None or result.kind not in (Kind.SET, Kind.POLYGON) else None


def _common_of_several(types: Sequence[Type]) -> Type | None:
    return _common_of(types) if len(types) >= 2 else None


def _texts(types: Sequence[Type]) -> Type | None:
    return STRING if types and all(_fits(given, _one_of(STRING)) for given in types) else None


def _membership(types: Sequence[Type]) -> Type | None:
    if len(types) != 2 or types[1].kind not in (Kind.SET, Kind.UNKNOWN):
        return None
    return BOOLEAN if types[0].kind is not Kind.SET and comparable(types[0], element_type(types[1])) else None


def _nullif_type(types: Sequence[Type]) -> Type | None:
    return types[0] if len(types) == 2 and comparable(types[0], types[1]) else None


def _distance(unit_km: float) -> Callable[..., Value]:
    def distance(lon: float, lat: float, *other: Value) -> Value:
        match other:
            case (Polygon() as polygon,):
                km = geo.distance_km(float(lon), float(lat), polygon)
            case (int() | float() as lon2, int() | float() as lat2):
                km = geo.distance_between_km(float(lon), float(lat), float(lon2), float(lat2))
            case _:
                return None
        return km if km is None or unit_km == 1 else km / unit_km

    return distance


def _within(lon: float, lat: float, polygon: Value) -> Value:
    return geo.within(float(lon), float(lat), polygon) if isinstance(polygon, Polygon) else None


def _is_member(value: Value, members: Value) -> Value:
    if not isinstance(members, frozenset):
        return None
    if isinstance(value, str) or (type(value) is int and (value in members or float(value) not in members)):
        return value in members
    # only near a DOUBLE does equality need more than a look-up
    return any(compare_values(Op.EQ, value, member) for member in members)


def _abs(value: Numbers) -> Value:
    return abs(value)


def _whole(cut: Callable[[float], int]) -> Callable[[Numbers], Value]:
    def whole(value: Numbers) -> Value:
        result = cut(value)
        return result if LONG_MIN <= result <= LONG_MAX else None

    return whole


def _round(value: Numbers) -> Value:
    if isinstance(value, int):
        return value
    size = math.floor(abs(value))
    return math.copysign(size + (abs(value) - size >= 0.5), value)


_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_UPPER, _TO_LOWER = str.maketrans(_LOWER, _UPPER), str.maketrans(_UPPER, _LOWER)


def _coalesce(*args: Value) -> Value:
    return next((arg for arg in args if arg is not None), None)


def _extreme(op: Op) -> Callable[..., Value]:
    def extreme(*args: Value) -> Value:
        present = [arg for arg in args if arg is not None]
        if any(isinstance(arg, float) for arg in present):
            present = [float(arg) if isinstance(arg, int) else arg for arg in present]
        best = present[0] if present else None
        for arg in present[1:]:
            best = arg if compare_values(op, arg, best) else best
        return best

    return extreme


def _nullif(value: Value, other: Value) -> Value:
    return None if compare_values(Op.EQ, value, other) else value


UNITS = {"minute": 60_000_000, "hour": 3_600_000_000, "day": DAY}


def _date_trunc(unit: str, moment: int) -> Value:
    size = UNITS.get(unit.lower())
    return moment - moment % size if size else None


def _both(template: str) -> dict[str, str]:
    return {"duckdb": template, "spark": template}


def _render_whole(name: str) -> Renderer:
    def render(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
        if args[0].type in INTEGER:
            return f"CAST({rendered[0]} AS BIGINT)"
        low, high = write_double(-(2.0**63)), write_double(2.0**63)
        value = rendered[0]
        return f"(CASE WHEN {value} >= {low} AND {value} < {high} THEN CAST({name}({value}) AS BIGINT) END)"

    return render


def _render_abs(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
    least = {INT: "-2147483648", BIGINT: "(-9223372036854775807 - 1)"}.get(args[0].type)
    if least is None:
        return f"abs({rendered[0]})"
    return f"(CASE WHEN {rendered[0]} > {least} THEN abs({rendered[0]}) END)"


def _render_round(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
    return rendered[0] if args[0].type in INTEGER else f"round({rendered[0]})"


def _render_joined(separator: str, around: str) -> Renderer:
    return lambda target, rendered, args: around.format(separator.join(rendered))


def _write_scalar(target: str, value: Scalar, of: Type) -> str:
    match value:
        case bool():
            return str(value).upper()
        case str():
            return quote_spark_text(value) if target == "spark" else "'" + value.replace("'", "''") + "'"
        case float():
            return write_double(value)
        case int() if of == TIMESTAMP:
            return {"duckdb": f"make_timestamp({value})", "spark": f"timestamp_micros({value})"}[target]
        case int() if of == DOUBLE:
            return write_double(float(value))
        case int():
            return (
                "(-9223372036854775807 - 1)"
                if value == LONG_MIN
                else f"({value})"
                if value < 0
                else str(value)
            )
        case _:
            raise TypeError(f"cannot render a {type(value).__name__}")


def _render_member(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
    members = args[1]
    if not isinstance(members, Literal):
        raise TypeError("a set is rendered from a literal only")
    if not isinstance(members.value, frozenset):
        return "CAST(NULL AS BOOLEAN)"
    of = element_type(members.of)
    texts = sorted(_write_scalar(target, value, of) for value in members.value)
    value = rendered[0]
    if not texts:
        return f"(CASE WHEN {value} IS NOT NULL THEN FALSE END)"
    # numbers meet a DOUBLE as DOUBLE
    value = f"CAST({value} AS DOUBLE)" if of == DOUBLE else value
    return f"({value} IN ({', '.join(texts)}))"


_SINCE_EPOCH = {"duckdb": "epoch_us({})", "spark": "unix_micros({})"}
_FROM_EPOCH = {"duckdb": "make_timestamp({})", "spark": "timestamp_micros({})"}


def _since(target: str, moment: str, size: int) -> str:
    """Microseconds since the last multiple of so many; never negative."""
    micros = _SINCE_EPOCH[target].format(moment)
    return f"((({micros}) % {size} + {size}) % {size})"


def _render_time_of_day(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
    return _since(target, rendered[0], DAY)


def _render_clock(part: int, whole: int) -> Renderer:
    divide = {"duckdb": "//", "spark": "DIV"}
    return lambda target, rendered, args: (
        f"CAST(({_since(target, rendered[0], whole)} {divide[target]} {part}) AS INTEGER)"
    )


def _render_date_trunc(target: str, rendered: Sequence[str], args: Sequence[Expr]) -> str:
    unit = args[0].value if isinstance(args[0], Literal) else None
    size = UNITS.get(unit.lower()) if isinstance(unit, str) else None
    if size is None:
        return "CAST(NULL AS TIMESTAMP)"
    moment = _SINCE_EPOCH[target].format(rendered[1])
    return _FROM_EPOCH[target].format(f"{moment} - {_since(target, rendered[1], size)}")


_PLACE = (NUMERIC, NUMERIC)
_DISTANCE = _either(_takes(DOUBLE, *_PLACE, _one_of(POLYGON)), _takes(DOUBLE, *_PLACE, *_PLACE))
_MOMENT = _one_of(TIMESTAMP)
_TEXT = _one_of(STRING)

_ALL = (
    Function(
        "distance_nm",
        "(lon, lat, polygon | lon, lat)",
        _DISTANCE,
        _distance(geo.KM_PER_NM),
        render_distance(geo.KM_PER_NM),
    ),
    Function("distance_km", "(lon, lat, polygon | lon, lat)", _DISTANCE, _distance(1), render_distance(1)),
    Function(
        "within", "(lon, lat, polygon)", _takes(BOOLEAN, *_PLACE, _one_of(POLYGON)), _within, render_within
    ),
    Function("is_member", "(value, set)", _membership, _is_member, _render_member),
    Function(
        "time_of_day", "(timestamp)", _takes(TIME, _MOMENT), lambda moment: moment % DAY, _render_time_of_day
    ),
    Function(
        "hour",
        "(timestamp)",
        _takes(INT, _MOMENT),
        lambda moment: moment % DAY // UNITS["hour"],
        _render_clock(UNITS["hour"], DAY),
    ),
    Function(
        "minute",
        "(timestamp)",
        _takes(INT, _MOMENT),
        lambda moment: moment % UNITS["hour"] // UNITS["minute"],
        _render_clock(UNITS["minute"], UNITS["hour"]),
    ),
    Function(
        "date_trunc",
        "('minute' | 'hour' | 'day', timestamp)",
        _takes(TIMESTAMP, _TEXT, _MOMENT),
        _date_trunc,
        _render_date_trunc,
        choices={0: frozenset(UNITS)},
    ),
    Function("abs", "(number)", _same_number, _abs, _render_abs),
    Function("floor", "(number)", _takes(BIGINT, NUMERIC), _whole(math.floor), _render_whole("floor")),
    Function("ceil", "(number)", _takes(BIGINT, NUMERIC), _whole(math.ceil), _render_whole("ceil")),
    Function("round", "(number)", _same_number, _round, _render_round),
    Function(
        "upper",
        "(text)",
        _takes(STRING, _TEXT),
        lambda text: text.translate(_TO_UPPER),
        _both(f"translate({{0}}, '{_LOWER}', '{_UPPER}')"),
    ),
    Function(
        "lower",
        "(text)",
        _takes(STRING, _TEXT),
        lambda text: text.translate(_TO_LOWER),
        _both(f"translate({{0}}, '{_UPPER}', '{_LOWER}')"),
    ),
    Function("length", "(text)", _takes(INT, _TEXT), len, _both("CAST(length({0}) AS INTEGER)")),
    Function(
        "trim",
        "(text)",
        _takes(STRING, _TEXT),
        lambda text: text.strip(" "),
        {"duckdb": "trim({0}, ' ')", "spark": "trim(BOTH ' ' FROM {0})"},
    ),
    Function("concat", "(text, …)", _texts, lambda *texts: "".join(texts), _render_joined(" || ", "({})")),
    Function(
        "coalesce",
        "(value, …)",
        _common_of,
        _coalesce,
        _render_joined(", ", "coalesce({})"),
        null_in_null_out=False,
    ),
    Function(
        "greatest",
        "(value, value, …)",
        _common_of_several,
        _extreme(Op.GT),
        _render_joined(", ", "greatest({})"),
        null_in_null_out=False,
    ),
    Function(
        "least",
        "(value, value, …)",
        _common_of_several,
        _extreme(Op.LT),
        _render_joined(", ", "least({})"),
        null_in_null_out=False,
    ),
    Function(
        "nullif",
        "(value, value)",
        _nullif_type,
        _nullif,
        _both("(CASE WHEN {0} = {1} THEN NULL ELSE {0} END)"),
        null_in_null_out=False,
    ),
)

FUNCTIONS: Mapping[str, Function] = {function.name: function for function in _ALL}


INTERNAL: Mapping[str, Function] = {
    MERGE_LABELS: Function(
        MERGE_LABELS,
        "internal",
        lambda types: STRING,
        merge_labels,
        lambda target, args, _: merge_labels_sql(target, list(args)),
        null_in_null_out=False,
    ),
    LABEL_NAMES: Function(
        LABEL_NAMES,
        "internal",
        lambda types: STRING,
        label_names,
        lambda target, args, _: label_names_sql(target, args[0]),
    ),
    COMMON_ROLES: Function(
        COMMON_ROLES,
        "internal",
        lambda types: BIGINT if types and all(each == BIGINT for each in types) else None,
        common_roles,
        lambda _, args, __: common_roles_sql(list(args)),
    ),
}


def builtin(name: str) -> Function | None:
    """For what runs expressions: also the rewriter's own functions, which no user text can name."""
    return INTERNAL.get(name) or lookup(name)


def lookup(name: str) -> Function | None:
    """The function of that name, in any case; None when there is none."""
    return FUNCTIONS.get(name) or FUNCTIONS.get(name.lower())
