"""The web console: files that were built from `console/`, under a content security policy that lets in nothing else."""

from __future__ import annotations

import gzip
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import Header, Response

from sluicegate.service.access import Need, Route
from sluicegate.service.refusals import refuse

STATIC = Path(__file__).parents[1] / "static"
_NONCE = "__NONCE__"
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_MISSING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>sluicegate</title></head>
<body><h1>sluicegate</h1>
<p>The gateway is running, but its web console was not built on this machine.</p>
<p>Run <code>scripts/build_console.sh</code> where Node and npm can be had, or install a wheel, which has it inside.
The HTTP API and the <code>sluicegate</code> commands work without it.</p>
</body></html>
"""


def make_policy(nonce: str) -> str:
    """Scripts and workers of our own alone; styles too, and those of the editor, which carry the nonce of this answer."""
    parts = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": f"'self' 'nonce-{nonce}'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def show_console() -> Response:
    """The page; it is asked for anew each time, and names files whose names change with their content."""
    page = _read_index()
    if page is None:
        return Response(_MISSING, media_type="text/html", headers={"cache-control": "no-store"})
    nonce = secrets.token_urlsafe(16)
    headers = {"content-security-policy": make_policy(nonce), "cache-control": "no-cache"}
    return Response(page.replace(_NONCE, nonce), media_type="text/html", headers=headers)


def _read_index() -> str | None:
    try:
        return (STATIC / "index.html").read_text(encoding="utf-8")
    except OSError:
        return None


def show_asset(name: str, accept_encoding: Annotated[str | None, Header()] = None) -> Response:
    """A file of the console; its name has a hash of its content, so that it may be kept for ever."""
    folder = STATIC / "assets"
    path = folder / name
    kind = _KINDS.get(path.suffix)
    # compared with what there is, never joined to a path: a name cannot lead elsewhere
    if kind is None or not folder.is_dir() or name not in {each.name for each in folder.iterdir()}:
        raise refuse("place-unknown", "there is nothing here")
    # the one name without a hash is that of the licences
    kept = "no-cache" if path.suffix == ".txt" else "public, max-age=31536000, immutable"
    headers = {"cache-control": kept, "vary": "accept-encoding"}
    if "gzip" not in (accept_encoding or ""):
        return Response(path.read_bytes(), media_type=kind, headers=headers)
    body = _compress(path, path.stat().st_mtime_ns)
    return Response(body, media_type=kind, headers={**headers, "content-encoding": "gzip"})


@lru_cache(maxsize=64)
def _compress(path: Path, changed: int) -> bytes:
    return gzip.compress(path.read_bytes(), 6, mtime=0)


_PAGE = {"response_class": Response}
ROUTES = (
    Route("GET", "/", show_console, Need.NOBODY, _PAGE),
    Route("GET", "/assets/{name}", show_asset, Need.NOBODY, _PAGE),
)
