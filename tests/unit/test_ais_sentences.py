"""Lines of receivers into messages: every sentence is decoded, part of one, metadata, or a dead letter with its code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluicegate.runtime.ais.decode import decode_message, write_fields
from sluicegate.runtime.ais.groups import OLDEST, OLDEST_HEADLESS
from sluicegate.runtime.ais.reader import Dead, Message
from unit.ais_world import SHARED, codes, encode, messages, position, read_all, seal, sentences, tag

pyais = pytest.importorskip("pyais")

TABLE_1 = b"!AIVDM,1,1,,B,4h5GdQ1ueHeBN7Jj5d0ga6W00<=1,0*42"
NEEDS_DATA = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the logs of receivers lie outside of the project"
)
FILES = {"every_type.nmea": 26, "los_angeles.txt": 251, "northern_europe_2010.txt": 8551}


@NEEDS_DATA
@pytest.mark.parametrize("name", FILES)
def test_every_sentence_of_a_log_is_accounted_for_and_decoded_as_pyais_does(name: str) -> None:
    found, reader = read_all((SHARED / name).read_bytes())
    assert reader.counts.all == FILES[name]
    assert reader.counts.waiting == 0
    assert reader.counts.whole == len(messages(found))
    assert reader.counts.dead == len(codes(found)) == 0
    for each in messages(found):
        wanted = pyais.decode(*each.raw.split(b"\n"))
        assert decode_message(each).asdict() == wanted.asdict()


@NEEDS_DATA
def test_every_type_of_message_is_there_with_the_time_of_its_log() -> None:
    found, _ = read_all((SHARED / "every_type.nmea").read_bytes())
    assert {each.kind for each in messages(found)} >= set(range(1, 28)) - {19}
    first = messages(found)[0]
    assert first.time == int(datetime(2012, 1, 1, 5, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert first.source == "r003669946"


@NEEDS_DATA
def test_the_time_before_a_message_is_that_of_its_gatehouse_line() -> None:
    """Also of a message in parts, whose line has one checksum for all of them."""
    found, _ = read_all((SHARED / "northern_europe_2010.txt").read_bytes())
    times = [each.time for each in messages(found)]
    begin = int(datetime(2010, 6, 11, 11, 46, tzinfo=UTC).timestamp()) * 1_000_000
    assert all(time is not None and begin <= time < begin + 60_000_000 for time in times)
    assert times[0] == begin + 11_390_000


def test_the_sentence_of_the_paper_fails_its_own_checksum() -> None:
    found, reader = read_all(TABLE_1)
    assert codes(found) == ["ais-checksum"]
    assert reader.counts.dead == 1


def test_all_types_come_through_pyais() -> None:
    fields = {
        24: {"partno": 0},
        16: {"mmsi1": 1},
        12: {"dest_mmsi": 5},
        6: {"dest_mmsi": 5},
        10: {"dest_mmsi": 5},
    }
    for kind in range(1, 28):
        lines = sentences(kind, **fields.get(kind, {}))
        found, _ = read_all("\n".join(lines).encode())
        assert [each.kind for each in messages(found)] == [kind]
        assert json.loads(write_fields(decode_message(messages(found)[0])))["msg_type"] == kind


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hello", "ais-junk"),
        ("x" * 2000, "ais-long"),
        ("!AIVDM,1,1,,A,13P;Dh", "ais-checksum"),
        ("!AIVDM,1,1,,A,13P;Dh,0*zz", "ais-checksum"),
        (seal("!AIVDM,1,1,,A,13P;Dh"), "ais-fields"),
        (seal("!AIVDM,0,1,,A,13P;Dh,0"), "ais-fields"),
        (seal("!AIVDM,2,3,1,A,13P;Dh,0"), "ais-fields"),
        (seal("!AIVDM,1,1,,A,13P;Dh,6"), "ais-fields"),
        (seal("!AIVDM,1,1,,A,,0"), "ais-payload"),
        (seal("!AIVDM,1,1,,A,13P;D~,0"), "ais-payload"),
        (seal("!AIVDM,1,1,,A," + "1" * 300 + ",0"), "ais-payload"),
        (seal("$GPGGA,1,2"), "ais-other"),
        (seal("!AIVSI,1,2"), "ais-other"),
        (seal("$PGHP,1,2010,13,11,11,46,11,390,,,,1,"), "ais-pghp"),
        ("\\s:x,c:1*00\\" + position(), "ais-tag"),
        (sentences(5)[0], "ais-incomplete"),
    ],
)
def test_what_is_no_message_is_a_dead_letter_with_its_code(text: str, code: str) -> None:
    found, reader = read_all(f"{text}\n{position()}\n".encode("latin-1"))
    assert codes(found) == [code]
    assert reader.counts.dead == 1
    assert messages(found)[-1].payload == position().split(",")[5].encode()


def test_what_pyais_cannot_decode_is_a_dead_letter() -> None:
    for payload, code in (("t" * 28, "ais-type"), ("H" + "0" * 5 + "<" * 22, "ais-decode")):
        found, _ = read_all(seal(f"!AIVDM,1,1,,A,{payload},0").encode())
        decoded = decode_message(messages(found)[0])
        assert isinstance(decoded, Dead)
        assert decoded.code == code


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\\r\\n", ""])
def test_lines_end_in_many_ways(end: str) -> None:
    lines = [position(lat=lat) for lat in (1.0, 2.0, 3.0)]
    found, _ = read_all(end.join(lines).encode())
    assert [decode_message(each).lat for each in messages(found)] == [1.0, 2.0, 3.0]


def test_other_talkers_and_own_ships_are_read() -> None:
    lines = [position(talker=each) for each in ("AIVDM", "BSVDM", "ANVDM", "--VDM", "aivdm", "ABVDO")]
    found, _ = read_all("\n".join(lines).encode())
    assert [each.own for each in messages(found)] == [False] * 5 + [True]


def _one(text: str) -> Message:
    found, _ = read_all(text.encode())
    (message,) = messages(found)
    return message


def test_times_and_sources_are_those_that_the_log_tells() -> None:
    line = position()
    second = 1_700_000_000 * 1_000_000
    assert (_one(line).time, _one(line).source) == (None, None)
    tagged = _one(tag("s:station:1,c:1700000000") + line)
    assert (tagged.time, tagged.source) == (second, "station:1")
    assert _one(tag("c:1700000000123") + line).time == second + 123_000
    assert _one(f"{tag('c:1700000000')}\n{line}").time == second
    assert _one(f"{line},rAB12,1700000000.5").time == second + 500_000
    assert _one(f"{line},rAB12,1700000000.5").source == "rAB12"
    # the sentence's own tag is nearer to it than a line before it
    lead = seal("$PGHP,1,2010,6,11,11,46,11,390,231,45,992190934,1,")
    assert _one(f"{lead}\n{tag('c:1700000000')}{line}").time == second
    assert _one(f"{lead}\n{line}").source == "992190934"


def test_a_gatehouse_line_is_for_the_sentence_whose_checksum_it_names() -> None:
    line = position()
    right = seal(f"$PGHP,1,2010,6,11,11,46,11,390,231,45,,1,{line[-2:]}")
    wrong = seal("$PGHP,1,2010,6,11,11,46,11,390,231,45,,1,01")
    own = seal("$PGHP,1,2010,6,11,11,46,11,390,231,45,,1,00")
    assert _one(f"{right}\n{line}").time is not None
    assert _one(f"{wrong}\n{line}").time is None
    assert _one(f"{own}\n{line}").time is not None
    spoilt = line[:-2] + "!!"
    assert _one(f"{seal('$PGHP,1,2010,6,11,11,46,11,390,,,,1,')}\n{spoilt}\n{line}").time is None


def test_parts_come_in_any_order_and_with_others_between() -> None:
    parts, others = sentences(5, shipname="VEGA"), [position(lat=float(at)) for at in range(5)]
    for order in (parts, parts[::-1], [parts[1], parts[0], parts[2]]):
        mixed = [line for pair in zip(order, others, strict=False) for line in pair]
        found, reader = read_all("\n".join(mixed).encode())
        names = [decode_message(each).shipname for each in messages(found) if each.kind == 5]
        assert names == ["VEGA"]
        assert reader.counts.parts == len(parts) - 1


def test_groups_are_told_apart_by_receiver_and_by_their_tag() -> None:
    first, second = sentences(5, shipname="VEGA"), sentences(5, shipname="LYRA")
    for left, right in (("s:a", "s:b"), ("g:{n}-3-77", "g:{n}-3-78"), ("{n}G3:77", "{n}G3:78")):
        lines = []
        for number in range(len(first)):
            lines += [tag(left.format(n=number + 1)) + first[number]]
            lines += [tag(right.format(n=number + 1)) + second[number]]
        found, _ = read_all("\n".join(lines).encode())
        assert [decode_message(each).shipname for each in messages(found)] == ["VEGA", "LYRA"]


def test_a_part_that_comes_again_is_counted_and_one_that_differs_begins_anew() -> None:
    first, second = sentences(5, shipname="VEGA"), sentences(5, shipname="LYRA", imo=9074729)
    found, reader = read_all("\n".join([first[0], first[0], *first[1:]]).encode())
    assert reader.counts.again == 1
    assert len(messages(found)) == 1
    found, _ = read_all("\n".join([first[0], *second]).encode())
    assert codes(found) == ["ais-incomplete"]
    assert [decode_message(each).shipname for each in messages(found)] == ["LYRA"]


def test_a_group_waits_for_its_parts_only_so_long() -> None:
    parts, other = sentences(5), position()
    for patience, kept in ((OLDEST_HEADLESS, parts[1:]), (OLDEST, parts[:-1])):
        missing = next(each for each in parts if each not in kept)
        found, _ = read_all("\n".join([*kept, *[other] * (patience + 2), missing]).encode())
        assert codes(found) == ["ais-incomplete"] * len(parts)
        assert all(each.kind == 1 for each in messages(found))


def test_open_groups_are_bounded() -> None:
    lines = [tag(f"s:{number}") + sentences(5)[0] for number in range(600)]
    found, reader = read_all("\n".join(lines).encode())
    assert codes(found) == ["ais-incomplete"] * 600
    assert reader.counts.waiting == 0


def test_the_command_prints_an_object_a_message_and_tells_what_is_dead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluicegate.cli.main import main

    log = tmp_path / "log.nmea"
    log.write_bytes(f"{tag('c:1700000000')}{position()}\n{position(lat=1.5)}\n".encode() + TABLE_1 + b"\n")
    assert main(["ais", "decode", str(log)]) == 1
    told = capsys.readouterr()
    first, second = map(json.loads, told.out.splitlines())
    assert first.pop("time") == "2023-11-14T22:13:20.000Z"
    assert first.keys() == second.keys()
    assert second["lat"] == 1.5
    assert told.err.startswith("line 3: ais-checksum: ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(position().encode())))
    assert main(["ais", "decode", "-"]) == 0
    assert main(["ais", "decode", str(tmp_path / "none")]) == 2


def test_decoding_needs_neither_spark_nor_arrow() -> None:
    code = (
        "import sys; sys.modules.update(pyspark=None, pyarrow=None)\n"
        "from sluicegate.cli.main import main; sys.exit(main(['ais', 'decode', '-']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=position().encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lon"] == 103.8


def test_bytes_are_written_as_pyais_writes_them() -> None:
    payload, fill = encode(8, dac=999, fid=1, data=b"\x12\x34")
    found, _ = read_all(seal(f"!AIVDM,1,1,,A,{payload},{fill}").encode())
    decoded = decode_message(messages(found)[0])
    assert json.loads(write_fields(decoded)) == json.loads(decoded.to_json())
