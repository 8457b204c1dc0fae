"""Messages into tuples: types, units, NULL for what is not available, and ships with their last static report."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.language.ais_streams import KINDS
from sluicegate.language.check_ais import read_ais_options
from sluicegate.language.load import read_catalog
from sluicegate.policy.model import Stream
from sluicegate.runtime.ais.duplicates import MOST, Duplicates
from sluicegate.runtime.ais.reader import Dead
from sluicegate.runtime.ais.rows import RowMaker
from sluicegate.runtime.ais.statics import NOTHING, Statics
from sluicegate.runtime.ais.values import READ, name_type
from unit.ais_world import MMSI, encode, messages, position, read_all, seal, sentences, tag

pytest.importorskip("pyais")

NOW = 1_700_000_000_000_000


def write_stream(attributes: str, options: str, more: str = "") -> str:
    declared = f"CREATE STREAM S ({attributes}) TIMESTAMP BY T OWNER o {more} FROM ais OPTIONS ({options});"
    return f"CREATE USER o; {declared}"


def declare(attributes: str, options: str = "file = 'x'", more: str = "") -> Stream:
    return read_catalog(write_stream(attributes, options, more)).streams["S"]


def all_of(kind: str, options: str = "times = 'arrival'") -> Stream:
    attributes = ", ".join(f"{each.name} {each.type}" for each in KINDS[kind].attributes.values())
    return declare(attributes, f"file = 'x', messages = '{kind}', duplicates = '0', {options}")


def make(stream: Stream, lines: list[str], remember: int = 100, duplicates: int = 0) -> list[Any]:
    """A dict for each tuple, and dead letters as they are."""
    maker = RowMaker(stream, read_ais_options(stream), Statics(remember), Duplicates(duplicates * 1_000_000))
    found, _ = read_all("\n".join(lines).encode())
    names = [name for name, _ in stream.attributes]
    made = [maker.make(each, NOW, "peer") for each in messages(found)]
    return [
        each if isinstance(each, Dead) else dict(zip(names, each, strict=True))
        for each in made
        if each is not None
    ]


def test_every_attribute_can_be_declared_and_every_type_is_in_a_stream() -> None:
    for kind in KINDS:
        assert len(all_of(kind).attributes) == len(KINDS[kind].attributes)
    typed = {each for kind in KINDS.values() if kind.name != "all" for each in kind.types}
    assert typed == set(range(1, 28))
    known = {name for kind in KINDS.values() for name in kind.attributes}
    assert known - set(READ) == {"T", "Own", "Channel", "Receiver", "Fields"}


def test_a_position_has_its_values_and_units() -> None:
    line = position(status=5, turn=4, accuracy=True, lon=-70.5)
    (row,) = make(all_of("positions"), [line])
    fields = row.pop("Fields")
    assert '"mmsi": 563012345' in fields
    assert row == {
        "T": NOW,
        "SID": MMSI,
        "Message": 1,
        "Repeat": 0,
        "Own": False,
        "Channel": "A",
        "Receiver": "peer",
        "Long": -70.5,
        "Lat": 1.25,
        "Accuracy": True,
        "Speed": 12.3,
        "Course": 90.0,
        "Heading": 91,
        "Turn": 4.0,
        "Status": "moored",
        "Class": "A",
        "Altitude": None,
    }


@pytest.mark.parametrize(
    ("kind", "fields", "nulls"),
    [
        (
            1,
            {
                "lon": 181.0,
                "lat": 91.0,
                "speed": 102.3,
                "course": 360.0,
                "heading": 511,
                "turn": -128,
                "status": 15,
            },
            "*",
        ),
        (1, {"turn": 127}, ["Turn"]),
        (18, {"lon": 181.0, "lat": 91.0, "speed": 102.3, "course": 360.0, "heading": 511}, "*"),
        (19, {"lon": 181.0, "lat": 91.0, "speed": 102.3, "course": 360.0, "heading": 511}, "*"),
        (27, {"lon": 181.0, "lat": 91.0, "speed": 63.0, "course": 511.0, "status": 15}, "*"),
        (9, {"lon": 181.0, "lat": 91.0, "speed": 1023.0, "course": 360.0, "alt": 4095}, "*"),
    ],
)
def test_what_is_not_available_is_null(kind: int, fields: dict[str, Any], nulls: Any) -> None:
    line = sentences(kind, cut=60, **fields)
    (row,) = make(all_of("positions"), line)
    names = (
        ["Long", "Lat", "Speed", "Course", "Heading", "Turn", "Status", "Altitude"] if nulls == "*" else nulls
    )
    assert [row[name] for name in names] == [None] * len(names)


def test_static_values_that_are_empty_are_null() -> None:
    (row,) = make(all_of("static"), sentences(5))
    assert {name for name, value in row.items() if value is None} >= {
        *("Name", "Type", "TypeCode", "Callsign", "IMO", "Length", "Beam", "Draught", "Destination", "ETA")
    }
    voyage = {"month": 3, "day": 9, "hour": 7, "minute": 5, "destination": "SG SIN", "draught": 11.5}
    (row,) = make(
        all_of("static"), sentences(5, to_bow=100, to_stern=20, to_port=9, to_starboard=9, **voyage)
    )
    assert [row[name] for name in ("Length", "Beam", "ETA", "Draught")] == [120, 18, "03-09 07:05", 11.5]


def test_the_other_kinds_have_what_is_theirs() -> None:
    (clock,) = make(
        all_of("base_stations"), sentences(4, year=2026, month=1, day=2, hour=3, minute=4, second=5)
    )
    assert clock["Clock"] == 1_767_323_045_000_000
    (unset,) = make(
        all_of("base_stations"), sentences(11, year=0, month=0, day=0, hour=24, minute=60, second=60)
    )
    assert unset["Clock"] is None
    addressed, to_all = make(
        all_of("safety"), [*sentences(12, dest_mmsi=5, text="HELP"), *sentences(14, text="MAYDAY")]
    )
    assert (addressed["Text"], addressed["Addressee"]) == ("HELP", 5)
    assert (to_all["Text"], to_all["Addressee"]) == ("MAYDAY", None)
    (aid,) = make(all_of("aids"), sentences(21, name="RAFFLES LIGHT", aid_type=6, virtual_aid=True))
    assert (aid["Name"], aid["TypeCode"], aid["Virtual"], aid["OffPosition"]) == (
        "RAFFLES LIGHT",
        6,
        True,
        False,
    )
    (data,) = make(all_of("binary"), sentences(8, dac=999, fid=33, data=b"x"))
    assert (data["Area"], data["Function"]) == (999, 33)
    (control,) = make(all_of("control"), sentences(10, dest_mmsi=7))
    assert control["Addressee"] == 7
    assert [each["Message"] for each in make(all_of("all"), [position(), *sentences(5)])] == [1, 5]


def test_ships_have_the_last_static_report_of_their_mmsi() -> None:
    """Of class A and of class B, whose report comes in halves; NULL until one came."""
    other = seal("!AIVDM,1,1,,A,{},{}".format(*encode(1, mmsi=9, lon=1.0, lat=1.0)))
    at_sea = position()
    lines = [
        *(at_sea, *sentences(5, shipname="VEGA", ship_type=70), at_sea, other),
        *(*sentences(5, shipname="VEGA II", ship_type=80), at_sea),
    ]
    found = [(row["SID"], row["Name"], row["Type"]) for row in make(all_of("ships"), lines)]
    assert found == [
        (MMSI, None, None),
        (MMSI, "VEGA", "cargo"),
        (9, None, None),
        (MMSI, "VEGA II", "tanker"),
    ]
    at_sea = sentences(18, lon=103.0, lat=1.0)[0]
    half, rest = (
        sentences(24, partno=0, shipname="DINGHY")[0],
        sentences(24, partno=1, ship_type=37, callsign="9V1")[0],
    )
    rows = make(all_of("ships"), [half, at_sea, rest, at_sea, sentences(24, partno=0)[0], at_sea])
    assert [(row["Name"], row["Type"], row["Callsign"]) for row in rows] == [
        ("DINGHY", None, None),
        ("DINGHY", "pleasure", "9V1"),
        (None, "pleasure", "9V1"),
    ]
    (both,) = make(all_of("ships"), sentences(19, cut=60, shipname="YAWL", ship_type=36, lon=103.0, lat=1.0))
    assert (both["Name"], both["Type"], both["Class"]) == ("YAWL", "sailing", "B")


def test_aircraft_and_stations_are_no_ships() -> None:
    assert make(all_of("ships"), [sentences(9, alt=100)[0], sentences(4)[0], sentences(21, cut=90)[0]]) == []


def test_who_was_seen_least_recently_is_forgotten() -> None:
    statics = Statics(2)
    statics.put(1, ("A",))
    statics.put(2, ("B",))
    assert statics.find(1) == ("A",)
    statics.put(3, ("C",))
    assert [statics.find(each) for each in (1, 2, 3)] == [("A",), NOTHING, ("C",)]
    assert len(statics) == 2


def test_the_same_message_counts_once_within_its_time() -> None:
    def at(second: int, source: str, line: str) -> str:
        return tag(f"s:{source},c:{1_700_000_000 + second}") + line

    here, there = position(lat=1.0), position(lat=2.0)
    stream = all_of("positions", "times = 'log'")
    lines = [at(0, "a", here), at(1, "b", here), at(2, "a", there), at(9, "c", here), at(10, "a", here)]
    assert [(row["Lat"], row["Receiver"]) for row in make(stream, lines, duplicates=10)] == [
        (1.0, "a"),
        (2.0, "a"),
        (1.0, "a"),
    ]
    assert len(make(stream, lines, duplicates=0)) == 5


def test_messages_that_were_seen_are_bounded_in_number_and_age() -> None:
    seen = Duplicates(10_000_000)
    for number in range(MOST + 10):
        assert not seen.is_again(str(number).encode(), 0)
    assert len(seen.all) == MOST
    assert not seen.is_again(b"late", 20_000_000)
    assert seen.all == [(b"late", 20_000_000)]


def test_a_time_far_off_is_no_reason_to_forget_the_present() -> None:
    seen = Duplicates(10_000_000)
    assert not seen.is_again(b"here", NOW)
    assert not seen.is_again(b"old", 0)
    assert seen.is_again(b"here", NOW + 1)
    assert not seen.is_again(b"ahead", 2 * NOW)
    for number in range(MOST):
        assert not seen.is_again(str(number).encode(), NOW)
    # what came ahead is forgotten itself by now, and measures nothing
    assert seen.is_again(str(MOST - 1).encode(), NOW + 1)
    assert len(seen.all) == MOST
    again = Duplicates(10_000_000, seen.all)
    assert not again.is_again(b"old", 0)
    assert again.is_again(b"5", NOW)


def test_the_time_is_the_logs_or_the_clocks() -> None:
    told = tag("c:1700000900") + position(lat=2.0)
    assert [row["T"] for row in make(all_of("positions"), [told])] == [NOW]
    silent, row, after = make(all_of("positions", "times = 'log'"), [position(), told, position(lat=3.0)])
    assert silent.code == "ais-no-time"
    assert (row["T"], after["T"]) == (NOW + 900_000_000, NOW + 900_000_000)
    live = declare("T TIMESTAMP, SID BIGINT", "udp = 'localhost:9', times = 'log'")
    (ahead,) = make(live, [told])
    assert ahead.code == "ais-time-ahead"
    assert make(live, [position()]) == [{"T": NOW, "SID": MMSI}]


def test_a_message_that_is_cut_short_is_a_dead_letter() -> None:
    """Rather than a position of half of its bits."""
    payload, _ = encode(1, lon=103.8, lat=1.25)
    (dead,) = make(all_of("positions"), [seal(f"!AIVDM,1,1,,A,{payload[:15]},0")])
    assert dead.code == "ais-short"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0, None),
        (1, "reserved"),
        (30, "fishing"),
        (52, "tug"),
        (60, "passenger"),
        (79, "cargo"),
        (89, "tanker"),
        (100, None),
    ],
)
def test_types_have_names(code: int, name: str | None) -> None:
    assert name_type(code) == name


@pytest.mark.parametrize(
    ("attributes", "options", "more", "code", "underlined"),
    [
        ("T TIMESTAMP", "fil = 'x'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "messages = 'ships'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "file = 'x', udp = 'a:1'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "file = ''", "", "ais-option", "ais"),
        ("T TIMESTAMP", "tcp = 'host'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "tcp = 'host:99999'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "tcp = 'host:1', pace = '2'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "file = 'x', messages = 'boats'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "file = 'x', times = 'now'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "file = 'x', remember = '0'", "", "ais-option", "ais"),
        ("T TIMESTAMP", "file = 'x', duplicates = 'nan'", "", "ais-option", "ais"),
        ("T TIMESTAMP, SID INT", "file = 'x'", "", "ais-attribute", "SID"),
        ("T TIMESTAMP, Port STRING", "file = 'x'", "", "ais-attribute", "Port"),
        ("T TIMESTAMP, Lat DOUBLE", "file = 'x', messages = 'static'", "", "ais-attribute", "Lat"),
        ("T TIMESTAMP, SID BIGINT", "file = 'x'", "PUNCTUATED BY SID", "ais-stream", "ais"),
    ],
)
def test_a_declaration_that_cannot_be_fed_is_refused_where_it_is_written(
    attributes: str, options: str, more: str, code: str, underlined: str
) -> None:
    with pytest.raises(DiagnosticError) as caught:
        declare(attributes, options, more)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.span is not None
    assert found.span.text == underlined


def test_event_time_and_later_attributes_are_checked_too() -> None:
    text = "CREATE USER o; CREATE STREAM S (SID BIGINT, T TIMESTAMP) OWNER o FROM ais OPTIONS (file = 'x');"
    with pytest.raises(DiagnosticError, match="event time is `T`"):
        read_catalog(text)
    fine = text.replace("OWNER", "TIMESTAMP BY T OWNER")
    assert read_catalog(fine + " ALTER STREAM S ADD Lat DOUBLE;").streams["S"].type_of("Lat") is not None
    with pytest.raises(DiagnosticError, match="no attribute `Port`"):
        read_catalog(fine + " ALTER STREAM S ADD Port STRING;")
