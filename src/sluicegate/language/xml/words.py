"""The words of ASSIST's XML: how it calls types, comparisons, functions and windows, and what we call them."""

from __future__ import annotations

from sluicegate.expr.nodes import ArithOp, Op
from sluicegate.expr.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVAL,
    POLYGON,
    STRING,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
)
from sluicegate.graph.operators import AggFunction

ROOT = "root"

WRITTEN_TYPES = {
    BOOLEAN: "System.Boolean",
    INT: "System.Int32",
    BIGINT: "System.Int64",
    DOUBLE: "System.Double",
    STRING: "System.String",
    TIMESTAMP: "System.DateTime",
    INTERVAL: "System.TimeSpan",
    TIME: "time",
    POLYGON: "polygon",
    UNKNOWN: "unknown",
}
_TYPES = {name.lower(): of for of, name in WRITTEN_TYPES.items()} | {
    "bool": BOOLEAN,
    "boolean": BOOLEAN,
    "system.int16": INT,
    "int": INT,
    "integer": INT,
    "long": BIGINT,
    "bigint": BIGINT,
    "system.single": DOUBLE,
    "float": DOUBLE,
    "double": DOUBLE,
    "string": STRING,
    "datetime": TIMESTAMP,
    "timestamp": TIMESTAMP,
    "timespan": INTERVAL,
    "interval": INTERVAL,
}
_SET = "set of "

COMPARISONS = {
    "equals": Op.EQ,
    "not_equals": Op.NE,
    "less_than": Op.LT,
    "less_than_or_equal": Op.LE,
    "greater_than": Op.GT,
    "greater_than_or_equal": Op.GE,
}
WRITTEN_COMPARISONS = {op: name for name, op in COMPARISONS.items()}
ARITHMETIC = {
    "add": ArithOp.ADD,
    "subtract": ArithOp.SUB,
    "multiply": ArithOp.MUL,
    "divide": ArithOp.DIV,
    "modulo": ArithOp.MOD,
}
WRITTEN_ARITHMETIC = {op: name for name, op in ARITHMETIC.items()}
WRITTEN_FUNCTIONS = {each: each.value.lower().replace(" ", "_") for each in AggFunction}
FUNCTIONS = {name: each for each, name in WRITTEN_FUNCTIONS.items()}

UNITS = {
    "microseconds": 1,
    "milliseconds": 1_000,
    "seconds": 1_000_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "days": 86_400_000_000,
}


def find_comparison(name: str) -> Op | None:
    """Appendix A writes `greater_than`, appendix B `lessthan`; both spellings are read."""
    return COMPARISONS.get(name) or _JOINED.get(name)


_JOINED = {name.replace("_", ""): op for name, op in COMPARISONS.items()}


def write_type(of: Type) -> str:
    """`System.Int64` and the like; a set as `set of System.Int64`."""
    if of.element is not None:
        return _SET + WRITTEN_TYPES[Type(of.element)]
    return "set" if of.kind is Kind.SET else WRITTEN_TYPES[of]


def find_type(name: str) -> Type | None:
    """The type of a name of .NET's, of C#'s or of our own; None for one that is none of these."""
    key = name.strip().lower()
    if key == "set":
        return Type(Kind.SET)
    if key.startswith(_SET):
        element = _TYPES.get(key.removeprefix(_SET))
        return None if element is None else Type(Kind.SET, element.kind)
    return _TYPES.get(key)


def choose_unit(*extents: int) -> str:
    """The largest unit, up to the paper's seconds, that all of these are whole numbers of."""
    fitting = ("seconds", "milliseconds", "microseconds")
    return next(unit for unit in fitting if all(extent % UNITS[unit] == 0 for extent in extents))
