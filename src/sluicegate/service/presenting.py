"""Values of the gateway as answers show them."""

from __future__ import annotations

from sluicegate.expr.nodes import Literal
from sluicegate.expr.text import write_literal
from sluicegate.graph.present import present_time, present_value
from sluicegate.rewrite.notice import Notice
from sluicegate.runtime.network.running import Running
from sluicegate.service.decisions import find_decision
from sluicegate.service.schemas import NoticeAnswer, QueryAnswer

LATEST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""


def show_instant(micros: int) -> str:
    """`2026-01-01T10:50:00Z`."""
    return present_time(min(micros, LATEST)) + "Z"


def show_literal(value: Literal) -> object:
    """Sets and polygons as statements write them."""
    found = present_value(value.value, value.of)
    return found if found is None or isinstance(found, bool | int | float | str) else write_literal(value)


def show_notice(notice: Notice) -> NoticeAnswer:
    return NoticeAnswer(code=notice.code, kind=notice.kind, message=notice.message)


def show_query(running: Running, version: int, delivered: int) -> QueryAnswer:
    seat = running.seat
    return QueryAnswer(
        handle=running.handle,
        uri=f"/v1/queries/{running.handle}",
        user=seat.user,
        roles=None if seat.roles is None else sorted(seat.roles),
        query=running.query,
        decision=find_decision(running.allowed).value,
        notices=[show_notice(each) for each in running.allowed.notices],
        version=version,
        paused=running.paused,
        rows_delivered=delivered,
    )
