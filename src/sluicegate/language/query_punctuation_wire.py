"""`{"query": "Q2", "srp": ["user:ann"], "sign": "-", "ts": "…"}` under `_sp`: what turns a switch, as streams carry it (R16)."""

from __future__ import annotations

from typing import Any

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.values import write_timestamp
from sluicegate.language.punctuation_wire import read_parts, read_restriction, read_sign, read_time
from sluicegate.language.query_punctuations import read_query_punctuation
from sluicegate.language.statements import InsertSP
from sluicegate.policy.pattern_json import write_pattern
from sluicegate.policy.punctuation import Anything, DataDescription, OneOf, Pattern
from sluicegate.policy.query_punctuation import QueryPunctuation

QUERY = "query"
_PARTS = frozenset({QUERY, "srp", "sign", "ts"})
_LONGEST_NAME = 200


def read_query_punctuation_json(found: object, arrival: int | None) -> QueryPunctuation:
    """From what JSON gives. All four parts must be there: what is not said opens nothing."""
    parts = read_parts(found, "the punctuation", _PARTS)
    for name in sorted(_PARTS):
        if name not in parts:
            raise _refuse("sp-form", f"the punctuation has no `{name}`")
    query = parts[QUERY]
    if not isinstance(query, str) or not 0 < len(query) <= _LONGEST_NAME:
        raise _refuse("switch-form", "`query` is the name of a shared query")
    restriction = read_restriction(parts["srp"], False)
    statement = InsertSP(None, None, DataDescription(), restriction, read_sign(parts["sign"]), query=query)
    return read_query_punctuation(statement, read_time(parts["ts"], arrival))


def write_query_punctuation(punctuation: QueryPunctuation) -> dict[str, Any]:
    """What stands under `_sp`; reading it gives the punctuation again (I6)."""
    users = punctuation.users
    subjects: Pattern = Anything() if users is None else OneOf(tuple(sorted(users)))
    return {
        QUERY: punctuation.query,
        "srp": {"model": "user", "subjects": write_pattern(subjects)},
        "sign": "+" if punctuation.positive else "-",
        "ts": write_timestamp(punctuation.ts).replace(" ", "T"),
    }


def _refuse(code: str, message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message)])
