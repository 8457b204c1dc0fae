"""What a stream `FROM ais` may have: kinds of messages, their attributes with types and units, options.

Here, and not with the feed, so that a declaration is refused where it is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.expr.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Type

AIS_FORMAT = "ais"
EVENT_TIME = "T"


@dataclass(frozen=True, slots=True)
class AisAttribute:
    """An attribute that a message gives, and what it says, with its unit."""

    name: str
    type: Type
    meaning: str


@dataclass(frozen=True, slots=True)
class AisKind:
    """Messages that make tuples of one stream: their types, and the attributes beside those that all have."""

    name: str
    types: tuple[int, ...]
    meaning: str
    own: tuple[AisAttribute, ...]

    @property
    def attributes(self) -> dict[str, AisAttribute]:
        return {each.name: each for each in (*COMMON, *self.own)}


COMMON = (
    AisAttribute(EVENT_TIME, TIMESTAMP, "when it was received (option `times`)"),
    AisAttribute("SID", BIGINT, "the sender's MMSI"),
    AisAttribute("Message", INT, "the type of the message, 1 to 27"),
    AisAttribute("Repeat", INT, "how often it was repeated, 0 to 3"),
    AisAttribute("Own", BOOLEAN, "whether the receiver's own station sent it (VDO)"),
    AisAttribute("Channel", STRING, "the radio channel, as the sentence says it"),
    AisAttribute(
        "Receiver", STRING, "who received it: a tag block's source, a `$PGHP` site, a station, or the peer"
    ),
    AisAttribute("Fields", STRING, "all fields, a JSON object with pyais' names"),
)
_PLACE = (
    AisAttribute("Long", DOUBLE, "longitude, degrees, east is positive"),
    AisAttribute("Lat", DOUBLE, "latitude, degrees, north is positive"),
    AisAttribute("Accuracy", BOOLEAN, "whether the position is better than 10 m"),
)
_COURSE = (
    AisAttribute("Speed", DOUBLE, "over ground, knots"),
    AisAttribute("Course", DOUBLE, "over ground, degrees"),
    AisAttribute("Heading", INT, "true, degrees"),
    AisAttribute("Turn", DOUBLE, "rate of turn, degrees a minute, to the right is positive"),
    AisAttribute("Status", STRING, "navigational status, such as `under way`, `at anchor`, `aground`"),
    AisAttribute("Class", STRING, "`A`, `B`, or `SAR` for an aircraft"),
)
_SIZE = (
    AisAttribute("Length", INT, "metres"),
    AisAttribute("Beam", INT, "metres"),
)
_STATIC = (
    AisAttribute("Name", STRING, "the name"),
    AisAttribute("Type", STRING, "the kind of ship, such as `cargo`, `tanker`, `passenger`"),
    AisAttribute("TypeCode", INT, "the same as the message's number, 1 to 99"),
    AisAttribute("Callsign", STRING, "the radio call sign"),
    AisAttribute("IMO", INT, "the IMO number"),
    *_SIZE,
    AisAttribute("Draught", DOUBLE, "metres"),
    AisAttribute("Destination", STRING, "as the crew wrote it"),
    AisAttribute("ETA", STRING, "`MM-DD hh:mm`, UTC; AIS tells no year"),
)
_ADDRESSEE = AisAttribute("Addressee", BIGINT, "the MMSI that it is for")

KINDS = {
    each.name: each
    for each in (
        AisKind(
            "ships",
            (1, 2, 3, 18, 19, 27),
            "each position report of a ship with the last static report of its MMSI",
            (*_PLACE, *_COURSE, *_STATIC),
        ),
        AisKind(
            "positions",
            (1, 2, 3, 9, 18, 19, 27),
            "position reports of ships and of rescue aircraft",
            (*_PLACE, *_COURSE, AisAttribute("Altitude", INT, "of an aircraft, metres")),
        ),
        AisKind("static", (5, 19, 24), "static and voyage data, each report by itself", _STATIC),
        AisKind(
            "base_stations",
            (4, 11),
            "reports of base stations, and answers to inquiries for the time",
            (*_PLACE, AisAttribute("Clock", TIMESTAMP, "the sender's UTC clock")),
        ),
        AisKind(
            "safety",
            (12, 14),
            "safety messages, addressed and to all",
            (AisAttribute("Text", STRING, "the message"), _ADDRESSEE),
        ),
        AisKind(
            "aids",
            (21,),
            "aids to navigation",
            (
                AisAttribute("Name", STRING, "the name, with its extension"),
                AisAttribute("TypeCode", INT, "the kind of aid, 1 to 31"),
                *_PLACE,
                *_SIZE,
                AisAttribute("OffPosition", BOOLEAN, "whether it has drifted off"),
                AisAttribute("Virtual", BOOLEAN, "whether there is nothing there but the message"),
            ),
        ),
        AisKind(
            "binary",
            (6, 8, 17, 25, 26),
            "data of applications; what is in it is in `Fields`",
            (
                _ADDRESSEE,
                AisAttribute("Area", INT, "designated area code"),
                AisAttribute("Function", INT, "function identifier"),
            ),
        ),
        AisKind(
            "control",
            (7, 10, 13, 15, 16, 20, 22, 23),
            "acknowledgements, inquiries and the management of the radio link",
            (_ADDRESSEE,),
        ),
        AisKind("all", tuple(range(1, 28)), "every message", ()),
    )
}

SOURCES = ("file", "tcp", "listen", "udp")
OPTIONS = {
    "file": "a file of sentences; the stream ends with it",
    "tcp": "`host:port` to connect to, again whenever the connection is lost",
    "listen": "`host:port` to wait on for TCP connections",
    "udp": "`host:port` to wait on for datagrams",
    "messages": f"which messages: {', '.join(f'`{name}`' for name in KINDS)}; `ships` unless given",
    "times": "`log`: what the log says; `arrival`: the clock. `log` for files, else `arrival`",
    "duplicates": "seconds within which the same message counts once, whoever received it; 10 unless given, 0 for never",
    "remember": "how many ships' static reports are kept, 1 to 1,000,000; 100,000 unless given",
    "pace": "of a file: seconds of its time that a second brings; as fast as it can be read unless given",
}
