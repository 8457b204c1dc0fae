"""What a decoder has to remember, as JSON: positions, halves of lines and messages, ships, messages seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sluicegate.runtime.ais.groups import Groups, Part
from sluicegate.runtime.ais.lines import LineCutter
from sluicegate.runtime.ais.reader import Reader
from sluicegate.runtime.ais.sentences import Sentence, read_line
from sluicegate.runtime.ais.statics import Kept
from sluicegate.runtime.ais.tags import NO_TAG, Lead, Tag
from sluicegate.runtime.feed.log_files import refuse_log


@dataclass(frozen=True, slots=True)
class State:
    """The whole of it, or what has changed; `byte` is the position in a file."""

    byte: int = 0
    last_time: int | None = None
    line: dict[str, object] | None = None
    statics: Sequence[tuple[int, Kept]] = ()
    seen: Sequence[tuple[bytes, int]] = field(default=())


def write_state(state: State) -> dict[str, object]:
    return {
        "byte": state.byte,
        "last_time": state.last_time,
        "line": state.line,
        "statics": [[mmsi, list(values)] for mmsi, values in state.statics],
        "seen": [[payload.decode("latin-1"), time] for payload, time in state.seen],
    }


def read_state(found: dict[str, Any]) -> State:
    """What `write_state` wrote; anything else is a damaged disk."""
    try:
        return State(
            found["byte"],
            found["last_time"],
            found["line"],
            [(mmsi, tuple(values)) for mmsi, values in found["statics"]],
            [(payload.encode("latin-1"), time) for payload, time in found["seen"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise refuse_log("the state of its decoder has other fields") from error


def save_line(cutter: LineCutter, reader: Reader) -> dict[str, object]:
    held, number, after_return = cutter.state
    groups, lead, tag = reader.state
    waiting = [[born, [_save_part(part) for part in parts]] for born, parts in groups.waiting]
    return {
        "held": held.decode("latin-1"),
        "number": number,
        "after_return": after_return,
        "now": groups.now,
        "waiting": waiting,
        "lead": _save_lead(lead),
        "tag": _save_tag(tag),
    }


def restore_line(found: dict[str, Any]) -> tuple[LineCutter, Reader]:
    try:
        cutter = LineCutter(found["held"].encode("latin-1"), found["number"], found["after_return"])
        waiting = [(born, [_restore_part(each) for each in parts]) for born, parts in found["waiting"]]
        groups = Groups(waiting, found["now"])
        reader = Reader(groups, _restore_lead(found["lead"]), _restore_tag(found["tag"]))
    except (KeyError, TypeError, ValueError) as error:
        raise refuse_log("the state of its decoder has other fields") from error
    return cutter, reader


def _save_part(part: Part) -> list[object]:
    raw = part.sentence.raw.decode("latin-1")
    return [part.line, raw, _save_tag(part.sentence.tag), _save_lead(part.lead)]


def _restore_part(found: list[Any]) -> Part:
    line, raw, tag, lead = found
    match read_line(raw.encode("latin-1")):
        case [Sentence() as sentence]:
            return Part(line, sentence._replace(tag=_restore_tag(tag)), _restore_lead(lead))
        case _:
            raise ValueError(raw)


def _save_tag(tag: Tag) -> list[object] | None:
    return None if tag == NO_TAG else [tag.source, tag.time, tag.group]


def _restore_tag(found: list[Any] | None) -> Tag:
    if found is None:
        return NO_TAG
    source, time, group = found
    return Tag(source, time, tuple(group) if group else None)


def _save_lead(lead: Lead | None) -> list[object] | None:
    return None if lead is None else [_save_tag(lead.tag), lead.checksum]


def _restore_lead(found: list[Any] | None) -> Lead | None:
    return None if found is None else Lead(_restore_tag(found[0]), found[1])
