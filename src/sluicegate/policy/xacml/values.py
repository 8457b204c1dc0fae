"""Attribute values: a data type, the text as written, and what the text means."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from sluicegate.policy.xacml.names import DataType
from sluicegate.policy.xacml.naming import read_dns_name, read_ip_address, read_rfc822, read_x500
from sluicegate.policy.xacml.temporal import (
    read_date,
    read_date_time,
    read_day_time_duration,
    read_time,
    read_year_month_duration,
    show_date,
    show_date_time,
    show_day_time_duration,
    show_time,
    show_year_month_duration,
)

# One object, so that not-a-number equals itself, as the conformance suite asks.
NAN: Final = math.nan

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPACES = re.compile(r"[ \t\r\n]+")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": NAN}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class BadValueError(ValueError):
    """A text that is not of its data type."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """`content` is what functions work on; two values of a type are equal in XACML when their contents are.

    As parts of the model they are equal when they are written alike.
    """

    type: DataType
    content: Any
    written: str | None = None
    xpath_category: str | None = None
    namespaces: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """As it was written; what a function computed is written in its type's canonical form."""
        return _WRITERS.get(self.type, str)(self.content) if self.written is None else self.written

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.type, self.text))

    def _parts(self) -> tuple[object, ...]:
        return self.type, self.text, self.xpath_category, self.namespaces


def read_value(kind: DataType, text: str) -> Value:
    """The value that a text stands for, or `BadValueError`."""
    lexical = text if kind is DataType.STRING else _SPACES.sub(" ", text).strip(" ")
    try:
        return Value(kind, _READERS[kind](lexical), text)
    except (ValueError, UnicodeError) as error:
        raise BadValueError(f"`{_shorten(text)}` is not a {kind.short}: {error}") from None


def make_value(kind: DataType, content: Any) -> Value:
    """The value that a function computed."""
    return Value(kind, NAN if kind is DataType.DOUBLE and content != content else content)


def show_double(number: float) -> str:
    """As XPath casts a double to a string: `27.5`, `1.0E10`, `INF`."""
    if number != number or math.isinf(number):
        return "NaN" if number != number else "INF" if number > 0 else "-INF"
    exact = Decimal(repr(number))
    if number == 0 or 1e-6 <= abs(number) < 1e6:
        plain = f"{exact:f}"
        return plain.rstrip("0").removesuffix(".") if "." in plain else plain
    digits = "".join(str(each) for each in exact.as_tuple().digits).rstrip("0")
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def _read_boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise ValueError("neither `true` nor `false`")
    return _BOOLEANS[text]


def _read_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number")
    if len(text) > 4000:
        raise ValueError("more than 4000 digits")
    return int(text)


def _read_double(text: str) -> float:
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not _DOUBLE.fullmatch(text):
        raise ValueError("not a number")
    return float(text)


def _read_hex(text: str) -> bytes:
    if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", text):
        raise ValueError("not pairs of hexadecimal digits")
    return bytes.fromhex(text)


def _read_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace(" ", ""), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None


_READERS: Mapping[DataType, Callable[[str], Any]] = {
    DataType.STRING: str,
    DataType.BOOLEAN: _read_boolean,
    DataType.INTEGER: _read_integer,
    DataType.DOUBLE: _read_double,
    DataType.TIME: read_time,
    DataType.DATE: read_date,
    DataType.DATE_TIME: read_date_time,
    DataType.DAY_TIME_DURATION: read_day_time_duration,
    DataType.YEAR_MONTH_DURATION: read_year_month_duration,
    DataType.ANY_URI: str,
    DataType.HEX_BINARY: _read_hex,
    DataType.BASE64_BINARY: _read_base64,
    DataType.RFC822_NAME: read_rfc822,
    DataType.X500_NAME: read_x500,
    DataType.IP_ADDRESS: read_ip_address,
    DataType.DNS_NAME: read_dns_name,
    DataType.XPATH_EXPRESSION: str,
}

_WRITERS: Mapping[DataType, Callable[[Any], str]] = {
    DataType.BOOLEAN: lambda content: "true" if content else "false",
    DataType.DOUBLE: show_double,
    DataType.TIME: show_time,
    DataType.DATE: show_date,
    DataType.DATE_TIME: show_date_time,
    DataType.DAY_TIME_DURATION: show_day_time_duration,
    DataType.YEAR_MONTH_DURATION: show_year_month_duration,
    DataType.HEX_BINARY: lambda content: content.hex().upper(),
    DataType.BASE64_BINARY: lambda content: base64.b64encode(content).decode("ascii"),
}
