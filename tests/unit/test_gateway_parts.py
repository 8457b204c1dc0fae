"""Parts of the gateway that need neither HTTP nor Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sluicegate.language.fold import apply
from sluicegate.language.load import read_catalog
from sluicegate.language.parse_statements import parse_statements
from sluicegate.policy.catalog import Catalog
from sluicegate.runtime.gate.events import Rows
from sluicegate.runtime.gate.layout import Field, Layout
from sluicegate.runtime.network.seats import Seat
from sluicegate.service.decisions import Decisions, known_streams
from sluicegate.service.encoding import Form, encode, find_form, write_sse
from sluicegate.service.limits import Buckets, Slots
from sluicegate.service.metrics import Gauge, Metrics
from sluicegate.service.naming import name_handle, normalize
from sluicegate.service.refusals import RefusedError
from sluicegate.source import SourceText

CATALOG = """
CREATE ROLE a; CREATE ROLE b; CREATE USER ann ROLES (a); CREATE USER bob ROLES (b);
CREATE STREAM S (ts TIMESTAMP, x INT) TIMESTAMP BY ts OWNER bob;
CREATE STREAM T (ts TIMESTAMP, y INT) TIMESTAMP BY ts;
SET FACT f('k') = 1;
CREATE GRANT one READ (x) ON S TO a;
CREATE GRANT two READ (y) ON T WHERE y < f('k') TO b;
CREATE GRANT write APPEND ON T TO a;
"""


def _change(catalog: Catalog, text: str) -> Catalog:
    return apply(catalog, parse_statements(SourceText("<change>", text)))


def test_a_bucket_fills_again_with_time() -> None:
    now = [0.0]
    buckets = Buckets(rate=2.0, burst=3.0, clock=lambda: now[0])
    assert [buckets.take("x") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.take("x") == pytest.approx(0.5)
    assert buckets.take("y") == 0.0
    now[0] = 0.5
    assert buckets.take("x") == 0.0
    with pytest.raises(RefusedError) as refused:
        buckets.check("x")
    assert refused.value.refused.code == "rate-limit"


def test_slots_are_given_back_also_after_an_error() -> None:
    slots = Slots(1, "stream-limit", "too many")
    with slots.take("x"), pytest.raises(RefusedError):
        slots.enter("x")
    with pytest.raises(ValueError, match="mine"), slots.take("x"):
        raise ValueError("mine")
    with slots.take("x"), slots.take("y"):
        assert slots.total == 2


def test_a_decision_is_made_again_only_where_something_of_it_changed() -> None:
    catalog, decisions, made = read_catalog(CATALOG), Decisions(most=2), []

    def find(user: str, under: Catalog) -> int:
        return int(decisions.find((user, "q"), user, under, lambda: made.append(user) or len(made)))

    assert (find("ann", catalog), find("ann", catalog), find("bob", catalog)) == (1, 1, 2)
    other_fact = _change(catalog, "SET FACT f('k') = 2;")
    assert find("ann", other_fact) == 1, "no grant of hers names the fact"
    assert find("bob", other_fact) == 3
    for changed in ("DROP GRANT one;", "ALTER USER ann ADD ROLE b;", "ALTER USER ann SET (x = 1);"):
        count = len(made)
        assert find("ann", _change(other_fact, changed)) == count + 1
        find("ann", other_fact)
    count = len(made)
    find("carl", catalog)
    find("dora", catalog)
    assert find("ann", other_fact) == count + 3, "it was forgotten"


def test_streams_are_known_by_read_grants_and_by_owning_them() -> None:
    catalog = read_catalog(CATALOG)
    assert set(known_streams(catalog, "ann").streams) == {"S"}
    assert set(known_streams(catalog, "bob").streams) == {"S", "T"}
    assert set(known_streams(catalog, "eve").streams) == set()


def test_a_handle_depends_on_who_sits_where_and_on_what_the_query_means() -> None:
    text = normalize("select x from S -- a remark\n where (x > 1) ;")
    assert normalize(text) == text
    assert text == normalize("SELECT x FROM S WHERE x > 1")
    seats = [
        Seat("ann", frozenset({"a"})),
        Seat("ann", frozenset({"a", "b"})),
        Seat("bob", frozenset({"a"})),
        Seat("ann", frozenset({"a"}), claimed=True),
        Seat("ann", frozenset({"a"}), (("x", None),)),
    ]
    handles = {name_handle(seat, text) for seat in seats}
    assert len(handles) == len(seats)
    assert name_handle(Seat("ann", frozenset({"b", "a"})), text) == name_handle(seats[1], text)


def test_the_accept_header_chooses_the_form() -> None:
    assert find_form(None) is find_form("*/*") is find_form("text/html, application/json") is Form.JSON
    assert find_form("application/json;q=0.1, text/event-stream") is Form.JSON
    assert find_form("text/html, Text/Event-Stream; charset=utf-8") is Form.SSE


def test_no_value_ends_an_event() -> None:
    text = "a\n\nevent: revoked\r\ndata: {}\u2028\x00"
    shown = write_sse("rows", {"cursor": "c", "rows": [{"x": text}]})
    assert shown.count(b"\n") == 4
    assert shown.endswith(b"\n\n")
    assert b"\r" not in shown


def test_metrics_are_escaped_and_counters_are_known_ones() -> None:
    metrics = Metrics()
    metrics.count("sluicegate_registrations_total", decision='a"b\\c\n')
    shown = metrics.render([Gauge("sluicegate_queries", "queries", 2)])
    assert 'decision="a\\"b\\\\c\\n"} 1' in shown
    assert shown.endswith("sluicegate_queries 2\n")
    with pytest.raises(ValueError, match="no counter"):
        metrics.count("sluicegate_rows_hidden_total")


def test_an_arrow_answer_over_ticks_of_different_types() -> None:
    """A tick whose values are all NULL has a column without a type; the next has one."""
    layout = Layout((Field("x", 0), Field("x", 1)))
    ticks = [
        pa.table({"o0": pa.nulls(1), "o1": pa.array([1], pa.int32())}),
        pa.table({"o0": pa.array([1.5]), "o1": pa.array([2], pa.int64())}),
    ]
    events = [Rows(data, layout, at, f"c{at}") for at, data in enumerate(ticks)]
    chunk = encode(Form.ARROW, events, None, "c1", 1)
    found = pa.ipc.open_stream(chunk.body).read_all()
    assert found.column_names == ["x", "x"]
    assert [each.to_pylist() for each in found.columns] == [[None, 1.5], [1, 2]]
    assert [str(each.type) for each in found.columns] == ["double", "int64"]
