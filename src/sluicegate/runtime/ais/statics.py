"""The last static report of each ship, for as many ships as are kept: who was seen least recently is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sluicegate.expr.nodes import Value
from sluicegate.runtime.ais.values import READ

KEPT = ("Name", "Type", "TypeCode", "Callsign", "IMO", "Length", "Beam", "Draught", "Destination", "ETA")
"""Attributes of static reports, in the order in which they are kept."""
NOTHING: tuple[Value, ...] = (None,) * len(KEPT)
Kept: TypeAlias = tuple[Value, ...]

_CLASS_B = tuple(KEPT.index(name) for name in ("Name", "Type", "TypeCode", "Length", "Beam"))
# what a report replaces: all of it, or the half that it carries
_CARRIED = {
    5: tuple(range(len(KEPT))),
    19: _CLASS_B,
    (24, 0): (KEPT.index("Name"),),
    (24, 1): tuple(KEPT.index(name) for name in ("Type", "TypeCode", "Callsign", "Length", "Beam")),
}


class Statics:
    """By MMSI. A report replaces what it carries, also by NULL."""

    def __init__(self, most: int, known: Iterable[tuple[int, Kept]] = ()) -> None:
        self._most = most
        self._known: OrderedDict[int, Kept] = OrderedDict(known)
        self._changed: dict[int, None] = {}
        self._shed()

    def __len__(self) -> int:
        return len(self._known)

    def take(self, decoded: Any) -> None:
        """Note a static report; any other message is left alone."""
        carried = _CARRIED.get((24, decoded.partno) if decoded.msg_type == 24 else decoded.msg_type)
        if carried is None:
            return
        values = list(self._known.get(decoded.mmsi, NOTHING))
        for at in carried:
            values[at] = READ[KEPT[at]](decoded)
        self.put(decoded.mmsi, tuple(values))

    def put(self, mmsi: int, values: Kept) -> None:
        self._known[mmsi] = values
        self._known.move_to_end(mmsi)
        self._changed[mmsi] = None
        self._shed()

    def find(self, mmsi: int) -> Kept:
        """Of a ship that is seen now; NULLs where it has reported nothing."""
        found = self._known.get(mmsi)
        if found is None:
            return NOTHING
        self._known.move_to_end(mmsi)
        return found

    def drain(self) -> list[tuple[int, Kept]]:
        """What has changed since the last call."""
        changed = [(mmsi, self._known[mmsi]) for mmsi in self._changed if mmsi in self._known]
        self._changed.clear()
        return changed

    @property
    def changed(self) -> int:
        """How many have changed since `drain`."""
        return len(self._changed)

    @property
    def all(self) -> Mapping[int, Kept]:
        return self._known

    def _shed(self) -> None:
        while len(self._known) > self._most:
            self._changed.pop(self._known.popitem(last=False)[0], None)
