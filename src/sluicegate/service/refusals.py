"""What goes wrong as answers: one table from the class of an error to its answer, one from codes to status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sluicegate.errors import Diagnostic, DiagnosticError, SluicegateError
from sluicegate.service.identity.principal import Refused

_LOG = logging.getLogger("sluicegate.gateway")
_LONGEST_SHOWN = 200
_REQUEST = "x-request-id"

STATUS: Mapping[str, int] = {
    **dict.fromkeys(
        (
            *(
                "credentials-missing",
                "credentials-malformed",
                "sign-in-failed",
                "user-disabled",
                "user-unknown",
            ),
            *(
                "role-lost",
                "token-algorithm",
                "token-audience",
                "token-claims",
                "token-expired",
                "token-header",
            ),
            *("token-issuer", "token-key", "token-kind", "token-malformed", "token-not-yet", "token-revoked"),
            *("token-scope", "token-signature", "token-unknown"),
        ),
        401,
    ),
    **dict.fromkeys(
        (
            *("administrators-only", "owners-only", "scope-missing", "may-not-append"),
            *("role-inactive", "role-not-held"),
            *(
                "denied",
                "not-allowed",
                "sink-denied",
                "sp-forged",
                "clock-own",
                "xacml-others",
                "xacml-subject",
            ),
            *("shared-owner", "shared-refused", "shared-session", "switch-owner", "switch-unproven"),
        ),
        403,
    ),
    **dict.fromkeys(
        (
            "query-unknown",
            "sink-unknown",
            "stream-unknown",
            "user-missing",
            "place-unknown",
            "unknown-handle",
            "gate-handle",
            "store-version",
            "unknown-policy",
            *("shared-unknown", "credential-unknown", "subscription-unknown", "switch-unknown"),
        ),
        404,
    ),
    "method-unknown": 405,
    "client-slow": 408,
    **dict.fromkeys(
        ("store-conflict", "store-unchanged", "push-source", "nothing-to-run", "shared-exists", "sink-taken"),
        409,
    ),
    **dict.fromkeys(("body-too-large", "text-too-large", "file-too-large"), 413),
    **dict.fromkeys(("push-content", "xacml-content"), 415),
    **dict.fromkeys(
        (
            *("rate-limit", "sign-in-blocked", "sign-in-busy", "query-limit", "saved-limit", "stream-limit"),
            *("shared-limit", "shared-often"),
        ),
        429,
    ),
    "internal": 500,
    "not-served": 501,
    "proxy-answer": 502,
    **dict.fromkeys(
        (
            *("gateway-closed", "gateway-lease", "identity-store", "token-keys-unavailable", "store-busy"),
            *(
                "store-unreadable",
                "store-unsure",
                "store-damaged",
                "not-acknowledged",
                "gate-busy",
                "gate-log",
                "gateway-unreachable",
            ),
        ),
        503,
    ),
}
"""Everything else that a diagnostic says is about what the caller wrote: 400."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """An answer to be: status, findings, and when to try again."""

    status: int
    findings: tuple[Diagnostic, ...]
    retry_seconds: float | None = None

    def to_json(self, request_id: str) -> dict[str, Any]:
        first = self.findings[0]
        return {
            "error": {
                "code": first.code,
                "message": first.message,
                "help": first.help,
                "places": [place for each in self.findings if (place := _show_place(each)) is not None],
                "more": [{"code": each.code, "message": each.message} for each in self.findings[1:20]],
                "request": request_id,
            }
        }


class RefusedError(SluicegateError):
    """A refusal on its way to the caller."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.code)
        self.refused = refused


def refuse(code: str, message: str, retry_seconds: float | None = None) -> RefusedError:
    return RefusedError(Refused(code, message, retry_seconds))


def _show_place(finding: Diagnostic) -> dict[str, Any] | None:
    """Where in the caller's own text, with the text itself."""
    span = finding.span
    if span is None:
        return None
    line, column = span.source.position(span.start)
    return {
        "code": finding.code,
        "message": finding.message,
        "line": line,
        "column": column,
        "start": span.start,
        "end": span.end,
        "text": span.shown[:_LONGEST_SHOWN],
    }


def _of_refusal(error: RefusedError) -> Trouble:
    refused = error.refused
    finding = Diagnostic(refused.code, refused.message)
    return Trouble(STATUS.get(refused.code, 400), (finding,), refused.retry_seconds)


def _of_diagnostics(error: DiagnosticError) -> Trouble:
    status = STATUS.get(error.diagnostics[0].code, 400)
    return Trouble(status, _hide_places(error.diagnostics) if status == 503 else error.diagnostics)


def _hide_places(findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Of the store and the logs the code alone: their words name folders and hosts."""
    return (Diagnostic(findings[0].code, "the gateway cannot answer now; nothing was let through"),)


def _of_validation(error: RequestValidationError) -> Trouble:
    """Names of parts and what is wrong with them; never what was sent there, which may be a password."""
    found = [
        f"`{'.'.join(str(part) for part in each['loc'])[:_LONGEST_SHOWN]}`: {each['msg'][:_LONGEST_SHOWN]}"
        for each in error.errors()[:5]
    ]
    return Trouble(422, (Diagnostic("request-malformed", "; ".join(found) or "the request is malformed"),))


def _of_http(error: HTTPException) -> Trouble:
    if isinstance(error.__cause__, RefusedError):
        # the body was refused while it was read
        return _of_refusal(error.__cause__)
    known = {404: ("place-unknown", "there is nothing here"), 405: ("method-unknown", "not by this method")}
    code, message = known.get(error.status_code, ("request-malformed", "the request cannot be read"))
    return Trouble(error.status_code, (Diagnostic(code, message),))


ANSWERS: Sequence[tuple[type[Exception], Callable[[Any], Trouble]]] = (
    (RefusedError, _of_refusal),
    (DiagnosticError, _of_diagnostics),
    (RequestValidationError, _of_validation),
    (HTTPException, _of_http),
)


def find_trouble(error: Exception) -> Trouble:
    """The answer to an error; of one that nobody foresaw nothing is told."""
    for kind, answer in ANSWERS:
        if isinstance(error, kind):
            return answer(error)
    return Trouble(500, (Diagnostic("internal", "the gateway failed; nothing was let through"),))


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """The handler of every error."""
    trouble = find_trouble(error)
    request_id = str(request.scope.get("request_id", ""))
    if trouble.status >= 500:
        # the class alone: an engine's text may carry values. A refusal is foreseen, and no fault
        level = logging.WARNING if isinstance(error, RefusedError) else logging.ERROR
        _LOG.log(level, "request %s failed: %s", request_id, type(error).__name__, exc_info=_safe(error))
    headers = {_REQUEST: request_id}
    if trouble.retry_seconds is not None:
        headers["retry-after"] = str(max(1, round(trouble.retry_seconds)))
    if trouble.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(trouble.to_json(request_id), trouble.status, headers)


def _safe(error: Exception) -> Exception | None:
    """Where it happened, at the level of debugging only."""
    return error if _LOG.isEnabledFor(logging.DEBUG) else None
