"""Moving objects with policies: what the generator says passes does, and punctuations that are alike are read as each alone."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sluicegate.expr.types import Kind
from sluicegate.language.load import read_catalog
from sluicegate.policy.catalog import Catalog
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.verdict import standing_of
from sluicegate.policy.who import Who, write_who
from sluicegate.runtime.shield.bounded import judge_elements
from sluicegate.runtime.shield.rows import Alike, Coder, Rows, make_alike, make_rows
from sluicegate.runtime.shield.verdicts import Judge
from sluicegate.runtime.shield.wire import PunctuationReader
from sluicegate.testing.punctuated import (
    Moving,
    list_roles,
    make_elements,
    make_reports,
    passes,
    write_streams,
)

NOW = 1_800_000_000_000_000


def catalog_of(moving: Moving) -> Catalog:
    roles = "".join(f"CREATE ROLE {each};" for each in list_roles(moving))
    reader = f"CREATE USER reader ROLES ({', '.join(moving.readers)});"
    return read_catalog(roles + write_streams(("M", "N"), True) + reader)


@pytest.mark.parametrize("ratio", [1, 3, 10])
def test_the_policies_allow_what_the_generator_says(ratio: int) -> None:
    moving = Moving(objects=50, ratio=ratio, roles=3, readers=("R0", "R1"))
    catalog = catalog_of(moving)
    released = judge_elements(catalog.streams["M"], catalog, make_elements(moving, 0, 1000))
    assert released.rows.num_rows == 1000
    who = write_who(Who(standing_of(catalog, "reader"), ()))
    verdicts = Judge(catalog.streams["M"]).judge(released.classes, [who]).table
    allowed = np.isin(released.rows["_policy"], verdicts["h_policy"].to_numpy())
    assert allowed.tolist() == passes(moving, 0, 1000).tolist()
    assert 0.4 < allowed.mean() < 0.6
    assert len(released.classes) == 3


def test_elements_are_the_reports_with_punctuations_between() -> None:
    moving = Moving(objects=20, ratio=5, joining=0.3, seed=3)
    elements, reports = make_elements(moving, 100, 300), make_reports(moving, 100, 300)
    assert elements.filter(pc.is_null(elements["_sp"])).select(reports.column_names) == reports
    assert elements.num_rows - 300 == 60
    assert make_elements(moving, 100, 300) == elements
    other = make_reports(Moving(objects=20, joining=0.3, seed=4), 100, 300)
    meeting = np.isin(other["dest"], reports["dest"].to_numpy())
    assert 0.2 < meeting.mean() < 0.4


def test_a_generator_wants_objects_and_roles() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        Moving(ratio=0)


def _columns(rows: Rows) -> dict[str, list[object]]:
    return {each.name: getattr(rows, each.name).tolist() for each in fields(rows)}


def test_what_is_alike_is_read_as_each_alone() -> None:
    moving = Moving(objects=30, ratio=2, roles=2, readers=("R0", "R1"))
    catalog = catalog_of(moving)
    texts = make_elements(moving, 0, 400)["_sp"].combine_chunks().drop_null()
    elsewhere = texts[0].as_py().replace('{"tuples"', '{"streams": "N", "tuples"')
    texts = pa.concat_arrays([texts, pa.array([elsewhere])])
    senders = pa.array(["fleet"] * len(texts))
    reader = PunctuationReader(catalog.streams["M"], catalog, NOW, "fleet")
    found = reader.read_all(texts, senders)
    assert isinstance(found, Alike)
    each = [reader.read(text, "fleet") for text in texts.to_pylist()]
    alone = [one for one in each if isinstance(one, Punctuation)]
    assert len(alone) == len(found) == len(texts)
    at = np.arange(len(texts))
    members, others = Coder[object](), Coder[object]()
    ours = make_alike(found, at, "M", Coder(), members)  # type: ignore[arg-type]
    theirs = make_rows(alone, at, "M", Kind.INT, Coder(), others)  # type: ignore[arg-type]
    assert members.values == others.values
    assert _columns(ours) == _columns(theirs)


@pytest.mark.parametrize(
    ("text", "sender"),
    [
        ('{"ddp": {"tuples": 1}, "srp": ["R0"], "ts": "2026-01-01T00:00:00", "sn": 0}', "fleet"),
        ('{"ddp": {"tuples": "*"}, "srp": ["R0"], "ts": "2026-01-01T00:00:00", "sn": 1}', "fleet"),
        ('{"ddp": {"tuples": 1}, "srp": ["Nobody"], "ts": "2026-01-01T00:00:00", "sn": 1}', "fleet"),
        ('{"ddp": {"tuples": 1}, "srp": ["R0"], "ts": "2026-01-01T00:00:00", "sn": 1}', "other"),
        ('{"ddp": {"tuples": 1}, "srp": ["R0"], "ts": "2026-01-01T00:00:00", "sn": 1}', None),
        ('{"ddp": {"tuples": 1}, "srp": ["R0"], "ts": "2099-01-01T00:00:00", "sn": 1}', "fleet"),
    ],
)
def test_one_that_is_not_makes_all_be_read_alone(text: str, sender: str | None) -> None:
    moving = Moving(objects=30)
    catalog = catalog_of(moving)
    good = make_elements(moving, 0, 20)["_sp"].combine_chunks().drop_null()
    texts = pa.concat_arrays([good, pa.array([text])])
    senders = pa.array([*["fleet"] * len(good), sender], pa.string())
    reader = PunctuationReader(catalog.streams["M"], catalog, NOW, "fleet")
    found = reader.read_all(texts, senders)
    assert isinstance(found, list)
    assert found == [
        reader.read(one, who) for one, who in zip(texts.to_pylist(), senders.to_pylist(), strict=True)
    ]
