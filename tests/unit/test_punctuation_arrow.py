"""Punctuations in a column of Arrow: the same as in JSON, and nothing that NULL could be taken for."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.expr.types import INT
from sluicegate.language.load import read_catalog
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    OneOf,
    Pattern,
    Range,
    Restriction,
)
from sluicegate.runtime.feed.punctuation_arrow import REFUSED, write_texts
from sluicegate.runtime.pushed import ARROW, JSON, read_pushed

STREAM = read_catalog(
    "CREATE STREAM H (ts TIMESTAMP, id INT, beats INT) TIMESTAMP BY ts PUNCTUATED BY id OWNER dev; CREATE USER dev;"
).streams["H"]


def _pattern(of: pa.DataType) -> pa.DataType:
    forms = [
        ("all", pa.bool_()),
        ("is", of),
        ("in", pa.list_(of)),
        ("closed", pa.list_(of)),
        ("open", pa.list_(of)),
    ]
    return pa.struct(forms)


TYPE = pa.struct(
    [
        ("ddp", pa.struct([("tuples", _pattern(pa.int64())), ("attributes", _pattern(pa.string()))])),
        ("srp", pa.struct([("model", pa.string()), ("subjects", _pattern(pa.string()))])),
        ("sign", pa.string()),
        ("immutable", pa.bool_()),
        ("ts", pa.timestamp("ms", tz="UTC")),
        ("sn", pa.int16()),
    ]
)


def _in_arrow(pattern: Pattern) -> dict[str, Any]:
    match pattern:
        case Anything():
            return {"all": True}
        case Constant(value):
            return {"is": value}
        case OneOf(values):
            return {"in": list(values)}
        case Range(low, high, closed):
            return {"closed" if closed else "open": [low, high]}
        case _:
            raise AssertionError(pattern)


_ids = st.integers(-100, 100)
_tuples = st.one_of(
    st.just(Anything()),
    _ids.map(Constant),
    st.lists(_ids, min_size=2, max_size=4, unique=True).map(lambda found: OneOf(tuple(found))),
    st.tuples(_ids, _ids, st.booleans()).map(lambda found: Range(min(found[:2]), max(found[:2]), found[2])),
)
_names = st.sampled_from([Anything(), Constant("beats"), OneOf(("beats", "id"))])


@given(st.lists(st.tuples(_tuples, _names, st.booleans(), st.booleans(), st.integers(1, 500)), max_size=4))
def test_the_same_as_in_json(said: list[tuple[Pattern, Pattern, bool, bool, int]]) -> None:
    wanted, rows = [], []
    for tuples, attributes, positive, immutable, sn in said:
        ddp, srp = DataDescription(Anything(), tuples, attributes), Restriction("frbac", Constant("Doctor"))
        made = Punctuation("dev", 1_767_225_600_123_000, sn, ddp, srp, positive, immutable)
        wanted.append(json.loads(json.dumps(write_punctuation(made, INT))))
        rows.append(
            {
                "ddp": {"tuples": _in_arrow(tuples), "attributes": _in_arrow(attributes)},
                "srp": {"model": "frbac", "subjects": {"is": "Doctor"}},
                "sign": "+" if positive else "-",
                "immutable": immutable,
                "ts": 1_767_225_600_123,
                "sn": sn,
            }
        )
    found = [json.loads(each) for each in write_texts(pa.array(rows, TYPE)).to_pylist()]
    assert [_plain(each) for each in found] == [_plain(each) for each in wanted]


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Two ways to write one thing: `{"is": v}` and v, a list and a model with its subjects, all streams and nothing said."""
    ddp = {
        key: each["is"] if isinstance(each, dict) and "is" in each else each
        for key, each in found["ddp"].items()
    }
    return {**found, "srp": None, "ddp": {"streams": "*", **ddp}}


FULL = {
    "ddp": {"tuples": {"is": 1}, "attributes": {"all": True}},
    "srp": {"model": "frbac", "subjects": {"is": "Doctor"}},
    "sign": "+",
    "immutable": False,
    "ts": 0,
    "sn": 1,
}


@pytest.mark.parametrize(
    "changed",
    [
        {"ddp": None},
        {"ddp": {"tuples": None, "attributes": {"all": True}}},
        {"ddp": {"tuples": {}, "attributes": {"all": True}}},
        {"ddp": {"tuples": {"is": 1, "all": True}, "attributes": {"all": True}}},
        {"ddp": {"tuples": {"all": False}, "attributes": {"all": True}}},
        {"ddp": {"tuples": {"in": [1, None]}, "attributes": {"all": True}}},
        {"srp": None},
        {"srp": {"model": None, "subjects": {"is": "Doctor"}}},
        *({name: None} for name in ("sign", "immutable", "ts", "sn")),
    ],
)
def test_null_is_nowhere_taken_for_anything(changed: dict[str, Any]) -> None:
    assert write_texts(pa.array([{**FULL, **changed}, None], TYPE)).to_pylist() == [REFUSED, None]


def test_a_push_in_arrow_is_the_push_in_json() -> None:
    table = pa.table(
        {
            "_sp": pa.array([FULL, None], TYPE),
            "id": pa.array([None, 1], pa.int32()),
            "_sp_ts": pa.array([None, 0], pa.timestamp("us", tz="UTC")),
            "_sp_count": pa.array([None, 1], pa.int64()),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = [
        {"_sp": json.loads(str(write_texts(pa.array([FULL], TYPE))[0]))},
        {"id": 1, "_sp_ts": "1970-01-01T00:00:00", "_sp_count": 1},
    ]
    in_json = read_pushed(STREAM, JSON, json.dumps(body).encode(), 10, lambda _: True)
    in_arrow = read_pushed(STREAM, ARROW, sink.getvalue().to_pybytes(), 10, lambda _: True)
    assert (in_arrow.refused, in_json.refused) == ((), ())
    assert in_arrow.table.equals(in_json.table)
    assert json.loads(in_arrow.table["_sp"][0].as_py())["ddp"] == {"tuples": {"is": 1}, "attributes": "*"}
