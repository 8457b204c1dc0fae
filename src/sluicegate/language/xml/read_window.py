"""Windows of ASSIST's XML: `<window type="time" units="seconds" size="3600" step="600"/>`."""

from __future__ import annotations

from sluicegate.graph.windows import TimeWindow, TupleWindow, Window
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import check_attributes, check_children, fail, need, read_whole_number
from sluicegate.language.xml.words import UNITS

_ROWS = {"tuple": True, "time": False}


def read_window(element: Element, *, joined: bool) -> Window:
    """Without a step: tumbling for an aggregate, released at once for a join (D5)."""
    check_attributes(element, "type", "units", "size", "step")
    check_children(element, ())
    rows = _ROWS.get(element.attributes.get("type", "time"))
    if rows is None:
        raise fail("xml-value", "a window's type is `time` or `tuple`", element.span)
    unit = 1 if rows else read_unit(element)
    size = read_whole_number(element, "size") * unit
    default = 0 if joined else size
    step = read_whole_number(element, "step") * unit if "step" in element.attributes else default
    return TupleWindow(size, step) if rows else TimeWindow(size, step)


def read_unit(element: Element) -> int:
    """The microseconds of `units`; seconds where none are given."""
    told = element.attributes.get("units", "seconds")
    if told not in UNITS:
        known = ", ".join(f"`{unit}`" for unit in UNITS)
        raise fail("xml-value", f"unknown units `{told[:40]}`", element.span, f"known are {known}")
    return UNITS[told]


def check_window(window: Window, element: Element, *, joined: bool) -> None:
    """What a query may ask for: nothing empty, and no step that goes on for ever."""
    if window.size < 1 or (window.step < 1 and not joined):
        raise fail("empty-window", "a window's size and step are greater than zero", element.span)


def need_window(element: Element) -> Element:
    """The window of an aggregate, which always has one."""
    for child in element.children:
        if child.name == "window":
            return child
    help_ = 'write <window type="time" units="seconds" size="3600" step="600"/> in it'
    raise fail("xml-element", f"`{need(element, 'name')[:60]}` lacks a window", element.span, help_)
