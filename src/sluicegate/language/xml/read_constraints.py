"""When and how coarsely a policy of ASSIST's XML holds: `<gtc>` is DURING, `<wtc>` the least window (Fig. 12)."""

from __future__ import annotations

from sluicegate.expr.nodes import Expr
from sluicegate.expr.types import STRING, TIMESTAMP, UNKNOWN
from sluicegate.language.literals import parse_timestamp
from sluicegate.language.print_expression import print_expression
from sluicegate.language.statements import ExpressionText
from sluicegate.language.syntax import FuncCall, Lit
from sluicegate.language.xml.methods import EMERGENCY
from sluicegate.language.xml.read_expression import Leaves, read_expression
from sluicegate.language.xml.read_window import read_unit
from sluicegate.language.xml.reader import Element
from sluicegate.language.xml.shape import (
    check_attributes,
    check_children,
    fail,
    find,
    only_child,
    read_whole_number,
)
from sluicegate.policy.model import LeastWindow

_FACTS = {"start": "start", "stop": "end", "end": "end"}
_TUPLES = "tuples"


def read_during(element: Element | None, leaves: Leaves) -> tuple[ExpressionText, ExpressionText] | None:
    """`start="Emergency.start"` is the fact `start('Emergency')`; an empty `<gtc/>` constrains nothing."""
    if element is None:
        return None
    check_attributes(element, "start", "end")
    check_children(element, {"start", "end"})
    bounds = [_read_bound(element, each, leaves) for each in ("start", "end")]
    if all(each is None for each in bounds):
        return None
    lower, upper = (each or Lit(None, UNKNOWN, element.span) for each in bounds)
    return _write(lower, element), _write(upper, element)


def _write(expr: Expr, element: Element) -> ExpressionText:
    return ExpressionText(print_expression(expr), element.span, expr, elsewhere=True)


def _read_bound(element: Element, name: str, leaves: Leaves) -> Expr | None:
    child, told = find(element, name), element.attributes.get(name)
    if child is not None and told is not None:
        raise fail("xml-element", f"`{name}` stands twice", element.span)
    if child is not None:
        check_attributes(child)
        return read_expression(only_child(child), leaves)
    if told is None:
        return None
    event, dot, moment = told.strip().rpartition(".")
    if dot and moment in _FACTS and event:
        return FuncCall(_FACTS[moment], (Lit(event, STRING, element.span),), span=element.span)
    return Lit(parse_timestamp(told, element.span), TIMESTAMP, element.span)


def find_event(element: Element | None) -> str:
    """The emergency whose beginning or end bounds the policy."""
    for name in ("start", "end"):
        event, dot, moment = (element.attributes.get(name, "") if element else "").strip().rpartition(".")
        if dot and event and moment in _FACTS:
            return event
    return EMERGENCY


def read_least(policy: Element, privilege: Element) -> LeastWindow | None:
    """`<wtc units="seconds" minsize="600" minhop="600"/>`, within the privilege as printed or beside it."""
    inner, outer = find(privilege, "wtc"), find(policy, "wtc")
    if inner is not None and outer is not None:
        raise fail("xml-element", "`<wtc>` stands twice in a policy", outer.span)
    element = inner or outer
    if element is None:
        return None
    check_attributes(element, "units", "minsize", "minhop")
    check_children(element, ())
    rows = element.attributes.get("units") == _TUPLES
    unit = 1 if rows else read_unit(element)
    size, step = (
        read_whole_number(element, each) * unit if each in element.attributes else 0
        for each in ("minsize", "minhop")
    )
    return LeastWindow(size, step, rows)
