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
from sluicegate.targets.spark_text import is_finite, quote_name, quote_text, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXT_COLUMN = "value"
_BLANKS = " \t\n\r\x0b\x0c"
# closes the array that a line is read within: a line cannot end it before
_SEAL = f"s{secrets.token_hex(8)}"
_WHOLE = f"variant_get(v, '$[1].{_SEAL}', 'VARIANT') IS NOT NULL"
_BROKEN = f"_{_SEAL}"
"""The column in which `from_json` says that a line, or a value, is not as declared; no attribute has its name."""
_STEADY = "spark_partition_id() >= 0"
"""Always so, but Spark does not know it: what is under it is computed once for a row, not again for each condition above."""
_OTHERS = ", ".join(str(ord(each)) for each in '-0123456789tf[{"')
"""How a value begins that is no text, and is taken as one by `from_json`; of a number without end it makes `"Infinity"`, quotes and all."""


def read_lines(frame: DataFrame, stream: Stream, place: str, tells: bool = True) -> DataFrame:
    """`raw`, `place`, `a0` … for the attributes, and `_problem`; blank lines are left out. Reasons are empty unless it `tells`.

    A line is read twice: by `from_json`, which takes values out of it much faster, and as a variant, which is strict and knows
    what is given twice. Where the first is laxer, which is about texts alone, the second is asked; it also tells what is wrong.
    """
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    if found.get(TEXT_COLUMN) not in ("string", "binary"):
        raise refuse_feed("feed-schema", f"the feed of `{stream.name}` has no column `{TEXT_COLUMN}` of text")
    texts = frame.selectExpr(f"CAST({TEXT_COLUMN} AS STRING) AS raw", f"{place} AS place").selectExpr(
        "raw", "place", f"trim(LEADING {quote_text(_BLANKS)} FROM raw) AS text"
    )
    # a limit before anything reads the text
    short = f"octet_length(raw) <= {LONGEST_LINE}"
    parsed = texts.where("raw IS NULL OR text <> ''" if tells else "text <> ''").selectExpr(
        "raw",
        "place",
        "startswith(text, '{') AS open",
        f"CASE WHEN {_STEADY} AND {short} THEN {_write_from_json(stream)} END AS j",
    )
    attributes = [(at, name, of) for at, (name, of) in enumerate(stream.attributes)]
    opened = parsed.selectExpr(
        "raw",
        "place",
        "open",
        f"j IS NOT NULL AND j.{_BROKEN} IS NULL AS taken",
        *(f"j.{quote_name(name)} AS s{at}" for at, name, _ in attributes),
    )
    # above what was taken out: conditions on values leave out lines before they are read strictly
    values = opened.selectExpr(
        "*",
        f"CASE WHEN {short} AND is_valid_utf8(raw)"
        f""" THEN try_parse_json(concat('[', raw, ',{{"{_SEAL}":0}}]')) END AS v""",
        *(f"{_of_attribute(of, at)} AS a{at}" for at, name, of in attributes if name != SP),
    )
    fits = " AND ".join(["open AND taken", _WHOLE, *(_fits(stream, *each) for each in attributes)])
    problem = f"CASE WHEN {fits} THEN NULL ELSE {_line_problem(stream)} END"
    if not tells:
        # in the form that a condition on it is made simple from
        problem = f"CASE WHEN NOT coalesce({fits}, FALSE) THEN '' END"
    return values.selectExpr(
        "raw",
        "place",
        *(_of_punctuation(stream, at) if name == SP else f"a{at}" for at, name, _ in attributes),
        f"{problem} AS {PROBLEM}",
    )


def _write_from_json(stream: Stream) -> str:
    # times and punctuations are looked at as texts
    kept = (Kind.STRING, Kind.TIMESTAMP)
    types = [
        f"{quote_name(name)} {'STRING' if of.kind in kept else spark_type(of)}"
        for name, of in stream.attributes
    ]
    # with any option Spark leaves the schema as it is, also where a value is not used
    options = f"map('columnNameOfCorruptRecord', '{_BROKEN}', 'allowNonNumericNumbers', 'false')"
    return f"from_json(raw, {quote_text(', '.join([*types, f'{_BROKEN} STRING']))}, {options})"


def _given(stream: Stream, name: str) -> str:
    return f"variant_get(v, {_path(stream, name)}, 'VARIANT')"


def _kind(stream: Stream, name: str) -> str:
    return f"schema_of_variant({_given(stream, name)})"


def _path(stream: Stream, name: str) -> str:
    mark = "'" if '"' in name else '"'
    if mark in name:
        message = f"the attribute `{name}` of `{stream.name}` has both kinds of quotes, and cannot be read from JSON"
        raise refuse_feed("feed-schema", message)
    return quote_text(f"$[0][{mark}{name}{mark}]")


def _of_punctuation(stream: Stream, at: int) -> str:
    """A punctuation is an object: its text is read where the others are."""
    fits = f"s{at} IS NOT NULL AND startswith({_kind(stream, SP)}, 'OBJECT')"
    return f"CASE WHEN {fits} THEN to_json({_given(stream, SP)}) END AS a{at}"


def _of_attribute(of: Type, at: int) -> str:
    match of.kind:
        case Kind.INT | Kind.BIGINT | Kind.BOOLEAN | Kind.STRING:
            return f"s{at}"
        case Kind.DOUBLE:
            # adding zero takes the sign off a negative one
            return f"s{at} + 0e0"
        case Kind.TIMESTAMP:
            return read_moment(f"s{at}")
        case _:
            raise TypeError(f"unknown type {of}")


def _fits(stream: Stream, at: int, name: str, of: Type) -> str:
    """What is left to be said of a value that `from_json` took."""
    if name == SP:
        return f"(s{at} IS NULL OR startswith({_kind(stream, name)}, 'OBJECT'))"
    match of.kind:
        case Kind.DOUBLE:
            return f"coalesce({is_finite(f's{at}')}, TRUE)"
        case Kind.TIMESTAMP:
            # no number, truth value, array or object is written as a time
            return f"(s{at} IS NULL OR a{at} IS NOT NULL)"
        case Kind.STRING:
            is_text = f"{_kind(stream, name)} = 'STRING'"
            return f"(s{at} IS NULL OR ascii(s{at}) NOT IN ({_OTHERS}) OR {is_text})"
        case _:
            # a text is no number there, and `1.0` no integer
            return "TRUE"


def _misfits(stream: Stream, at: int, name: str, of: Type) -> str:
    """Whether a value is why the line does not fit: by the variant, apart from times."""
    kind = _kind(stream, name)
    number = f"try_variant_get(v, {_path(stream, name)}, '{spark_type(of)}')"
    fits = {
        Kind.INT: f"{kind} = 'BIGINT' AND {number} IS NOT NULL",
        Kind.BIGINT: f"{kind} = 'BIGINT'",
        Kind.DOUBLE: f"({kind} IN ('BIGINT', 'DOUBLE') OR startswith({kind}, 'DECIMAL')) AND {is_finite(number)}",
        Kind.BOOLEAN: f"{kind} = 'BOOLEAN'",
        Kind.STRING: f"{kind} = 'STRING'",
        Kind.TIMESTAMP: f"{kind} = 'STRING' AND a{at} IS NOT NULL",
    }[of.kind]
    fits = f"startswith({kind}, 'OBJECT')" if name == SP else fits
    return f"coalesce({kind}, 'VOID') <> 'VOID' AND NOT ({fits})"


def _line_problem(stream: Stream) -> str:
    misfits = " ".join(
        f"WHEN {_misfits(stream, at, name, of)} THEN {write_misfit(name, of)}"
        for at, (name, of) in enumerate(stream.attributes)
    )
    return (
        f"CASE WHEN raw IS NULL THEN 'the value is missing'"
        f" WHEN octet_length(raw) > {LONGEST_LINE} THEN 'the line is longer than {LONGEST_LINE} bytes'"
        f" WHEN NOT ({_WHOLE}) THEN {_unread()}"
        f" WHEN NOT open THEN 'the line is not an object' {misfits} ELSE 'the line does not fit' END"
    )


def _unread() -> str:
    """Why a line is no JSON of ours, told by what a laxer reader takes."""
    # of two lengths: a line that closes the array itself has the same for both
    alone = " AND ".join(
        f"json_array_length(concat('[', raw, '{more}]')) = {length}"
        for more, length in ((",0", 2), (",0,0", 3))
    )
    return (
        "CASE WHEN NOT is_valid_utf8(raw) THEN 'the line is not JSON'"
        f" WHEN {_lax(False)} AND {alone} THEN"
        r" CASE WHEN contains(lower(raw), '\\ud') THEN 'a text has half of a surrogate pair'"
        " ELSE 'an attribute is given twice' END"
        f" WHEN NOT {_lax(False)} AND {_lax(True)} THEN 'a number is not finite'"
        " ELSE 'the line is not JSON' END"
    )


def _lax(numbers: bool) -> str:
    options = f"map('allowNonNumericNumbers', '{str(numbers).lower()}', 'allowSingleQuotes', 'false')"
    return f"(from_json(raw, '_corrupt_record STRING', {options})._corrupt_record IS NULL)"
