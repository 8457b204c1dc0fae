"""What a token may be used for: `read`, `grant` (catalog changes), `push:STREAM`, `push:*`, `admin`.

A scope only takes away: a token never allows what its user may not do.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluicegate.errors import Diagnostic, DiagnosticError

READ, GRANT, ADMIN, PUSH = "read", "grant", "admin", "push:"
PUSH_ANY = "push:*"
ALL = frozenset({READ, GRANT, ADMIN, PUSH_ANY})
_LONGEST = 200


def check_scope(scope: str) -> None:
    """Raises when the scope means nothing."""
    stream = scope.removeprefix(PUSH)
    named = scope.startswith(PUSH) and 0 < len(stream) <= _LONGEST and stream == stream.strip()
    if scope not in ALL and not named:
        message = f"unknown scope `{scope[:60]}`"
        help_ = "scopes are `read`, `grant`, `push:STREAM`, `push:*` and `admin`"
        raise DiagnosticError([Diagnostic("scope-missing", message, help=help_)])


def covers(scopes: frozenset[str], wanted: str) -> bool:
    """Whether one of them is, or includes, the wanted one; none includes another but `push:*` every push."""
    return wanted in scopes or (wanted.startswith(PUSH) and PUSH_ANY in scopes)


def covers_all(scopes: frozenset[str], wanted: Iterable[str]) -> bool:
    return all(covers(scopes, each) for each in wanted)
