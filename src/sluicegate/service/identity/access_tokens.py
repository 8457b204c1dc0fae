"""OIDC access tokens: signature and claims, checked against the settings alone.

PyJWT verifies the signature with the one algorithm and the one key that were found; the claims are checked here, with
the gateway's clock and an answer for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jwt import PyJWS
from jwt.exceptions import PyJWTError

from sluicegate.service.identity.clock import Clock, to_micros
from sluicegate.service.identity.jwks import IssuerKeys
from sluicegate.service.identity.jwt_text import JsonObject, JwtText, parse_jwt
from sluicegate.service.identity.principal import Refused
from sluicegate.service.identity.settings import OidcSettings

_OWN_KEYS = ("jku", "jwk", "x5u", "x5c", "crit", "zip", "b64")
_ACCESS_TYPES = frozenset({"at+jwt", "application/at+jwt"})
_PLAIN_TYPES = frozenset({"jwt", "application/jwt"})
_NOT_ACCESS = ("nonce", "at_hash", "c_hash", "s_hash", "events")
_LATEST = 2**40


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """Claims that the configured issuer made for this gateway. Times are microseconds of the wall clock."""

    claims: JsonObject
    scopes: frozenset[str]
    issued_at: int
    expires_at: int


class AccessTokens:
    """Verifies tokens of one issuer."""

    def __init__(self, settings: OidcSettings, keys: IssuerKeys, clock: Clock) -> None:
        self._settings = settings
        self._keys = keys
        self._clock = clock

    def verify(self, text: str) -> VerifiedToken | Refused:
        token = parse_jwt(text)
        if isinstance(token, Refused):
            return token
        refused = self._check_header(token) or self._check_signature(token)
        refused = refused or self._check_audience(token.claims) or self._check_kind(token)
        if refused is not None:
            return refused
        return self._read_times(token.claims)

    def _check_header(self, token: JwtText) -> Refused | None:
        """Before any key is looked for, so that a foreign token costs nothing."""
        if token.claims.get("iss") != self._settings.issuer:
            return Refused("token-issuer", "the token is of another issuer")
        if token.header.get("alg") not in self._settings.algorithms:
            return Refused("token-algorithm", "the token's algorithm is not allowed")
        own = [name for name in _OWN_KEYS if name in token.header]
        if own:
            return Refused("token-header", f"the token's header has `{own[0]}`")
        kid = token.header.get("kid")
        if not isinstance(kid, str) or not kid:
            return Refused("token-key", "the token does not name its key")
        return None

    def _check_signature(self, token: JwtText) -> Refused | None:
        algorithm = str(token.header["alg"])
        key = self._keys.find(str(token.header["kid"]), algorithm)
        if isinstance(key, Refused):
            return key
        try:
            PyJWS(options={"enforce_minimum_key_length": True}).decode_complete(
                token.text, key, algorithms=[algorithm]
            )
        except (PyJWTError, ValueError, TypeError):
            return Refused("token-signature", "the token's signature is wrong")
        return None

    def _check_audience(self, claims: JsonObject) -> Refused | None:
        audience = claims.get("aud")
        named = [audience] if isinstance(audience, str) else audience
        if not isinstance(named, list) or self._settings.audience not in named:
            return Refused("token-audience", "the token is for another audience")
        return None

    def _check_kind(self, token: JwtText) -> Refused | None:
        """An ID token is signed by the same key for what may be the same audience: it must not pass for access."""
        typ = token.header.get("typ", "JWT")
        kind = typ.lower() if isinstance(typ, str) else ""
        known = kind in _ACCESS_TYPES or (kind in _PLAIN_TYPES and not self._settings.require_at_jwt)
        # Keycloak says in a claim `typ` what others say in the header
        claimed = token.claims.get("typ", "Bearer")
        if not known or claimed not in ("Bearer", "JWT") or any(name in token.claims for name in _NOT_ACCESS):
            return Refused("token-kind", "the token is no access token")
        if not self._scopes(token.claims):
            return Refused("token-scope", "the token has no scope that means anything here")
        return None

    def _scopes(self, claims: JsonObject) -> frozenset[str]:
        words = [*_words(claims.get("scope")), *_words(claims.get("scp"))]
        return frozenset(ours for word in words for ours in self._settings.scopes.get(word, ()))

    def _read_times(self, claims: JsonObject) -> VerifiedToken | Refused:
        """The skew is granted to a token that is early, not to one that is late: that would only make it last longer."""
        issued, expires = _time(claims.get("iat")), _time(claims.get("exp"))
        begins = issued if self._may_lack_nbf(claims) else _time(claims.get("nbf"))
        if issued is None or expires is None or begins is None:
            return Refused("token-claims", "the token does not say when it counts")
        now = self._clock.now().wall
        if max(issued, begins) > now + to_micros(self._settings.leeway_seconds):
            return Refused("token-not-yet", "the token is not valid yet")
        expires = min(expires, issued + to_micros(self._settings.most_seconds))
        if now >= expires:
            return Refused("token-expired", "the token has expired")
        return VerifiedToken(claims, self._scopes(claims), issued, expires)

    def _may_lack_nbf(self, claims: JsonObject) -> bool:
        return "nbf" not in claims and not self._settings.require_nbf


def _words(claim: Any) -> Iterable[str]:
    if isinstance(claim, str):
        return claim.split(" ")
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list) else []


def _time(claim: Any) -> int | None:
    """Seconds as a number; a text, a truth value or something beyond all calendars is none."""
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return None
    return to_micros(claim) if math.isfinite(claim) and 0 <= claim <= _LATEST else None
