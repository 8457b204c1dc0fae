"""A JWT as text, taken apart strictly: what two readers could read differently is refused before anything is verified."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from sluicegate.service.identity.principal import Refused

LONGEST = 16_384
_PART = re.compile(r"[A-Za-z0-9_-]+")

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JwtText:
    """Nothing in it is to be believed before its signature was verified."""

    text: str
    header: JsonObject
    claims: JsonObject


def parse_jwt(text: str) -> JwtText | Refused:
    """Three parts of canonical base64url; header and claims JSON objects without a name given twice."""
    parts = text.split(".")
    if len(text) > LONGEST or len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):
        return Refused("token-malformed", "the token is not of three parts, or too long")
    try:
        header, claims, _ = (_decode(part) for part in parts)
        return JwtText(text, parse_object(header), parse_object(claims))
    except _NamedTwiceError:
        return Refused("token-claims", "a name is given twice in the token")
    except (ValueError, RecursionError):
        return Refused("token-malformed", "the token cannot be read")


def _decode(part: str) -> bytes:
    decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    # spare bits in the last character would make many texts of one token
    if base64.urlsafe_b64encode(decoded).rstrip(b"=").decode() != part:
        raise binascii.Error("not canonical")
    return decoded


class _NamedTwiceError(ValueError):
    pass


def parse_object(data: bytes) -> JsonObject:
    """A JSON object in which no object names anything twice; raises ValueError otherwise."""
    found = json.loads(data.decode("utf-8"), object_pairs_hook=_pair_up, parse_constant=_refuse_constant)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _pair_up(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NamedTwiceError
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
