"""Elements into streams: tuples and punctuations of those who may write them (R14), and what their senders are told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.evaluate import is_true
from sluicegate.expr.nodes import FALSE, TRUE, Column, Expr, Value
from sluicegate.expr.values import write_timestamp
from sluicegate.language.parse_statements import parse_statements
from sluicegate.language.punctuation_codes import PUNCTUATION_CODES
from sluicegate.language.punctuation_wire import write_punctuation
from sluicegate.language.query_punctuations import SWITCH_CODES, read_query_punctuation
from sluicegate.language.statements import InsertSP
from sluicegate.policy.elements import Punctuation
from sluicegate.policy.model import Stream
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.service.identity.appends import MayAppend, may_append
from sluicegate.service.identity.principal import Principal, Refused, seat
from sluicegate.service.identity.scopes import PUSH
from sluicegate.service.refusals import RefusedError, refuse
from sluicegate.source import SourceText

if TYPE_CHECKING:
    import pyarrow as pa

    from sluicegate.runtime.pushed import Pushed
    from sluicegate.service.gateway import Gateway

_MOST_REASONS = 20


@dataclass(frozen=True, slots=True)
class Punctuated:
    """A policy that was sent: its ts, which tuples are to name, and the count of its punctuations."""

    ts: str
    count: int


class Pushing:
    """Of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._last, self._saying = 0, threading.Lock()

    def push(
        self, principal: Principal, name: str, content: str, body: bytes, request: str = ""
    ) -> tuple[int, Pushed]:
        """Append elements that an APPEND grant of the caller's allows (R14); how many, and those that were refused."""
        from sluicegate.runtime.pushed import RefusedRow, read_pushed

        allowed = self._find_right(principal, name, "push", request)
        stream = self._gateway.catalog.streams[name]
        judge = make_judge(stream, allowed.predicate)
        found = read_pushed(stream, content, body, self._gateway.settings.most_push_rows, judge)
        taken = int(found.table.num_rows)
        if taken:
            catalog = seat(principal, self._gateway.engine.catalog)
            hear = self._judge_switches(principal, stream, found.table)
            told = self._gateway.engine.push(name, found.table, principal.user, catalog, hear)
            # the code and what it means: the message may name what is others'
            refused = [RefusedRow(found.numbers[at], _describe(code)) for at, code in told]
            all_refused = sorted([*found.refused, *refused], key=lambda each: each.row)
            found, taken = replace(found, refused=tuple(all_refused)), taken - len(refused)
        self._tell(principal, name, allowed.grants, taken, found, request)
        return taken, found

    def punctuate(self, principal: Principal, name: str, statements: str, request: str = "") -> Punctuated:
        """Send `INSERT SP` statements as one policy of the caller's, with the next ts; all of them, or none.

        Those for queries turn switches in this stream, one after the other (R16).
        """
        parsed = _read_inserts(statements, name)
        if any(each.query is not None for each in parsed):
            return self._turn(principal, name, parsed, request)
        self._find_right(principal, name, "punctuate", request)
        stream = self._gateway.catalog.streams[name]
        if stream.punctuated_by is None:
            raise DiagnosticError([Diagnostic("not-punctuated", f"`{name}` carries no punctuations")])
        with self._saying:
            ts = self._next_ts()
            said = [_say(each, principal.user, ts, sn) for sn, each in enumerate(parsed, 1)]
            self._check(principal, stream, said, request)
            self._send(principal, stream, said)
        self._gateway.record(
            principal, "punctuate", name, decision=f"{len(said)} punctuations", request=request
        )
        return Punctuated(write_timestamp(ts), len(said))

    def _turn(self, principal: Principal, name: str, parsed: Sequence[InsertSP], request: str) -> Punctuated:
        """For the stream's owner and administrators; what is wrong with one of them is told before any is sent."""
        stream = self._gateway.catalog.streams.get(name)
        if stream is None or not _may_turn(principal, stream):
            self._gateway.record(
                principal, "punctuate", name, decision="deny", notices=("switch-owner",), request=request
            )
            raise refuse("switch-owner", SWITCH_CODES["switch-owner"])
        self._gateway.check_open()
        for each in parsed:
            if each.query is None or stream.order_any or stream.event_time is None:
                code = "switch-alone" if each.query is None else "switch-order"
                raise DiagnosticError([Diagnostic(code, SWITCH_CODES[code], each.span)])
            read_query_punctuation(each, 0)
        ts = 0
        for each in parsed:
            said, refused = self._gateway.authorization.hearing.say_in(
                name, principal.user, partial(read_query_punctuation, each)
            )
            if refused is not None:
                raise DiagnosticError([Diagnostic(refused, SWITCH_CODES[refused], each.span)])
            ts = said.ts
        return Punctuated(write_timestamp(ts), len(parsed))

    def _judge_switches(
        self, principal: Principal, stream: Stream, rows: pa.Table
    ) -> Callable[[QueryPunctuation, str | None], str | None]:
        """Before the stream is locked: what is judged and put on record may take its time."""
        from sluicegate.runtime.feed.carriage import SP
        from sluicegate.runtime.feed.turning import judge_ahead, refuse_all

        if SP not in rows.column_names:
            return refuse_all
        may, hear = _may_turn(principal, stream), self._gateway.authorization.hearing.hear
        return judge_ahead(rows[SP], stream, lambda said: hear(stream.name, said, principal.user, may))

    def _find_right(self, principal: Principal, name: str, action: str, request: str) -> MayAppend:
        """What the caller may write; the owner of a punctuated stream may punctuate it without a grant."""
        gateway = self._gateway
        allowed = may_append(principal, name, gateway.catalog)
        stream = gateway.catalog.streams.get(name)
        if isinstance(allowed, Refused) and stream is not None and _may_punctuate(principal, stream):
            allowed = MayAppend(name, FALSE, ())
        if isinstance(allowed, Refused) or stream is None:
            refused = allowed if isinstance(allowed, Refused) else Refused("may-not-append", "no such stream")
            gateway.record(principal, action, name, decision="deny", notices=(refused.code,), request=request)
            raise RefusedError(refused)
        if stream.format is not None:
            raise refuse("push-source", "the stream has a source of its own")
        gateway.check_open()
        return allowed

    def _next_ts(self) -> int:
        """Now, and later than any before: two policies of one sender with one ts would be one."""
        now = time.time_ns() // 1000
        while now <= self._last:
            time.sleep(0.000_001)
            now = time.time_ns() // 1000
        self._last = now
        return now

    def _check(self, principal: Principal, stream: Stream, said: Sequence[Punctuation], request: str) -> None:
        """Half a policy is no policy, and would take the place of the one before: all are asked about first."""
        from sluicegate.runtime.shield.wire import PunctuationReader, Refusal

        catalog = seat(principal, self._gateway.engine.catalog)
        reader = PunctuationReader(stream, catalog, self._last, None)
        for each in said:
            found = reader.read(_write(each, stream), principal.user)
            if isinstance(found, Refusal):
                self._gateway.record(
                    principal,
                    "punctuate",
                    stream.name,
                    decision="deny",
                    notices=(found.code,),
                    request=request,
                )
                raise refuse(found.code, PUNCTUATION_CODES.get(found.code, "the punctuation is refused"))

    def _send(self, principal: Principal, stream: Stream, said: Sequence[Punctuation]) -> None:
        from sluicegate.runtime.pushed import LINES, read_pushed

        lines = "\n".join(json.dumps({"_sp": json.loads(_write(each, stream))}) for each in said)
        found = read_pushed(stream, LINES, lines.encode(), len(said), lambda _: False)
        catalog = seat(principal, self._gateway.engine.catalog)
        told = self._gateway.engine.push(stream.name, found.table, principal.user, catalog)
        if told or found.refused:
            # the catalog changed in between
            raise refuse("sp-forged", PUNCTUATION_CODES["sp-forged"])

    def _tell(
        self,
        principal: Principal,
        name: str,
        grants: tuple[str, ...],
        taken: int,
        found: Pushed,
        request: str,
    ) -> None:
        metrics = self._gateway.metrics
        metrics.count("sluicegate_rows_pushed_total", taken)
        if found.refused:
            metrics.count("sluicegate_rows_refused_total", len(found.refused))
            told = f"{len(found.refused)} of {taken + len(found.refused)} tuples refused"
            reasons = tuple(dict.fromkeys(each.reason for each in found.refused))[:_MOST_REASONS]
            self._gateway.record(
                principal, "push", name, grants=grants, decision=told, notices=reasons, request=request
            )


def make_judge(stream: Stream, predicate: Expr) -> Callable[[tuple[Value, ...]], bool]:
    """A test of tuples in the order of the stream's attributes; false and NULL are no (R7)."""
    if predicate == TRUE:
        return lambda _: True
    columns = [Column(stream.name, name, of) for name, of in stream.attributes]
    return lambda values: is_true(predicate, dict(zip(columns, values, strict=True)))


def _may_punctuate(principal: Principal, stream: Stream) -> bool:
    return stream.punctuated_by is not None and principal.owns(stream) and principal.may(PUSH + stream.name)


def _may_turn(principal: Principal, stream: Stream) -> bool:
    return (principal.owns(stream) or principal.is_admin) and principal.may(PUSH + stream.name)


def _read_inserts(statements: str, stream: str) -> list[InsertSP]:
    found = []
    for each in parse_statements(SourceText("<punctuations>", statements)):
        if not isinstance(each, InsertSP):
            message = "only INSERT SP is sent into a stream"
            raise DiagnosticError([Diagnostic("not-a-punctuation", message, each.span)])
        if each.stream is not None and each.stream.text != stream:
            message = f"the punctuation is for `{each.stream.text}`, and was sent into `{stream}`"
            raise DiagnosticError([Diagnostic("not-a-punctuation", message, each.stream.span)])
        found.append(each)
    if not found:
        raise DiagnosticError([Diagnostic("not-a-punctuation", "there is no INSERT SP")])
    return found


def _say(statement: InsertSP, sender: str, ts: int, sn: int) -> Punctuation:
    return Punctuation(sender, ts, sn, statement.ddp, statement.srp, statement.positive, statement.immutable)


def _write(punctuation: Punctuation, stream: Stream) -> str:
    return json.dumps(write_punctuation(punctuation, dict(stream.attributes)[stream.punctuated_by or ""]))


def _describe(code: str) -> str:
    return f"{code}: {(PUNCTUATION_CODES | SWITCH_CODES).get(code, 'the punctuation is refused')}"
