"""Rows that are an object of JSON each: read strictly, as `runtime.inputs` reads the lines of a file."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from sluicegate.expr.types import STRING, Kind, Type
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SP
from sluicegate.runtime.feed.codes import refuse_feed
from sluicegate.runtime.feed.misfits import PROBLEM, write_misfit
from sluicegate.runtime.feed.moments import of_column_in_years, read_unzoned, read_zoned
from sluicegate.runtime.inputs import LONGEST_LINE
from sluicegate.targets.spark_text import is_finite, quote_name, quote_text, spark_type, write_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXT_COLUMN = "value"
_BLANKS = " \t\n\r\x0b\x0c"
# closes the array that a line is read within: a line cannot end it before
_SEAL = f"s{secrets.token_hex(8)}"
_BROKEN = f"_{_SEAL}"
"""The column in which `from_json` says that a line, or a value, is not as declared; no attribute has its name."""
_TAIL = """substring_index(raw, '"', -1)"""
_WORD = re.compile(r"\w+")
_BACKSLASH = "\\"
_STEADY = "spark_partition_id() >= 0"
"""Always so, but Spark does not know it: what is under it is computed once for a row, not again for each condition above."""
_OTHERS = quote_text('-0123456789tf[{"')
"""How a value begins that is no text, and is taken as one by `from_json`; of a number without end it makes `"Infinity"`, quotes and all."""


def read_lines(frame: DataFrame, stream: Stream, place: str, tells: bool = True) -> DataFrame:
    """`raw`, `place`, `a0` … for the attributes, and `_problem`; blank lines are left out.

    Unless it `tells`, so is what does not fit, and punctuations.

    A line is read by `from_json`, which takes values out of it fast, but is lax about texts, about what is given twice and about
    what follows. Where counting shows that a line has nothing of these (`_is_plain`), that is all; any other is read again as a
    variant, which is strict, and which also tells what is wrong.
    """
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    if found.get(TEXT_COLUMN) not in ("string", "binary"):
        raise refuse_feed("feed-schema", f"the feed of `{stream.name}` has no column `{TEXT_COLUMN}` of text")
    texts = frame.selectExpr(f"CAST({TEXT_COLUMN} AS STRING) AS raw", f"{place} AS place").selectExpr(
        "raw", "place", f"trim(LEADING {quote_text(_BLANKS)} FROM raw) AS text"
    )
    # a limit before anything reads the text
    short = f"octet_length(raw) <= {LONGEST_LINE}"
    # a blank one is no object either
    parsed = (texts.where("raw IS NULL OR text <> ''") if tells else texts).selectExpr(
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
    times = [at for at, _, of in attributes if of.kind is Kind.TIMESTAMP]
    if times:
        # one by one: a part that is used twice is computed once, and no lambda keeps Spark from compiling it
        opened = opened.selectExpr("*", *(f"{read_unzoned(f's{at}')} AS u{at}" for at in times))
        opened = opened.selectExpr("*", *(f"{read_zoned(f's{at}', f'u{at}')} AS z{at}" for at in times))
    valued = opened.selectExpr(
        "*", *(f"{_of_attribute(of, at)} AS a{at}" for at, name, of in attributes if name != SP)
    )
    fits = " AND ".join(["is_valid_utf8(raw)", *(_fits(*each) for each in attributes)])
    parse = f"""try_parse_json(concat('[', raw, ',{{"{_SEAL}":0}}]'))"""
    if not tells:
        # most lines need no variant: a column of it, or a part of an OR that stands there twice, Spark would compute for all
        strict = f"CASE WHEN {_is_plain(stream)} THEN TRUE ELSE {_fits_strictly(stream, parse)} END"
        said = [f"s{at} IS NULL" for at, name, _ in attributes if name == SP]
        # as one condition it stays above the times that it needs, and those of a query on other values go before it
        kept = valued.where(
            " AND ".join([*said, "open AND taken", f"CASE WHEN {fits} THEN {strict} ELSE FALSE END"])
        )
        return kept.selectExpr(
            "raw",
            "place",
            *(f"s{at} AS a{at}" if name == SP else f"a{at}" for at, name, _ in attributes),
            f"{write_null(STRING)} AS {PROBLEM}",
        )
    strict = _fits_strictly(stream, "v")
    # held, since it is long and used twice: written out in each place, it would double with every attribute
    plain = f"{_STEADY} AND open AND taken AND {fits} AND {_is_plain(stream)} AS plain"
    values = valued.selectExpr("*", plain).selectExpr(
        "*", f"CASE WHEN plain THEN NULL WHEN {short} AND is_valid_utf8(raw) THEN {parse} END AS v"
    )
    problem = f"CASE WHEN plain OR open AND taken AND {fits} AND {strict} THEN NULL ELSE {_line_problem(stream)} END"
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
    options = f"map('columnNameOfCorruptRecord', '{_BROKEN}', 'allowNonNumericNumbers', 'false', 'allowSingleQuotes', 'false')"
    return f"from_json(raw, {quote_text(', '.join([*types, f'{_BROKEN} STRING']))}, {options})"


def _given(stream: Stream, name: str, variant: str = "v") -> str:
    return f"variant_get({variant}, {_path(stream, name)}, 'VARIANT')"


def _kind(stream: Stream, name: str, variant: str = "v") -> str:
    return f"schema_of_variant({_given(stream, name, variant)})"


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
            return f"coalesce(u{at}, {of_column_in_years(f'z{at}')})"
        case _:
            raise TypeError(f"unknown type {of}")


def _fits(at: int, name: str, of: Type) -> str:
    """What is left to be said of a value that `from_json` took, apart from texts."""
    match of.kind:
        case Kind.DOUBLE:
            return f"coalesce({is_finite(f's{at}')}, TRUE)"
        case Kind.TIMESTAMP:
            # no number, truth value, array or object is written as a time
            return f"(s{at} IS NULL OR a{at} IS NOT NULL)"
        case _:
            # a text is no number there, and `1.0` no integer
            return "TRUE"


def _is_whole(variant: str) -> str:
    return f"variant_get({variant}, '$[1].{_SEAL}', 'VARIANT') IS NOT NULL"


def _fits_strictly(stream: Stream, variant: str) -> str:
    """That a line is one object, and that what `from_json` took for texts is."""
    conditions = [_is_whole(variant)]
    for at, (name, of) in enumerate(stream.attributes):
        kind = _kind(stream, name, variant)
        if name == SP:
            conditions.append(f"(s{at} IS NULL OR startswith({kind}, 'OBJECT'))")
        elif of.kind is Kind.STRING:
            conditions.append(f"(s{at} IS NULL OR NOT {_is_odd(at)} OR {kind} = 'STRING')")
    return " AND ".join(conditions)


def _is_plain(stream: Stream) -> str:
    """That a line which `from_json` took is nothing but one object of attributes, each given once, whose texts are texts.

    Without a backslash each two quotes are one text: the names that were found, and the texts among the values. If there are
    no more quotes than these need, then no name stands twice, none is unknown, and no value is an array or object with names of
    its own. The object ends with the first brace, which is the line's last character.
    """
    attributes = [(at, name, of) for at, (name, of) in enumerate(stream.attributes)]
    if not all(_WORD.fullmatch(name) for _, name, _ in attributes):
        # a name with a colon or a comma may be found where the end of one text is followed by another
        return "FALSE"
    quotes = " + ".join(_count_quotes(*each) for each in attributes)
    texts = [
        f"(s{at} IS NULL OR {_is_text(at, name)})" for at, name, of in attributes if of.kind is Kind.STRING
    ]
    return " AND ".join(
        [
            f"NOT contains(raw, {quote_text(_BACKSLASH)})",
            "octet_length(substring_index(raw, '}', 1)) = octet_length(raw) - 1",
            f"""octet_length(substring_index(raw, '"', {quotes})) = octet_length(raw) - 1 - octet_length({_TAIL})""",
            *texts,
        ]
    )


def _count_quotes(at: int, name: str, of: Type) -> str:
    given = 4 if of.kind in (Kind.STRING, Kind.TIMESTAMP) else 2
    # what was not taken may stand there as `null`, and is not counted where it is written with blanks
    return (
        f"CASE WHEN s{at} IS NOT NULL THEN {given} WHEN contains(raw, {_write_name(name)}) THEN 2 ELSE 0 END"
    )


def _write_name(name: str) -> str:
    return quote_text(f'"{name}":')


def _is_text(at: int, name: str) -> str:
    if name == SP:
        return "FALSE"
    quoted = " OR ".join(
        f"""contains(raw, concat({_write_name(name)}, '{blank}"', s{at}, '"'))""" for blank in ("", " ")
    )
    return f"NOT {_is_odd(at)} OR {quoted}"


def _is_odd(at: int) -> str:
    """Whether what was taken for a text may be none; an empty one counts, which is one."""
    return f"contains({_OTHERS}, left(s{at}, 1))"


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
        f" WHEN NOT ({_is_whole('v')}) THEN {_unread()}"
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
        f" CASE WHEN contains(lower(raw), {quote_text(_BACKSLASH + 'ud')}) THEN 'a text has half of a surrogate pair'"
        " ELSE 'an attribute is given twice' END"
        f" WHEN NOT {_lax(False)} AND {_lax(True)} THEN 'a number is not finite'"
        " ELSE 'the line is not JSON' END"
    )


def _lax(numbers: bool) -> str:
    options = f"map('allowNonNumericNumbers', '{str(numbers).lower()}', 'allowSingleQuotes', 'false')"
    return f"(from_json(raw, '_corrupt_record STRING', {options})._corrupt_record IS NULL)"
