"""Rows that are an object of JSON each: read strictly, as `runtime.inputs` reads the lines of a file."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from sluicegate.expr.types import Kind, Type
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.misfits import PROBLEM, write_misfit
from sluicegate.runtime.feed.moments import read_moment
from sluicegate.runtime.inputs import LONGEST_LINE
from sluicegate.targets.spark_text import is_finite, quote_text, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXT_COLUMN = "value"
_BLANKS = " \t\n\r\x0b\x0c"
# closes the array that a line is read within: a line cannot end it before
_SEAL = secrets.token_hex(8)


def read_lines(frame: DataFrame, stream: Stream, place: str) -> DataFrame:
    """`raw`, `place`, `a0` … for the attributes, and `_problem`; blank lines are left out."""
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    if found.get(TEXT_COLUMN) not in ("string", "binary"):
        raise refuse_feed("feed-schema", f"the feed of `{stream.name}` has no column `{TEXT_COLUMN}` of text")
    texts = frame.selectExpr(f"CAST({TEXT_COLUMN} AS STRING) AS raw", f"{place} AS place").selectExpr(
        "raw", "place", f"trim(LEADING {quote_text(_BLANKS)} FROM raw) AS text"
    )
    # a limit before anything reads the text
    parsed = texts.where("raw IS NULL OR text <> ''").selectExpr(
        "raw",
        "place",
        "startswith(text, '{') AS open",
        f"CASE WHEN octet_length(raw) <= {LONGEST_LINE} AND is_valid_utf8(raw)"
        f""" THEN try_parse_json(concat('[', raw, ',"{_SEAL}"]')) END AS v""",
    )
    opened = parsed.selectExpr(
        "raw",
        "place",
        "open",
        f"coalesce(try_variant_get(v, '$[1]', 'STRING') = '{_SEAL}', FALSE) AS whole",
        *(
            f"variant_get(v, {_path(stream, name)}, 'VARIANT') AS x{at}"
            for at, (name, _) in enumerate(stream.attributes)
        ),
    )
    count = range(len(stream.attributes))
    typed = opened.selectExpr("*", *(f"schema_of_variant(x{at}) AS k{at}" for at in count))
    texts_too = typed.selectExpr(
        "*",
        *(
            f"CASE WHEN k{at} = 'STRING' THEN try_variant_get(x{at}, '$', 'STRING') END AS t{at}"
            for at in count
        ),
    )
    values = texts_too.selectExpr(
        "raw",
        "place",
        "whole",
        "open",
        *(f"coalesce(k{at}, 'VOID') <> 'VOID' AS given{at}" for at in count),
        *(f"{_of_attribute(name, of, at)} AS a{at}" for at, (name, of) in enumerate(stream.attributes)),
    )
    return values.selectExpr(
        "raw", "place", *(f"a{at}" for at in count), f"{_line_problem(stream)} AS {PROBLEM}"
    )


def _path(stream: Stream, name: str) -> str:
    mark = "'" if '"' in name else '"'
    if mark in name:
        message = f"the attribute `{name}` of `{stream.name}` has both kinds of quotes, and cannot be read from JSON"
        raise refuse_feed("feed-schema", message)
    return quote_text(f"$[0][{mark}{name}{mark}]")


def _of_attribute(name: str, of: Type, at: int) -> str:
    # a punctuation is an object: its text is read where the others are
    return (
        f"CASE WHEN startswith(k{at}, 'OBJECT') THEN to_json(x{at}) END"
        if name == SP
        else _of_variant(of, at)
    )


def _of_variant(of: Type, at: int) -> str:
    """The value where its JSON type fits: a text is no number, `1.0` no integer."""
    value, kind = f"x{at}", f"k{at}"
    match of.kind:
        case Kind.INT | Kind.BIGINT:
            return f"CASE WHEN {kind} = 'BIGINT' THEN try_variant_get({value}, '$', '{spark_type(of)}') END"
        case Kind.DOUBLE:
            number = f"try_variant_get({value}, '$', 'DOUBLE')"
            fits = f"({kind} IN ('BIGINT', 'DOUBLE') OR startswith({kind}, 'DECIMAL'))"
            # adding zero takes the sign off a negative one
            return f"CASE WHEN {fits} AND {is_finite(number)} THEN {number} + 0e0 END"
        case Kind.BOOLEAN:
            return f"CASE WHEN {kind} = 'BOOLEAN' THEN try_variant_get({value}, '$', 'BOOLEAN') END"
        case Kind.STRING:
            return f"t{at}"
        case Kind.TIMESTAMP:
            return read_moment(f"t{at}")
        case _:
            raise TypeError(f"unknown type {of}")


def _line_problem(stream: Stream) -> str:
    misfits = " ".join(
        f"WHEN given{at} AND a{at} IS NULL THEN {write_misfit(name, of)}"
        for at, (name, of) in enumerate(stream.attributes)
    )
    return (
        f"CASE WHEN raw IS NULL THEN 'the value is missing'"
        f" WHEN octet_length(raw) > {LONGEST_LINE} THEN 'the line is longer than {LONGEST_LINE} bytes'"
        f" WHEN NOT whole THEN {_unread()}"
        f" WHEN NOT open THEN 'the line is not an object' {misfits} END"
    )


def _unread() -> str:
    """Why a line is no JSON of ours, told by what a laxer reader takes."""
    return (
        "CASE WHEN NOT is_valid_utf8(raw) THEN 'the line is not JSON'"
        f" WHEN {_lax(False)} AND json_array_length(concat('[', raw, ',0]')) = 2 THEN"
        r" CASE WHEN contains(lower(raw), '\\ud') THEN 'a text has half of a surrogate pair'"
        " ELSE 'an attribute is given twice' END"
        f" WHEN NOT {_lax(False)} AND {_lax(True)} THEN 'a number is not finite'"
        " ELSE 'the line is not JSON' END"
    )


def _lax(numbers: bool) -> str:
    options = f"map('allowNonNumericNumbers', '{str(numbers).lower()}', 'allowSingleQuotes', 'false')"
    return f"(from_json(raw, '_corrupt_record STRING', {options})._corrupt_record IS NULL)"
