"""The shield at a log: what it remembers is the batch's, whatever stops between; what it denies is counted, not kept."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.expr.types import DOUBLE, INT, STRING, Type
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import (
    Column,
    Stream,
)
from sluicegate.policy.punctuation import Constant, DataDescription, OneOf, Restriction
from unit.shield_world import (
    OWNER,
    SENDERS,
    Element,
    Row,
    clean_element,
    cut_randomly,
    judge_by_model,
    make_catalog,
    make_stream,
    random_elements,
    read_log,
)

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

if TYPE_CHECKING:
    from sluicegate.runtime.feed.source_log import SourceLog
    from sluicegate.runtime.shield.shield import Shield

NOW = 1_000_000


class _Killed(BaseException):
    """The process, at this place."""


def open_both(folder: Path, stream: Stream, **given: Any) -> tuple[SourceLog, Shield]:
    from sluicegate.runtime.feed.source_log import SourceLog
    from sluicegate.runtime.shield.shield import Shield

    log = SourceLog(folder, stream)
    return log, Shield(log, lambda: make_catalog(stream), clock=lambda: NOW, **given)


def write_elements(stream: Stream, found: Sequence[Element]) -> pa.Table:
    from sluicegate.runtime.frames import arrow_schema

    of = arrow_schema(stream)
    key = dict(stream.attributes)["k"]
    rows = [each if isinstance(each, Row) else Row(0, each.sender, None, None, None, None) for each in found]
    texts = [
        json.dumps(write_punctuation(each, key)) if isinstance(each, Punctuation) else None for each in found
    ]
    nothing = pa.nulls(len(rows), pa.string())
    return pa.table(
        {
            "t": pa.array([each.time for each in rows], of.field("t").type),
            "k": pa.array([each.key for each in rows], of.field("k").type),
            "n": pa.array([each.number for each in rows], pa.int32()),
            "_sp": pa.array(texts, pa.string()),
            "_sp_ts": pa.array([each.ts for each in rows], pa.timestamp("us", "UTC")),
            "_sp_count": pa.array([each.count for each in rows], pa.int64()),
            "_sender": pa.array([each.sender for each in rows], pa.string()),
            "_partition": nothing,
            "_problem": nothing,
            "_raw": nothing,
        }
    )


def append(log: SourceLog, shield: Shield, found: Sequence[Element]) -> None:
    from sluicegate.runtime.shield.append import append_elements

    append_elements(log, shield, write_elements(log.stream, found), log.end, None)


@pytest.mark.parametrize("order_any", [False, True])
@pytest.mark.parametrize("key", [INT, STRING], ids=str)
def test_kills_between_writing_and_commit_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: Any, order_any: bool
) -> None:
    from sluicegate.runtime.feed.source_log import SourceLog
    from sluicegate.runtime.shield import append as appending
    from sluicegate.runtime.shield import class_table, shield

    stream = make_stream(key, order_any=order_any, watermark=2)
    places: list[tuple[Any, str]] = [
        (appending, "write_rows"),
        (shield, "save_state"),
        (class_table, "_append_lines"),
        (SourceLog, "_write_meta"),
        (SourceLog, "commit"),
    ]
    for seed in range(3):
        pick = random.Random(seed)
        elements = [clean_element(each, key) for each in random_elements(seed, key, 80, ("nobody", None))]
        wanted = judge_by_model(stream, elements)
        log, guard = open_both(tmp_path / f"{seed}", stream)
        for batch in cut_randomly(pick, elements):
            while True:
                before = log.end
                with monkeypatch.context() as patch:
                    if pick.random() < 0.7:
                        _kill(patch, *pick.choice(places), after=pick.random() < 0.5)
                    with contextlib.suppress(_Killed):
                        append(log, guard, batch)
                log, guard = open_both(tmp_path / f"{seed}", stream)
                if log.end > before:
                    break
        appending.append_end(log, guard)
        released = {number: told for number, (_, told) in wanted.items() if told is not None}
        found = read_log(log, guard)
        assert dict(found) == released
        assert len(found) == len(released)
        reasons = [reason for reason, told in wanted.values() if told is None]
        assert guard.denied == {each: reasons.count(each) for each in set(reasons)}


def _kill(patch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool) -> None:
    known = getattr(owner, name)

    def killed(*args: Any, **kwargs: Any) -> None:
        if after:
            known(*args, **kwargs)
        raise _Killed

    patch.setattr(owner, name, killed)


def _say(ts: int, sender: str = OWNER) -> Punctuation:

    return Punctuation(sender, ts, 1, DataDescription(), Restriction("frbac", Constant("Doctor")))


def test_malformed_and_forged_punctuations_are_letters_for_the_owner(tmp_path: Path) -> None:
    from sluicegate.runtime.feed.dead_letters import read_dead_letters
    from sluicegate.runtime.shield.append import append_elements

    stream = make_stream()
    log, shield = open_both(tmp_path, stream)
    found = [
        _say(1),
        Row(1, OWNER, 1, 1, 1, 5),
        _say(NOW + 1),
        _say(2, "mallory"),
        Row(2, OWNER, None, 1, 1, 5),
    ]
    table = write_elements(stream, found)
    texts = table["_sp"].to_pylist()
    more = pa.concat_tables([table, table.slice(0, 3)])
    at = more.schema.get_field_index("_sp")
    more = more.set_column(at, "_sp", pa.array([*texts, '{"sn": 0}', None, "x" * 100_000], pa.string()))
    problem = more.schema.get_field_index("_problem")
    more = more.set_column(
        problem, "_problem", pa.array([None] * 6 + ["`k` is not a INT"] + [None], pa.string())
    )
    append_elements(log, shield, more, 0, OWNER)
    assert [number for number, _ in read_log(log, shield)] == [1]
    letters = list(read_dead_letters(log))
    assert [each.reason.partition(":")[0] for each in letters] == [
        "sp-future",
        "sp-forged",
        "sp-form",
        "`k` is not a INT",
        "sp-size",
    ]
    assert [each.offset for each in letters] == [2, 3, 5, 6, 7]
    assert letters[3].raw is None
    assert all(each.raw is None or len(each.raw) <= 1024 for each in letters)
    assert shield.denied == {"sp-future": 1, "sp-forged": 1, "sp-form": 1, "sp-size": 1, "no-policy": 1}
    # what was denied lies nowhere
    assert "no-policy" not in (tmp_path / "dead").joinpath("000000000000.arrow").read_bytes().decode(
        "latin-1"
    )
    # the counts are there after a restart
    assert open_both(tmp_path, stream)[1].denied == shield.denied


def test_a_half_written_class_is_none_and_a_lost_memory_is_refused(tmp_path: Path) -> None:
    stream = make_stream()
    log, shield = open_both(tmp_path, stream)
    append(log, shield, [_say(1), Row(1, OWNER, 1, 1, 1, 5)])
    with (tmp_path / "shield" / "classes.jsonl").open("a") as file:
        file.write('{"immutable": fal')
    log, shield = open_both(tmp_path, stream)
    assert len(shield.classes) == 1
    append(log, shield, [replace(_say(2), positive=False), Row(2, OWNER, 2, 1, 1, 5)])
    log, shield = open_both(tmp_path, stream)
    assert len(shield.classes) == 2
    assert [number for number, _ in read_log(log, shield)] == [1, 2]
    (tmp_path / "shield" / "000000000001.state").write_bytes(b"{}\n")
    with pytest.raises(DiagnosticError, match="not what the shield wrote"):
        open_both(tmp_path, stream)
    (tmp_path / "shield" / "000000000001.state").unlink()
    with pytest.raises(DiagnosticError, match="has lost what it knew"):
        open_both(tmp_path, stream)


def test_more_classes_than_are_kept_apart_are_denied(tmp_path: Path) -> None:
    from sluicegate.runtime.shield.prune import Limits

    stream = make_stream()
    log, shield = open_both(tmp_path, stream, limits=Limits(classes=1))
    first = _say(1)
    other = replace(_say(2), positive=False)
    append(log, shield, [first, Row(1, OWNER, 1, 1, 1, 5), other, Row(2, OWNER, 2, 1, 1, 5)])
    assert [number for number, _ in read_log(log, shield)] == [1]
    assert shield.denied == {"too-many-classes": 1}


def test_only_classes_that_tuples_are_under_are_kept(tmp_path: Path) -> None:
    """Else policies without tuples would use up the table, and later tuples be denied for it."""
    from sluicegate.runtime.shield.prune import Limits

    stream = make_stream()
    log, shield = open_both(tmp_path, stream, limits=Limits(classes=2))
    any_stream = DataDescription().streams
    said, *unused = (
        replace(_say(key), ddp=DataDescription(any_stream, Constant(key), OneOf(names)))
        for key, names in ((1, ("k", "t", "n")), (2, ("k",)), (3, ("t",)), (7, ("n",)))
    )
    append(log, shield, [said, *unused, Row(1, OWNER, 1, 1, 1, 5)])
    assert len(shield.classes) == 1
    other = replace(said, ts=9, positive=False)
    append(log, shield, [other, Row(2, OWNER, 9, 1, 1, 6)])
    assert [number for number, _ in read_log(log, shield)] == [1, 2]
    assert shield.denied == {}


def test_a_batch_of_nothing_but_malformed_records_is_of_no_partition(tmp_path: Path) -> None:
    stream = make_stream()
    _, shield = open_both(tmp_path, stream)
    assert list(shield.take(write_elements(stream, []), 0, None).state.partitions) == []


def test_the_watermark_does_not_pass_what_waits(tmp_path: Path) -> None:
    from sluicegate.runtime.shield.append import append_elements

    stream = make_stream(order_any=True, watermark=10)
    log, shield = open_both(tmp_path, stream)

    def bring(partition: str, found: Sequence[Element]) -> None:
        table = write_elements(stream, found)
        at = table.schema.get_field_index("_partition")
        names = pa.array([partition] * len(found), pa.string())
        append_elements(log, shield, table.set_column(at, "_partition", names), log.end, None)

    bring("a", [_say(1), Row(1, OWNER, 1, 1, 1, 20)])
    bring("b", [_say(1), Row(2, OWNER, 1, 1, 1, 100), Row(3, OWNER, 1, 1, 1, 200)])
    assert [number for number, _ in read_log(log, shield)] == [2]
    assert log.watermark == 20
    bring("a", [Row(4, OWNER, 1, 1, 1, 31)])
    assert [number for number, _ in read_log(log, shield)] == [2, 1]
    assert not any(_lates(log))


def _lates(log: SourceLog) -> list[bool]:
    import pyarrow.parquet as pq

    return [each for batch in log.batches() for each in pq.read_table(batch.path)["_late"].to_pylist()]


def test_batches_put_together_keep_their_policies(tmp_path: Path) -> None:
    stream = make_stream()
    log, shield = open_both(tmp_path, stream)
    append(log, shield, [_say(1)])
    for number in range(6):
        append(log, shield, [Row(number, OWNER, 1, 1, 1, 5)])
    before = read_log(log, shield)
    log.compact(log.end)
    assert len(log.batches()) == 1
    log, shield = open_both(tmp_path, stream)
    assert read_log(log, shield) == before
    assert len(before) == 6


def test_another_declaration_of_policies_is_another_log(tmp_path: Path) -> None:
    from sluicegate.runtime.feed.log_names import log_folder

    stream = make_stream()
    declared = [
        stream,
        replace(stream, order_any=True),
        replace(stream, owner="ann"),
        replace(stream, punctuated_by="n"),
        replace(stream, punctuated_by=None),
    ]
    assert len({log_folder(tmp_path, each) for each in declared}) == len(declared)


def test_pushed_elements_are_their_pushers(tmp_path: Path) -> None:
    from sluicegate.runtime.pushed import JSON, read_pushed
    from sluicegate.runtime.shield.append import append_pushed

    stream = replace(make_stream(), format=None)
    log, shield = open_both(tmp_path, stream)
    moment = "1970-01-01T00:00:00.000001"
    body = [
        {"_sp": write_punctuation(_say(1), INT), "_sender": OWNER},
        {"_sp": "{}"},
        {"t": moment, "k": 1, "n": 1, "_sp_ts": moment, "_sp_count": 1, "_sender": OWNER},
        {"t": moment, "k": 1, "n": 2},
        {"t": moment, "k": 2, "n": 3, "_sp_ts": moment, "_sp_count": 1},
    ]
    pushed = read_pushed(stream, JSON, json.dumps(body).encode(), 10, lambda row: row[1] == 1)
    assert [(each.row, each.reason) for each in pushed.refused] == [
        (5, "no APPEND grant of yours allows this tuple"),
    ]
    assert pushed.numbers == (1, 2, 3, 4)
    # a text is no punctuation, whatever stands in it
    assert append_pushed(log, shield, pushed.table, "ann") == ((1, "sp-form"),)
    assert [number for number, _ in read_log(log, shield)] == [1]
    assert shield.denied == {"no-policy": 1, "sp-form": 1}
    # somebody else's tuple does not come under it, whatever it says
    append_pushed(log, shield, pushed.table.slice(2, 1), "bob")
    append_pushed(log, shield, pushed.table.slice(2, 1), None)
    assert shield.denied == {"no-policy": 1, "sp-form": 1, "wrong-producer": 2}


def test_the_grant_of_a_sender_bounds_its_punctuations(tmp_path: Path) -> None:
    from sluicegate.expr.nodes import Compare, Literal, Op
    from sluicegate.policy.punctuation import Constant, DataDescription
    from sluicegate.runtime.feed.source_log import SourceLog
    from sluicegate.runtime.shield.shield import Shield

    stream = make_stream()
    known = make_catalog(stream)
    narrow = Compare(Op.EQ, Column("S", "k", INT), Literal(1, INT))
    catalog = replace(known, grants={"feed": replace(known.grants["feed"], predicate=narrow)})
    log = SourceLog(tmp_path, stream)
    shield = Shield(log, lambda: catalog, clock=lambda: NOW)
    own, others = (replace(_say(ts, "ann"), ddp=DataDescription(tuples=Constant(ts))) for ts in (1, 2))
    append(log, shield, [own, Row(1, "ann", 1, 1, 1, 5), others, Row(2, "ann", 2, 1, 2, 5)])
    assert [number for number, _ in read_log(log, shield)] == [1]
    assert shield.denied == {"sp-forged": 1, "no-policy": 1}


def _spoil(pick: random.Random, text: str) -> str:
    """Texts near the one given, most of them wrong in some way."""
    swaps = [
        ('"sn": 1', '"sn": 0'),
        ('"sn": 1', '"sn": 10001'),
        ('"sn": 1', '"sn": 01'),
        ('"sn": 1', '"sn": 2.0'),
        ('"sn": 1', '"sn": 1, "sn": 2'),
        ('"ts": "', '"ts": "0000-01-01T00:00:00", "x": "'),
        ('"ts": "', '"ts": "1970-02-30T00:00:00", "ts": "'),
        ("1970-01-01", "1970-02-29"),
        ("1970-01-01", "1968-02-29"),
        ("1970-01-01T", "1970-01-01 "),
        ("1970-01-01", "2970-01-01"),
        ('"tuples"', '"tuples": 5, "tuples"'),
        ('"streams": "*"', '"streams": {"ts": "1970-01-01T00:00:00"}'),
        ('"Doctor"', r'"Doc,\"ts\": \"1970-01-01T00:00:00\""'),
        ('"frbac:Doctor"', '"frbac:Nobody"'),
        ('"sign": "+"', '"sign": "-", "tuples": 7'),
        ('"immutable": false', '"immutable": true'),
        ("}", "} x"),
        (
            "{",
            "[",
        ),
        (": ", ":"),
        (", ", " ,\n"),
        (": ", "\f:"),
    ]
    for _ in range(pick.randrange(3)):
        text = text.replace(*pick.choice(swaps))
    return text


@pytest.mark.parametrize("key", [INT, STRING, DOUBLE], ids=str)
def test_what_many_texts_have_in_common_is_read_as_each_alone(key: Type) -> None:
    from sluicegate.runtime.shield.wire import PunctuationReader, Refusal

    stream, pick = make_stream(key), random.Random(1)
    tuples: dict[Type, list[Any]] = {
        INT: [1, -7, 2**31, 10**30, 0, "1", 1.5, True],
        STRING: ["a", "*", "é", "\n", '"', "\\", 1, ""],
        DOUBLE: [1, 0.5, -3],
    }
    shapes: list[Any] = ["*", None, [*tuples[key][:2]], {"closed": tuples[key][:2]}, {"is": tuples[key][0]}]
    texts = []
    for at in range(1500):
        told = write_punctuation(_say(at * 1000 if at % 3 else at), key)
        told["ddp"]["tuples"] = pick.choice(tuples[key] if pick.random() < 0.7 else shapes)
        texts.append(_spoil(pick, json.dumps(told, ensure_ascii=pick.random() < 0.5)))
    senders = [pick.choice((*SENDERS, "mallory", None)) for _ in texts]
    reader = PunctuationReader(stream, make_catalog(stream), NOW, OWNER)
    found = reader.read_all(pa.array(texts, pa.string()), pa.array(senders, pa.string()))
    assert found == [reader.read(text, sender) for text, sender in zip(texts, senders, strict=True)]
    assert 300 < sum(isinstance(each, Refusal) for each in found) < 1400


def _say_for(role: str, ts: int, number: int) -> list[Element]:

    said = Punctuation(OWNER, ts, 1, DataDescription(), Restriction("frbac", Constant(role)))
    return [said, Row(number, OWNER, ts, 1, 1, 10 + number)]


def _read_roles(log: SourceLog, seen: int) -> dict[int, list[str]]:
    """The roles of each row's policy, as those who judge read them."""
    from sluicegate.runtime.feed.log_files import read_rows
    from sluicegate.runtime.shield.class_table import ClassReader

    classes = ClassReader(log.folder).read()
    assert len(classes) == seen
    rows = [row for each in log.batches() for row in read_rows(each.path, ["n", "_policy"]).to_pylist()]
    return {row["n"]: [each.srp.subjects.value for each in classes[row["_policy"]].members] for row in rows}


@pytest.mark.parametrize("how", ["nothing", "half", "whole", "whole, twice"])
def test_rows_keep_their_policies_where_the_disk_fails_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The same shield goes on."""
    from sluicegate.runtime.shield import class_table
    from sluicegate.runtime.shield.class_table import ClassReader

    log, shield = open_both(tmp_path, make_stream())
    append(log, shield, _say_for("Device", 1, 0))
    reader = ClassReader(log.folder)

    def fail(path: Path, lines: bytes) -> None:
        with path.open("ab") as file:
            file.write(lines[: {"nothing": 0, "half": 20}.get(how)])
        raise OSError("full")

    def fail_again(path: Path, size: int, lines: bytes) -> None:
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(class_table, "_append_lines", fail)
        with pytest.raises(OSError, match="full"):
            append(log, shield, _say_for("Nurse", 2, 1))
        seen = reader.read()
        if how == "whole, twice":
            patch.setattr(class_table, "_replace_behind", fail_again)
            with pytest.raises(OSError, match="full"):
                append(log, shield, _say_for("Nurse", 2, 1))
    append(log, shield, _say_for("Nurse", 2, 1))
    append(log, shield, _say_for("Doctor", 3, 2))
    wanted = {0: ["Device"], 1: ["Nurse"], 2: ["Doctor"]}
    assert _read_roles(log, 3) == wanted
    # whoever read what was not to be there yet has the same
    assert reader.read() == shield.classes.read()
    assert reader.read()[: len(seen)] == seen
    log, shield = open_both(tmp_path, make_stream())
    append(log, shield, _say_for("Nurse", 4, 3))
    assert _read_roles(log, 3) == {**wanted, 3: ["Nurse"]}


def test_punctuations_for_queries_of_no_owner_ask_once_at_most(tmp_path: Path) -> None:
    from sluicegate.policy.query_punctuation import QueryPunctuation
    from sluicegate.runtime.shield.append import append_elements

    stream = make_stream(INT)
    log, guard = open_both(tmp_path, stream)
    rows = write_elements(stream, [Row(0, each, None, None, None, None) for each in [None, "forger"] * 50])
    texts = [
        json.dumps({"query": f"x{at}", "srp": ["user:a"], "sign": "-", "ts": "1970-01-01"})
        for at in range(100)
    ]
    rows = rows.set_column(rows.column_names.index("_sp"), "_sp", pa.array(texts))
    asked: list[str | None] = []

    def judge(said: QueryPunctuation, sender: str | None) -> str | None:
        asked.append(sender)
        return "switch-owner"

    assert append_elements(log, guard, rows, 0, None, judge).dead == 100
    assert asked == ["forger"]
