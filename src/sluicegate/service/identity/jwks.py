"""The issuer's keys: read from where the settings say, and from nowhere that a token says.

They are read again when they are old, or when a token names a key that is not there, but never more often than
`refetch_seconds`: tokens cannot make this a flood. Keys that could not be renewed count for twice `keys_seconds`.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from sluicegate.errors import DiagnosticError
from sluicegate.service.identity.clock import Clock, to_micros
from sluicegate.service.identity.jwt_text import JsonObject, parse_object
from sluicegate.service.identity.principal import Refused
from sluicegate.service.identity.settings import OidcSettings, check_url

MOST_BYTES = 512 * 1024
_TIMEOUT = 3.0
_LEAST_RSA_BITS = 2_048
_FITS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}

Fetch = Callable[[str], bytes]
"""Gives the bytes of a URL, or raises OSError."""


@dataclass(frozen=True, slots=True)
class _Keys:
    by_id: Mapping[str, JsonObject]
    read_at: int


class IssuerKeys:
    """Finds the key that verifies a token."""

    def __init__(self, settings: OidcSettings, clock: Clock, fetch: Fetch | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._fetch = fetch or fetch_url
        self._lock = threading.Lock()
        self._keys: _Keys | None = None
        self._tried_at: int | None = None

    def find(self, kid: str, algorithm: str) -> PyJWK | Refused:
        """The issuer's key of this id, made for this algorithm and no other."""
        keys = self._keys
        if self._is_wanting(keys, kid):
            with self._lock:
                keys = self._current(kid)
        if keys is None:
            return Refused("token-keys-unavailable", "the issuer's keys cannot be read")
        jwk = keys.by_id.get(kid)
        if jwk is None:
            return Refused("token-key", "the issuer has no such key")
        return _make_key(jwk, algorithm)

    def _is_wanting(self, keys: _Keys | None, kid: str) -> bool:
        """Whether they should be read again. Where not, nobody waits for those who read."""
        limit = to_micros(self._settings.keys_seconds)
        return keys is None or kid not in keys.by_id or self._clock.now().monotonic - keys.read_at >= limit

    def _current(self, kid: str) -> _Keys | None:
        now = self._clock.now().monotonic
        if self._is_wanting(self._keys, kid):
            self._renew(now)
        longest = 2 * to_micros(self._settings.keys_seconds)
        if self._keys is None or now - self._keys.read_at >= longest:
            return None
        return self._keys

    def _renew(self, now: int) -> None:
        rest = to_micros(self._settings.refetch_seconds)
        if self._tried_at is not None and now - self._tried_at < rest:
            return
        self._tried_at = now
        try:
            self._keys = _Keys(pick_keys(self._read()), now)
        except (OSError, ValueError, RecursionError, DiagnosticError):
            return  # what was read before counts until it is too old

    def _read(self) -> JsonObject:
        if self._settings.jwks_file is not None:
            return parse_object(Path(self._settings.jwks_file).read_bytes()[:MOST_BYTES])
        return parse_object(self._fetch(self._settings.jwks_url or self._discover()))

    def _discover(self) -> str:
        found = parse_object(
            self._fetch(self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        )
        url = found.get("jwks_uri")
        if found.get("issuer") != self._settings.issuer or not isinstance(url, str):
            raise ValueError("the discovery document is of another issuer")
        check_url(url)
        return url


def pick_keys(document: JsonObject) -> dict[str, JsonObject]:
    """Public signing keys by id. An id that two keys have names neither."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise ValueError("the document has no keys")
    usable = [each for each in listed if _is_usable(each)]
    ids = [each["kid"] for each in usable]
    return {each["kid"]: each for each in usable if ids.count(each["kid"]) == 1}


def _is_usable(jwk: Any) -> bool:
    """Not for encryption, not symmetric, and no private key, which whoever published it no longer holds alone."""
    if not isinstance(jwk, dict) or not isinstance(jwk.get("kid"), str) or not jwk["kid"]:
        return False
    operations = jwk.get("key_ops", ["verify"])
    return (
        jwk.get("kty") in ("RSA", "EC", "OKP")
        and jwk.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and "d" not in jwk
    )


def _make_key(jwk: JsonObject, algorithm: str) -> PyJWK | Refused:
    kind, curve = _FITS[algorithm]
    fits = jwk["kty"] == kind and (curve is None or jwk.get("crv") == curve)
    if not fits or jwk.get("alg", algorithm) != algorithm:
        return Refused("token-algorithm", "the token's algorithm is not that of its key")
    try:
        key = PyJWK.from_dict(jwk, algorithm=algorithm)
    except (PyJWTError, ValueError, TypeError):
        return Refused("token-key", "the issuer's key cannot be used")
    if kind == "RSA" and key.key.key_size < _LEAST_RSA_BITS:
        return Refused("token-key", f"the issuer's key has less than {_LEAST_RSA_BITS} bits")
    return key


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The settings name where keys are; an answer cannot name another place."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        raise urllib.error.HTTPError(req.full_url, code, "redirects are not followed", headers, fp)


def fetch_url(url: str) -> bytes:
    """The bytes of a URL that was checked; at most `MOST_BYTES`, within seconds, without redirects."""
    check_url(url)
    opener = urllib.request.build_opener(_NoRedirects)
    with opener.open(url, timeout=_TIMEOUT) as answer:
        data: bytes = answer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError("the answer is too long")
    return data
