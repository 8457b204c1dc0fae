"""The records of a topic as elements of a stream, in Spark's own expressions.

Beside its value a record has a key, a time, a place and headers: some are attributes, `sp` is a punctuation that stands just
before the record's tuple, and the sender's two say who sent it. What is wrong with a record is told with its place, as
`topic/partition/offset`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.expr.types import Kind, Type
from sluicegate.language.kafka_options import HEADER, KafkaTopic
from sluicegate.language.punctuation_wire import MOST_CHARACTERS
from sluicegate.policy.model import Stream
from sluicegate.runtime.feed.carriage import SP, find_sender_column
from sluicegate.runtime.feed.decode_columns import fit_column
from sluicegate.runtime.feed.decode_lines import TEXT_COLUMN, read_lines
from sluicegate.runtime.feed.misfits import PROBLEM, write_misfit
from sluicegate.runtime.feed.moments import in_years, read_moment
from sluicegate.runtime.inputs import LONGEST_LINE
from sluicegate.runtime.kafka.decoded import BESIDE, BODY, TOLD, make_step
from sluicegate.runtime.kafka.messages import MessagePlan, plan_messages
from sluicegate.runtime.kafka.options import LONGEST_JUDGED, MOST_HEADERS, MOST_SAID
from sluicegate.runtime.kafka.signatures import write_sender
from sluicegate.targets.spark_text import quote_text, write_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNSIGNED = "it is not signed by a sender whose key is known"
CROWDED = f"it has more than {MOST_HEADERS} headers, {MOST_SAID} of them `sp`, or {LONGEST_LINE} bytes beside its value"
LONG_SP = f"a punctuation is longer than {MOST_CHARACTERS} bytes"
LONG_RECORD = f"it is longer than {LONGEST_JUDGED} bytes, and the stream is punctuated"
NOT_BROKERS = "its timestamp is not the broker's, and not signed"
_KEYS = "_keys"
_TYPES = {"long": "long", "double": "double", "truth": "boolean", "text": "binary"}
_NO_BYTES = "CAST(NULL AS BINARY)"
_LONGEST_NAME = 1024
"""Bytes of a sender: it stands beside each of a record's punctuations."""


def _find_headers(name: str) -> str:
    return f"filter(headers, h -> h.key = {quote_text(name)})"


_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType AS stamped")
_MANY = f"size(headers) > {MOST_HEADERS} OR size({_find_headers('sp')}) > {MOST_SAID}"
_SIZES = "aggregate(headers, 0L, (n, h) -> n + octet_length(h.key) + coalesce(octet_length(h.value), 0))"
_KEY_SIZE = "coalesce(octet_length(key), 0)"
_IS_LIMITED = (
    f"CASE WHEN headers IS NULL THEN {_KEY_SIZE} <= {LONGEST_LINE}"
    f" ELSE NOT ({_MANY}) AND {_SIZES} + {_KEY_SIZE} <= {LONGEST_LINE} END"
)
"""That a record has no more than `_limit` lets be read."""


@dataclass(frozen=True, slots=True)
class Records:
    """How the records of a topic are read."""

    topic: KafkaTopic
    keys: Mapping[str, Sequence[tuple[bytes, bytes]]] | None = None
    """Of each sender, where records are signed."""

    def read(self, frame: DataFrame, stream: Stream, tells: bool = True) -> DataFrame:
        """`raw`, `place`, `sender`, `a0` … for the attributes, and `_problem`; `stream` is with what its elements carry.

        Unless it `tells`, what does not fit and punctuations are left out, and `raw`, `place` and `sender` too.
        """
        names = [name for name, _ in stream.attributes]
        parts = {attribute: part for attribute, part in self.topic.parts if attribute in names}
        plan = plan_messages(stream, self.topic.messages, list(parts))
        if tells:
            known = _limit(frame, stream.punctuated_by is not None)
            elements = self._divide(known, parts, SP in names, plan is not None)
        else:
            elements = self._keep_fitting(frame, parts, plan is not None)
        if plan is None:
            values = _read_lines(elements, stream, tells)
        else:
            values = _read_messages(elements, stream, plan)
        return _put_together(values, stream, parts) if tells else _put_fitting(values, stream, parts)

    def _divide(self, known: DataFrame, parts: Mapping[str, str], has_sp: bool, limits: bool) -> DataFrame:
        """`body`, and in `p` all else of a record: one row for each punctuation in its headers, then one for its value."""
        signed = self.keys is not None
        if self.keys is not None:
            known = _join_keys(known, self.keys)
        known = known.selectExpr("*", f"{write_sender(_KEYS) if signed else write_null_text()} AS sender")
        divided = known.selectExpr("*", _write_elements() if has_sp else f"{_NO_BYTES} AS sp")
        if not has_sp:
            divided = divided.withColumnRenamed("value", BODY)
        cases = [
            ("too_much IS NOT NULL", "too_much"),
            *self._list_told(parts),
            (f"octet_length(sp) > {MOST_CHARACTERS}", quote_text(LONG_SP)),
            ("NOT is_valid_utf8(CAST(sp AS STRING))", "'the header `sp` is not text'"),
        ]
        if limits:
            cases += [
                (f"sp IS NULL AND {BODY} IS NULL", "'the value is missing'"),
                (
                    f"octet_length({BODY}) > {LONGEST_LINE}",
                    f"'the value is longer than {LONGEST_LINE} bytes'",
                ),
            ]
        beside = {
            "place": "concat(topic, '/', partition)",
            "at": "offset",
            "sender": "sender",
            "sp": "sp",
            TOLD: f"CASE {' '.join(f'WHEN {when} THEN {text}' for when, text in cases)} END",
            **_list_parts(parts),
        }
        return divided.selectExpr(BODY, f"{_write_struct(beside)} AS {BESIDE}")

    def _keep_fitting(self, frame: DataFrame, parts: Mapping[str, str], limits: bool) -> DataFrame:
        """`body` and `p` of the records that nothing is wrong with, for one who does not tell: `p` has their parts alone."""
        kept = frame.where(_IS_LIMITED)
        if limits:
            kept = kept.where(f"octet_length(value) <= {LONGEST_LINE}")
        if self.keys is None and not parts:
            return kept.selectExpr(f"value AS {BODY}", f"{write_null_text()} AS {BESIDE}")
        kept = kept.selectExpr(*_COLUMNS, "coalesce(headers, array()) AS headers")
        if self.keys is not None:
            kept = _join_keys(kept, self.keys).selectExpr("*", f"{write_sender(_KEYS)} AS sender")
        for when, _ in self._list_told(parts):
            kept = kept.where(f"NOT coalesce({when}, FALSE)")
        beside = _write_struct(_list_parts(parts)) if parts else write_null_text()
        return kept.selectExpr(f"value AS {BODY}", f"{beside} AS {BESIDE}")

    def _list_told(self, parts: Mapping[str, str]) -> list[tuple[str, str]]:
        """What may be wrong with who sent a record and with its parts: when, and what is said of it."""
        signed = self.keys is not None
        cases = [("sender IS NULL", quote_text(UNSIGNED))] if signed else []
        if signed and "timestamp" in parts.values():
            cases.append(("stamped <> 1", quote_text(NOT_BROKERS)))
        for part in parts.values():
            if part.startswith(HEADER):
                name = part.removeprefix(HEADER)
                told = quote_text(f"the header `{name}` is given twice")
                cases.append((f"size({_find_headers(name)}) > 1", told))
        return cases


def _list_parts(parts: Mapping[str, str]) -> dict[str, str]:
    return {f"m{at}": _write_part(part) for at, part in enumerate(parts.values())}


def _write_struct(fields: Mapping[str, str]) -> str:
    inside = ", ".join(f"'{name}', {text}" for name, text in fields.items())
    return f"named_struct({inside})"


def _limit(frame: DataFrame, judged: bool) -> DataFrame:
    """What is read of a record; of one that has too much, its place alone.

    Before anything looks into headers: their number is the producer's, and what comes after goes through them again and again.
    """
    counted = frame.selectExpr(
        *_COLUMNS, "headers",
        f"headers IS NOT NULL AND ({_MANY}) AS many",
        # most records have none
        f"CASE WHEN headers IS NULL THEN 0L ELSE {_SIZES} END + {_KEY_SIZE} AS beside",
    )  # fmt: skip
    whole = "beside + coalesce(octet_length(value), 0)"
    cases = [f"WHEN many OR beside > {LONGEST_LINE} THEN {quote_text(CROWDED)}"]
    if judged:
        cases.append(f"WHEN {whole} > {LONGEST_JUDGED} THEN {quote_text(LONG_RECORD)}")
    return counted.selectExpr("*", f"CASE {' '.join(cases)} END AS too_much").selectExpr(
        *(f"CASE WHEN too_much IS NULL THEN {name} END AS {name}" for name in ("key", "value")),
        *("topic", "partition", "offset", "timestamp", "stamped", "too_much"),
        "CASE WHEN too_much IS NULL AND headers IS NOT NULL THEN headers ELSE array() END AS headers",
    )


def write_null_text() -> str:
    return "CAST(NULL AS STRING)"


def _join_keys(frame: DataFrame, keys: Mapping[str, Sequence[tuple[bytes, bytes]]]) -> DataFrame:
    """All keys beside each record: a row of data, which neither plans nor logs show."""
    from pyspark.sql.functions import broadcast

    kind = f"{_KEYS} map<string, array<struct<inner: binary, outer: binary>>>"
    row = [({name: list(blocks) for name, blocks in keys.items()},)]
    return frame.crossJoin(broadcast(frame.sparkSession.createDataFrame(row, kind)))


def _write_elements() -> str:
    """Rows `sp`, `body`: the punctuations of the headers, then the value."""
    tuple_ = f"array(named_struct('sp', {_NO_BYTES}, '{BODY}', value))"
    said = (
        f"transform({_find_headers('sp')},"
        f" h -> named_struct('sp', coalesce(h.value, X''), '{BODY}', {_NO_BYTES}))"
    )
    only = f"value IS NULL AND size({_find_headers('sp')}) > 0"
    return f"inline(CASE WHEN {only} THEN {said} WHEN size(headers) = 0 THEN {tuple_} ELSE concat({said}, {tuple_}) END)"


def _write_part(part: str) -> str:
    match part:
        case "key":
            return "CAST(key AS STRING)"
        case "timestamp":
            # one that has none has the moment before 1970
            return "CASE WHEN stamped >= 0 THEN timestamp END"
        case "partition" | "offset":
            return part
        case _:
            return f"CAST(get({_find_headers(part.removeprefix(HEADER))}, 0).value AS STRING)"


def _read_lines(elements: DataFrame, stream: Stream, tells: bool) -> DataFrame:
    """JSON; a punctuation of a header stands where an object that says nothing would."""
    value = f"CASE WHEN {BESIDE}.sp IS NULL THEN {BODY} ELSE X'7B7D' END" if tells else BODY
    return read_lines(elements.selectExpr(f"{value} AS {TEXT_COLUMN}", BESIDE), stream, BESIDE, tells)


def _read_messages(elements: DataFrame, stream: Stream, plan: MessagePlan) -> DataFrame:
    from pyspark.sql.types import StructType

    short = elements.selectExpr(
        f"CASE WHEN octet_length({BODY}) <= {LONGEST_LINE} THEN {BODY} END AS {BODY}", BESIDE
    )
    kinds = plan.decoder.kinds
    # all may be NULL, as far as Python can tell
    made = StructType().add(BESIDE, short.schema[BESIDE].dataType).add(BODY, "binary").add(TOLD, "string")
    for at, kind in enumerate(kinds):
        made = made.add(f"x{at}", _TYPES[kind])
    found = short.mapInArrow(make_step(plan.decoder), made).selectExpr(
        f"base64({BODY}) AS raw",
        f"{BESIDE} AS place",
        TOLD,
        *(f"{_as_text(f'x{at}', kind)} AS x{at}" for at, kind in enumerate(kinds)),
    )
    columns = {attribute: at for at, attribute in enumerate(plan.attributes)}
    values = found.selectExpr(
        "*", *(_write_value(stream, columns, kinds, at) for at in range(len(stream.attributes)))
    )
    misfits = " ".join(
        f"WHEN x{at} IS NOT NULL AND a{attribute} IS NULL THEN {write_misfit(*stream.attributes[attribute])}"
        for attribute, at in columns.items()
    )
    problem = f"CASE WHEN {TOLD} IS NOT NULL THEN {TOLD} {misfits} END AS {PROBLEM}"
    return values.selectExpr("raw", "place", *(f"a{at}" for at in range(len(stream.attributes))), problem)


def _as_text(column: str, kind: str) -> str:
    return f"CAST({column} AS STRING)" if kind == "text" else column


def _write_value(stream: Stream, columns: Mapping[int, int], kinds: Sequence[str], at: int) -> str:
    of = stream.attributes[at][1]
    if at not in columns:
        return f"{write_null(of)} AS a{at}"
    column = columns[at]
    return f"{_fit(f'x{column}', kinds[column], of)} AS a{at}"


def _fit(column: str, kind: str, of: Type) -> str:
    if of.kind is Kind.TIMESTAMP:
        return read_moment(column) if kind == "text" else in_years(column)
    held = {"long": "bigint", "double": "double", "truth": "boolean", "text": "string"}[kind]
    found = fit_column(column, held, of, False)
    if found is None:
        raise TypeError(f"a {kind} is no {of}")
    return found


def _put_fitting(values: DataFrame, stream: Stream, parts: Mapping[str, str]) -> DataFrame:
    """As `_put_together`, of the tuples that fit; there are no punctuations, in which some parts would not count."""
    names = [name for name, _ in stream.attributes]
    own = {names.index(name): at for at, name in enumerate(parts)}
    kept = values.where(f"{PROBLEM} IS NULL")
    if own:
        kept = kept.selectExpr("*", *(f"place.m{at}" for at in own.values()))
        kept = kept.selectExpr(
            "*",
            *(
                f"{_fit_part(f'm{at}', parts[names[of]], stream.attributes[of][1])} AS f{at}"
                for of, at in own.items()
            ),
        )
        for of, at in own.items():
            kept = kept.where(f"a{of} IS NULL AND (m{at} IS NULL OR f{at} IS NOT NULL)")
    return kept.selectExpr(
        *(f"f{own[of]} AS a{of}" if of in own else f"a{of}" for of in range(len(names))),
        f"{write_null_text()} AS {PROBLEM}",
    )


def _put_together(values: DataFrame, stream: Stream, parts: Mapping[str, str]) -> DataFrame:
    """Parts of the record where their attributes are; the value has no say in these, and must not try."""
    names = [name for name, _ in stream.attributes]
    count = range(len(names))
    own = {names.index(name): at for at, name in enumerate(parts)}
    sender = find_sender_column(stream) if stream.punctuated_by is not None else None
    said = f"a{names.index(SP)} IS NULL" if SP in names else "TRUE"
    sp, told = "place.sp", f"place.{TOLD}"
    opened = values.selectExpr(
        "*", f"{sp} IS NULL AND {said} AS plain", *(f"place.m{at}" for at in own.values())
    )
    fitted = opened.selectExpr(
        "*",
        *(
            f"{_fit_part(f'm{at}', parts[names[of]], stream.attributes[of][1])} AS f{at}"
            for of, at in own.items()
        ),
    )
    cases = [
        f"WHEN {told} IS NOT NULL THEN {told}",
        f"WHEN {sp} IS NULL AND {PROBLEM} IS NOT NULL THEN {PROBLEM}",
    ]
    if SP in names:
        cases.append(f"WHEN octet_length(a{names.index(SP)}) > {MOST_CHARACTERS} THEN {quote_text(LONG_SP)}")
    for of, at in own.items():
        # a punctuation has a sender, and no other part
        when = "TRUE" if names[of] == sender else "plain"
        both = quote_text(f"`{names[of]}` is a part of the record, and in its value")
        cases.append(f"WHEN {when} AND a{of} IS NOT NULL THEN {both}")
        cases.append(
            f"WHEN {when} AND m{at} IS NOT NULL AND f{at} IS NULL THEN {write_misfit(*stream.attributes[of])}"
        )
    if sender is not None:
        at = names.index(sender)
        name = f"f{own[at]}" if at in own else f"a{at}"
        cases.append(f"WHEN coalesce(CAST({name} AS STRING), '') = '' THEN 'it has no sender'")
        cases.append(f"WHEN NOT {_is_name(name)} THEN 'the name of its sender is too long'")
    problem = f"CASE {' '.join(cases)} END || concat(' (', place.place, '/', place.at, ')')"
    return fitted.selectExpr(
        f"coalesce(CAST({sp} AS STRING), raw) AS raw",
        "place.place AS place",
        "place.sender AS sender",
        *(_write_final(names[of], of, own, sender, sp) for of in count),
        f"{problem} AS {PROBLEM}",
    )


def _fit_part(column: str, part: str, of: Type) -> str:
    held = {"timestamp": "timestamp", "partition": "int", "offset": "bigint"}.get(part, "string")
    found = fit_column(column, held, of, True)
    if found is None:
        raise TypeError(f"`{part}` is no {of}")
    return found


def _is_name(column: str) -> str:
    return f"octet_length(CAST({column} AS STRING)) <= {_LONGEST_NAME}"


def _write_final(name: str, of: int, own: Mapping[int, int], sender: str | None, sp: str) -> str:
    if name == SP:
        return f"coalesce(CAST({sp} AS STRING), a{of}) AS a{of}"
    if of not in own:
        return f"a{of}"
    if name == sender:
        return f"CASE WHEN {_is_name(f'f{own[of]}')} THEN f{own[of]} END AS a{of}"
    return f"CASE WHEN plain THEN f{own[of]} ELSE a{of} END AS a{of}"
