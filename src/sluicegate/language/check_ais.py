"""Whether a declaration `FROM ais` can be fed: its options, attributes and clauses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.ais_streams import AIS_FORMAT, EVENT_TIME, KINDS, OPTIONS, SOURCES, AisKind
from sluicegate.policy.model import Stream
from sluicegate.source import Span

_TIMES = ("log", "arrival")


@dataclass(frozen=True, slots=True)
class AisOptions:
    """The options, read: where the sentences come from, which are wanted, and how they are taken."""

    source: str
    path: Path | None
    address: tuple[str, int] | None
    kind: AisKind
    times: str
    duplicates: float
    remember: int
    pace: float


def check_ais_stream(stream: Stream, places: Mapping[str, Span | None], span: Span | None) -> None:
    """Refuse what cannot be fed; `places` says where attributes were written."""
    if stream.format != AIS_FORMAT:
        return
    options = read_ais_options(stream, span)
    known = options.kind.attributes
    for name, of in stream.attributes:
        place = places.get(name) or span
        if name not in known:
            message = f"messages of `{options.kind.name}` have no attribute `{name}`"
            raise _refuse("ais-attribute", message, place, f"known are {', '.join(known)}")
        if known[name].type != of:
            message = f"`{name}` of `{options.kind.name}` is a {known[name].type}, not a {of}"
            raise _refuse("ais-attribute", message, place)
    if stream.event_time != EVENT_TIME:
        message = f"`{stream.name}` has messages of AIS, whose event time is `{EVENT_TIME}`"
        raise _refuse("ais-stream", message, span, f"write TIMESTAMP BY {EVENT_TIME}")
    if stream.punctuated_by is not None:
        raise _refuse("ais-stream", f"`{stream.name}` is fed by AIS, which has no punctuations", span)


def read_ais_options(stream: Stream, span: Span | None = None) -> AisOptions:
    """The options of a stream `FROM ais`; `ais-option` where one is not as it must be."""
    given = dict(stream.options)
    for name in given:
        if name not in OPTIONS:
            raise _refuse(
                "ais-option", f"`{name}` is no option of `FROM ais`", span, f"known are {', '.join(OPTIONS)}"
            )
    sources = [name for name in SOURCES if name in given]
    if len(sources) != 1:
        message = f"`{stream.name}` needs one of {', '.join(f'`{name}`' for name in SOURCES)}"
        raise _refuse("ais-option", message, span)
    source = sources[0]
    if "pace" in given and source != "file":
        raise _refuse("ais-option", "`pace` is an option of `file` alone", span)
    is_file = source == "file"
    if is_file and (not given["file"] or "\0" in given["file"]):
        raise _refuse("ais-option", "`file` names no file", span)
    return AisOptions(
        source,
        Path(given["file"]).absolute() if is_file else None,
        None if is_file else _read_address(source, given[source], span),
        KINDS[_choose("messages", given.get("messages", "ships"), tuple(KINDS), span)],
        _choose("times", given.get("times", "log" if is_file else "arrival"), _TIMES, span),
        _read_number("duplicates", given.get("duplicates", "10"), 0, 3600, span),
        int(_read_number("remember", given.get("remember", "100000"), 1, 1_000_000, span)),
        _read_number("pace", given["pace"], 1e-3, 1e6, span) if "pace" in given else 0.0,
    )


def _read_address(name: str, text: str, span: Span | None) -> tuple[str, int]:
    """`host:port`; an IPv6 host in brackets."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        raise _refuse("ais-option", f"`{name}` is not `host:port`", span)
    return host, int(port)


def _choose(name: str, text: str, known: tuple[str, ...], span: Span | None) -> str:
    if text not in known:
        raise _refuse("ais-option", f"`{name}` is one of {', '.join(f'`{each}`' for each in known)}", span)
    return text


def _read_number(name: str, text: str, least: float, most: float, span: Span | None) -> float:
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not least <= found <= most:
        raise _refuse("ais-option", f"`{name}` is a number from {least:g} to {most:,g}", span)
    return found


def _refuse(code: str, message: str, span: Span | None, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, span, help_)])
