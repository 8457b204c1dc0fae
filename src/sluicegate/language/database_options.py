"""`FROM sqlite` and `FROM postgres`: what the options of a table of a database say.

A password is never part of the text: `secret = 'name'` names what the operator keeps for the process that reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.language.literals import parse_duration
from sluicegate.language.secret_names import SECRET_NAME, blank_around
from sluicegate.policy.model import Stream
from sluicegate.source import Span

SQLITE, POSTGRES = "sqlite", "postgres"
_PLACES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    SQLITE: (frozenset({"path"}), frozenset()),
    POSTGRES: (frozenset({"database"}), frozenset({"host", "port", "user", "secret", "schema", "sslmode"})),
}
DATABASES = frozenset(_PLACES)
"""The formats whose streams are tables that are read again and again."""
_COMMON = frozenset({"version", "every", "within", "compare", "rows"})
_SECRETS = frozenset({"password", "passwd", "url", "uri", "dsn", "conninfo", "passfile"})
_HELP = "name it, `secret = 'routes'`, and give it to the process as SLUICEGATE_SECRET_ROUTES"
MOST_ROWS = 10_000_000
_LEAST = 100_000
_EVERY, _WITHIN, _COMPARE, _ROWS = 5_000_000, 60_000_000, 300_000_000, 1_000_000


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """Where a table is and how it is read; durations are microseconds."""

    kind: str
    table: str
    place: tuple[tuple[str, str], ...]
    """The options that say where: `path`; or `host`, `port`, `database`, `user`, `schema`, `sslmode`."""
    secret: str | None = None
    version: str | None = None
    """The column that grows with each change of a row."""
    every: int = _EVERY
    within: int = _WITHIN
    """For how long rows stay in force while the database does not answer."""
    compare: int = _COMPARE
    """How often all rows are compared although `version` is named."""
    rows: int = _ROWS
    """More rows than these are not read: none is in force then."""

    def where(self, name: str) -> str | None:
        return dict(self.place).get(name)


def read_database(stream: Stream, span: Span | None = None) -> DatabaseTable:
    """The options of a stream `FROM` a database; refused where one is missing, unknown or holds a password."""
    kind, given = stream.format or "", dict(stream.options)
    needed, possible = _PLACES[kind]
    for name in given:
        if name.lower() in _SECRETS:
            _refuse_secret(f"`{name}` would put a password into the catalog's text", span)
        if name not in needed | possible | _COMMON | {"table"}:
            known = ", ".join(sorted(needed | possible | _COMMON | {"table"}))
            _refuse("database-option", f"`{kind}` has no option `{name}`", span, f"it has {known}")
    for name in sorted(needed | {"table"}):
        if not given.get(name):
            _refuse("database-option", f"the option `{name}` of `{stream.name}` is missing", span)
    if any("\0" in value for value in given.values()):
        _refuse("database-option", "an option has a zero character in it", span)
    if "=" in given.get("database", "") or "://" in given.get("database", ""):
        # libpq would read it as a whole connection string, password and all
        _refuse_secret("`database` is a name, not a connection string", span)
    secret = given.get("secret")
    if secret is not None and not SECRET_NAME.fullmatch(secret):
        _refuse_secret("the name of a secret is letters, digits and `_`", span)
    return DatabaseTable(
        kind,
        given["table"],
        tuple((name, given[name]) for name in sorted((needed | possible) - {"secret"}) if name in given),
        secret,
        given.get("version"),
        _read_span(given, "every", _EVERY, span),
        _read_span(given, "within", _WITHIN, span),
        _read_span(given, "compare", _COMPARE, span),
        _read_count(given, "rows", _ROWS, span),
    )


def _read_span(given: dict[str, str], name: str, usual: int, span: Span | None) -> int:
    found = parse_duration(given[name], span) if name in given else usual
    if found < _LEAST:
        _refuse("database-option", f"`{name}` is at least 100 milliseconds", span)
    return found


def _read_count(given: dict[str, str], name: str, usual: int, span: Span | None) -> int:
    text = given.get(name, str(usual))
    if not re.fullmatch("[0-9]{1,8}", text) or not 1 <= int(text) <= MOST_ROWS:
        _refuse("database-option", f"`{name}` is a number from 1 to {MOST_ROWS}", span)
    return int(text)


def _refuse(code: str, message: str, span: Span | None, help_: str | None = None) -> NoReturn:
    raise DiagnosticError([Diagnostic(code, message, span, help_)])


def _refuse_secret(message: str, span: Span | None) -> NoReturn:
    """With nothing of the text but the stream's name."""
    _refuse("database-secret", message, blank_around(span), _HELP)
