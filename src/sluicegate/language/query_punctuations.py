"""`INSERT SP INTO STREAM … LET QUERY = 'Q2', SRP = user:ann, SIGN = NEGATIVE` as what turns a switch (R16), and back."""

from __future__ import annotations

from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.expr.nodes import Scalar
from sluicegate.language.print_statements import print_insert
from sluicegate.language.statements import InsertSP, Name
from sluicegate.policy.punctuation import (
    Anything,
    Constant,
    DataDescription,
    Nothing,
    OneOf,
    Pattern,
    Restriction,
)
from sluicegate.policy.query_punctuation import QueryPunctuation
from sluicegate.policy.verdict import USER_MODELS

SWITCH_CODES: dict[str, str] = {
    "switch-alone": "a punctuation for a query stands beside attributes of a tuple, or among punctuations for tuples",
    "switch-form": "a punctuation that cannot turn a switch: no query, roles instead of users, or opening for everybody",
    "switch-many": "more punctuations for queries in one push or batch than are taken at once",
    "switch-old": "a punctuation that closes and is older than the last word on the switch, so that it would be discarded",
    "switch-order": "a punctuation for a query in a stream whose tuples wait for others (`ORDER ANY`)",
    "switch-owner": "a punctuation for a query from somebody who neither owns the stream nor administers",
    "switch-unknown": "a punctuation for a query that nobody shares, that does not read the stream, or for no user of the catalog",
    "switch-unproven": "a punctuation that opens a switch for a user of whom it is not proven that it may have the query",
}


def read_query_punctuation(statement: InsertSP, ts: int) -> QueryPunctuation:
    """What the statement means when it is sent at `ts`. A switch holds users: roles and ranges of names are refused.

    `SRP = user:ALL` closes for everybody; nothing opens for everybody.
    """
    if statement.query is None:
        _refuse(statement, "the punctuation names no query", "write QUERY = 'Q2'")
    if statement.srp.model not in USER_MODELS:
        message = f"a switch holds users, and `{statement.srp.model}` is no model of users"
        _refuse(statement, message, "write SRP = user:{ann, bob}, one for each user whom a role concerns")
    if statement.srp.grant_option:
        _refuse(statement, "a switch passes no option on", "leave WITH GRANT OPTION out")
    users = _list_users(statement, statement.srp.subjects)
    if users is None and statement.positive:
        _refuse(statement, "a switch is not opened for everybody", "list the users")
    return QueryPunctuation(statement.query, users, statement.positive, ts)


def _list_users(statement: InsertSP, pattern: Pattern) -> frozenset[str] | None:
    named: tuple[Scalar, ...]
    match pattern:
        case Anything():
            return None
        case Nothing():
            return frozenset()
        case Constant(value):
            named = (value,)
        case OneOf(values):
            named = values
        case _:
            _refuse(statement, "a switch holds users, not ranges of names", "list the users")
    if any(not isinstance(each, str) for each in named):
        _refuse(statement, "the name of a user is text", "list the users")
    return frozenset(map(str, named))


def _refuse(statement: InsertSP, message: str, help_: str) -> NoReturn:
    raise DiagnosticError([Diagnostic("switch-form", message, statement.span, help_)])


def print_query_punctuation(punctuation: QueryPunctuation, stream: str) -> str:
    """The statement; reading it with the punctuation's `ts` gives the punctuation again (I6)."""
    return print_insert(_as_statement(punctuation, stream))


def _as_statement(punctuation: QueryPunctuation, stream: str) -> InsertSP:
    users = punctuation.users
    subjects: Pattern = Anything() if users is None else OneOf(tuple(sorted(users)))
    return InsertSP(
        None,
        Name(stream),
        DataDescription(),
        Restriction("user", subjects),
        punctuation.positive,
        query=punctuation.query,
    )
