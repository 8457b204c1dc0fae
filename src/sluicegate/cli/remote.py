"""What commands that talk to a gateway share: its address, the token, and what becomes of refusals."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sluicegate.cli.credentials import read_credentials
from sluicegate.cli.inputs import UsageError, recover
from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.source import SourceText, Span

if TYPE_CHECKING:
    from sluicegate.client import Client, ClientError

URL, TOKEN, ALLOW_HTTP = "SLUICEGATE_URL", "SLUICEGATE_TOKEN", "SLUICEGATE_ALLOW_HTTP"


def add_gateway(parser: argparse.ArgumentParser) -> None:
    told = f"the gateway; ${URL}, with the token of ${TOKEN} if there is one; else where `login` was last"
    parser.add_argument("--url", metavar="URL", type=recover, help=told)
    add_user(parser)


def add_user(parser: argparse.ArgumentParser) -> None:
    told = "of those that you are signed in as; else the last"
    parser.add_argument("--as", dest="user", metavar="USER", type=recover, help=told)


@contextmanager
def open_gateway(args: argparse.Namespace, sent: SourceText | None = None) -> Iterator[Client]:
    """A client with the token of the environment or of `login`. `sent` is the text that places in refusals are of."""
    url = clean_url(args.url or os.environ.get(URL))
    token = os.environ.get(TOKEN) if url and args.user is None else None
    if not (url and token):
        kept = read_credentials().find(url, args.user)
        if kept is None:
            raise _not_signed_in(url, args.user)
        url, token = kept.url, kept.token
    with open_client(url, token, sent) as client:
        yield client


@contextmanager
def open_client(url: str, token: str | None, sent: SourceText | None = None) -> Iterator[Client]:
    """A client whose errors are those of commands."""
    if find_spec("httpx") is None:
        raise UsageError("this needs the client's libraries: pip install 'sluicegate[client]'")
    from sluicegate.client import Client, ClientError

    try:
        with Client(url, token, allow_http=os.environ.get(ALLOW_HTTP) == "1") as client:
            yield client
    except ClientError as error:
        raise translate_error(error, sent) from None


def clean_url(given: str | None) -> str | None:
    """Without a last slash, as it is kept."""
    return given.rstrip("/") if given else None


def _not_signed_in(url: str | None, user: str | None) -> DiagnosticError:
    message = f"not signed in{f' to `{url}`' if url else ''}{f' as `{user}`' if user else ''}"
    help_ = f"sluicegate login {url or 'URL'} --user {user or 'USER'}"
    return DiagnosticError([Diagnostic("not-signed-in", message, help=help_)])


def translate_error(error: ClientError, sent: SourceText | None = None) -> Exception:
    """Refusals become diagnostics, with the place underlined; what is not there is the system's fault."""
    from sluicegate.client import RefusedError, UnreachableError, UnsafeAddressError

    match error:
        case UnsafeAddressError():
            return UsageError(f"{error.message}{f'; {error.help}' if error.help else ''}")
        case UnreachableError():
            return ConnectionError(error.message)
        case RefusedError(status=status) if status >= 500 and not error.passes:
            return ConnectionError(f"{error.message} (request {error.request or 'unknown'})")
        case RefusedError():
            span = _find_span(error.places[0], sent) if error.places and sent is not None else None
            return DiagnosticError([Diagnostic(error.code, error.message, span, error.help)])
        case _:
            return DiagnosticError([Diagnostic(error.code, error.message, help=error.help)])


def _find_span(place: Mapping[str, Any], sent: SourceText) -> Span | None:
    start, end = place.get("start"), place.get("end")
    if isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(sent.text):
        return Span(sent, start, end)
    return None
