"""Punctuated streams over HTTP: who may send what, what senders and owners are told, and what nobody is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from service.gateway_world import CATALOG
from service.still_world import StillWorld, serve_still
from sluicegate.cli import main as cli

HEART = (
    CATALOG
    + """
CREATE STREAM Heart (ts TIMESTAMP, id INT, beat INT) TIMESTAMP BY ts OWNER owner PUNCTUATED BY id GOVERNED BY PROVIDER;
CREATE STREAM Deep (ts TIMESTAMP, id INT, beat INT) TIMESTAMP BY ts OWNER root PUNCTUATED BY id GOVERNED BY PROVIDER;
CREATE GRANT heart APPEND ON Heart WHERE id < 10 TO Device;
"""
)
PATH = "/v1/streams/Heart"
TS = "2026-01-01T10:00:00"
INSERT = "INSERT SP INTO STREAM Heart LET DDP = TUPLES:{ids}, SRP = frbac:{role}, SIGN = POSITIVE;"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StillWorld]:
    with serve_still(tmp_path, HEART) as made:
        yield made


def sp(**more: Any) -> dict[str, Any]:
    return {"_sp": {"ddp": {"tuples": 1}, "srp": ["Doctor"], "ts": TS, "sn": 1, **more}}


def beat(id_: int = 1, ts: str = TS, count: int = 1) -> dict[str, Any]:
    return {"ts": "2026-01-01T10:00:01", "id": id_, "beat": 60, "_sp_ts": ts, "_sp_count": count}


def _logged(world: StillWorld) -> list[dict[str, Any]]:
    log = world.gateway.engine.feeds.logs["Heart"]
    import pyarrow.parquet as pq

    return [row for batch in log.batches() for row in pq.read_table(batch.path).to_pylist()]


def _audited(world: StillWorld, action: str) -> list[dict[str, Any]]:
    return list(world.get("root", f"/v1/audit?action={action}").json()["events"])


def test_a_push_brings_punctuations_and_the_tuples_that_name_them(world: StillWorld) -> None:
    answer = world.post("dev", PATH, [sp(), beat(), beat(id_=2)])
    assert answer.json() == {"accepted": 3, "refused": [], "refused_total": 0}
    # the second names a policy that does not cover it: counted for the owner, told to nobody else
    assert [row["id"] for row in _logged(world)] == [1]
    assert world.get("owner", PATH + "/sharing").json()["denied"] == {"not-covered": 1}


def test_a_push_in_arrow_has_the_same_columns(world: StillWorld) -> None:
    table = pa.table(
        {
            "ts": pa.array([None, 1_767_261_601_000_000], pa.timestamp("us", "UTC")),
            "id": pa.array([None, 1], pa.int32()),
            "beat": pa.array([None, 60], pa.int32()),
            "_sp": [json.dumps(sp()["_sp"]), None],
            "_sp_ts": pa.array([None, 1_767_261_600_000_000], pa.timestamp("us", "UTC")),
            "_sp_count": pa.array([None, 1], pa.int64()),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    answer = world.call("dev", "POST", PATH, content=sink.getvalue().to_pybytes(), headers=headers)
    assert answer.json()["accepted"] == 2, answer.text
    assert [row["id"] for row in _logged(world)] == [1]


MALFORMED = {
    "sp-pattern": sp(ddp={"tuples": {"closed": [3]}}),
    "sp-unknown-subject": sp(srp=["Doctr"]),
    "sp-unknown-stream": sp(ddp={"streams": "Hart"}),
    "sp-number": sp(sn=0),
    "sp-future": sp(ts="2999-01-01T00:00:00"),
    "sp-size": sp(srp=["r" * 100 for _ in range(10_000)]),
    "sp-forged": sp(ddp={"tuples": 99}),
    "sp-form": {"_sp": "a text"},
}


@pytest.mark.parametrize("code", MALFORMED)
def test_a_refused_punctuation_is_told_audited_and_a_letter_and_the_stream_goes_on(
    world: StillWorld, code: str
) -> None:
    answer = world.post("dev", PATH, [sp(), MALFORMED[code], beat()]).json()
    assert answer["accepted"] == 2
    (refused,) = answer["refused"]
    assert refused["row"] == 2
    assert refused["reason"].startswith(code + ": ")
    # what is near to a name that somebody guessed is not his to know
    assert "`" not in refused["reason"]
    assert [row["id"] for row in _logged(world)] == [1]
    assert world.get("owner", PATH + "/sharing").json()["denied"] == {code: 1}
    (letter,) = world.get("owner", PATH + "/dead-letters").json()["dead"]
    assert letter["reason"].startswith(code + ": ")
    (event,) = _audited(world, "push")
    assert (event["principal"], event["subject"]) == ("dev", "Heart")
    assert event["notices"][0].startswith(code)
    # and nobody else is told
    assert world.get("ann", PATH + "/dead-letters").status_code in (403, 404)
    assert world.get("ann", PATH + "/sharing").status_code in (403, 404)
    again = world.post("dev", PATH, [beat()]).json()
    assert again["accepted"] == 1
    assert len(_logged(world)) == 2


def test_an_insert_is_a_policy_with_the_next_ts(world: StillWorld) -> None:
    made = world.post(
        "dev", PATH + "/punctuations", {"statements": INSERT.format(ids="{1, 2}", role="Doctor")}
    )
    assert made.status_code == 200, made.text
    told = made.json()
    assert told["count"] == 1
    two = INSERT.format(ids="{1}", role="Doctor") + INSERT.format(ids="{2}", role="Observer")
    later = world.post("dev", PATH + "/punctuations", {"statements": two}).json()
    assert later["count"] == 2
    assert later["ts"] > told["ts"]
    rows = [beat(1, told["ts"]), beat(1, later["ts"], 2), beat(2, later["ts"], 2), beat(2, later["ts"], 1)]
    assert world.post("dev", PATH, rows).json()["accepted"] == 4
    assert [row["id"] for row in _logged(world)] == [1, 2]
    denied = world.get("owner", PATH + "/sharing").json()["denied"]
    assert denied == {"superseded": 1, "incomplete": 1}
    assert [each["principal"] for each in _audited(world, "punctuate")] == ["dev", "dev"]


def test_the_owner_punctuates_without_a_grant_and_writes_no_tuples(world: StillWorld) -> None:
    said = {"statements": INSERT.format(ids="ALL", role="Doctor")}
    told = world.post("owner", PATH + "/punctuations", said)
    assert told.status_code == 200, told.text
    pushed = world.post("owner", PATH, [sp(), beat()]).json()
    assert (pushed["accepted"], [each["row"] for each in pushed["refused"]]) == (1, [2])
    # the owner's counts for everybody's tuples
    assert world.post("dev", PATH, [beat(5, told.json()["ts"])]).json()["accepted"] == 1
    assert [row["id"] for row in _logged(world)] == [5]


@pytest.mark.parametrize(
    ("user", "statements", "expected"),
    [
        ("ann", INSERT.format(ids="ALL", role="Doctor"), (403, "may-not-append")),
        ("dev", INSERT.format(ids="{99}", role="Doctor"), (403, "sp-forged")),
        ("dev", INSERT.format(ids="{1}", role="Doctr"), (400, "sp-unknown-subject")),
        (
            "dev",
            INSERT.format(ids="{1}", role="Doctor") + INSERT.format(ids="{99}", role="Doctor"),
            (403, "sp-forged"),
        ),
        ("dev", "DROP STREAM Heart;", (400, "not-a-punctuation")),
        ("dev", INSERT.format(ids="ALL", role="Doctor").replace("Heart", "P"), (400, "not-a-punctuation")),
        (
            "dev",
            "INSERT SP INTO STREAM Heart LET QUERY = 'q', SRP = user:ann, SIGN = NEGATIVE;",
            (403, "switch-owner"),
        ),
        ("dev", "INSERT SP INTO", None),
    ],
)
def test_an_insert_that_may_not_be_is_refused_whole(
    world: StillWorld, user: str, statements: str, expected: tuple[int, str] | None
) -> None:
    answer = world.post(user, PATH + "/punctuations", {"statements": statements})
    assert answer.status_code >= 400
    if expected is not None:
        assert (answer.status_code, answer.json()["error"]["code"]) == expected
        assert "Doctor`" not in answer.json()["error"]["message"]
    world.post("dev", PATH, [beat()])
    assert world.gateway.engine.feeds.denied("Heart") == {"no-policy": 1}


def test_a_session_with_fewer_roles_punctuates_no_more_than_it_may_write(world: StillWorld) -> None:
    """The session's roles count, not the user's."""
    world.change("ALTER USER ann ADD ROLE Device;")
    from service.gateway_world import PASSWORD

    signed = httpx.post(
        f"{world.url}/v1/sign-in", json={"user": "ann", "password": PASSWORD, "roles": ["Doctor"]}
    )
    headers = {"authorization": f"Bearer {signed.json()['token']}"}
    said = {"statements": INSERT.format(ids="{1}", role="Doctor")}
    refused = httpx.post(f"{world.url}{PATH}/punctuations", json=said, headers=headers)
    assert refused.status_code == 403
    assert world.post("ann", PATH + "/punctuations", said).status_code == 200


def test_anybody_may_ask_for_a_stream_whose_provider_decides(world: StillWorld) -> None:
    names = {each["name"] for each in world.get("nobody", "/v1/streams").json()["streams"]}
    assert names == {"Heart", "Deep"}
    answer = world.post("nobody", "/v1/queries", {"query": "SELECT beat FROM Heart"})
    assert (answer.status_code, answer.json()["decision"]) == (201, "partial")


def test_metrics_and_others_show_nothing_of_denied_tuples(world: StillWorld) -> None:
    world.post("dev", PATH, [sp(), beat()])
    before = world.get("root", "/metrics").text
    world.post("dev", PATH, [beat(2), beat(3)])
    after = world.get("root", "/metrics").text
    kept = [line for line in after.splitlines() if "requests_total" not in line and "rows_pushed" not in line]
    assert kept == [
        line for line in before.splitlines() if "requests_total" not in line and "rows_pushed" not in line
    ]
    assert "not-covered" not in after
    assert world.get("owner", "/v1/streams/Deep/sharing").status_code == 404


def test_pausing_and_resuming_forgets_no_policy(world: StillWorld) -> None:
    """A paused stream is declared otherwise for as long: what came meanwhile replaces what came before."""
    world.post("dev", PATH, [sp(), beat()])
    world.post("owner", PATH + "/pause")
    newer = sp(ts="2026-01-01T10:00:05", srp=["Observer"])
    assert world.post("dev", PATH, [newer]).json()["accepted"] == 1
    world.post("owner", PATH + "/resume")
    world.post("dev", PATH, [beat()])
    assert len(_logged(world)) == 1
    assert world.get("owner", PATH + "/sharing").json()["denied"] == {"superseded": 1}


def test_commands(
    world: StillWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICEGATE_URL", world.url)
    monkeypatch.setenv("SLUICEGATE_TOKEN", world.token("dev"))
    assert cli.main(["punctuate", "Heart", INSERT.format(ids="{1}", role="Doctor")]) == 0
    assert "`_sp_count` 1" in capsys.readouterr().out
    assert cli.main(["sharing", "Heart"]) == 1
    world.post("dev", PATH, [beat()])
    monkeypatch.setenv("SLUICEGATE_TOKEN", world.token("owner"))
    capsys.readouterr()
    assert cli.main(["sharing", "Heart"]) == 0
    out = capsys.readouterr().out
    assert "nobody reads it" in out
    assert "no-policy" in out
